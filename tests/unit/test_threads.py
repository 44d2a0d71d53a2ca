"""A thread that is to last, and what becomes of it when it ends."""

from __future__ import annotations

import threading

import pytest

from celery_pgbeat.process import threads
from celery_pgbeat.process.threads import LastingThread


class Work:
    """Runs until it is let go, then raises what it is given, once."""

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.errors: list[BaseException] = []

    def run(self) -> None:
        assert self.go.acquire(timeout=10)
        if self.errors:
            raise self.errors.pop()


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def thread(work: Work, monkeypatch: pytest.MonkeyPatch) -> LastingThread:
    monkeypatch.setattr(threads, "PAUSE", 0.0)
    return LastingThread(work.run, "pgbeat-work")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("stop"), RuntimeError("wrong")])
def test_a_thread_that_raises_is_logged_with_its_error_and_started_again(
    work: Work, thread: LastingThread, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    thread.start()
    work.errors.append(error)
    work.go.release()
    assert thread.join(10)
    assert thread.has_ended_early

    assert thread.restart_if_ended()
    assert thread.is_alive
    (record,) = caplog.records
    assert f"The thread pgbeat-work ended without being asked to: {error!r}. It is started again." == record.message
    assert record.exc_info is not None
    assert error is record.exc_info[1]
    work.go.release()
    assert thread.join(10)


def test_a_thread_that_returns_has_ended_as_it_was_asked_to(
    work: Work, thread: LastingThread, caplog: pytest.LogCaptureFixture
) -> None:
    assert not thread.restart_if_ended()  # it was never started
    thread.start()
    assert not thread.restart_if_ended()
    work.go.release()
    assert thread.join(10)

    assert not thread.restart_if_ended()
    assert [] == caplog.records


def test_a_thread_that_ends_at_once_is_logged_once_and_pauses_before_it_starts_again(
    work: Work, thread: LastingThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threads, "PAUSE", 1000.0)
    thread.start()
    work.errors.append(SystemExit())
    work.go.release()
    assert thread.join(10)

    assert not thread.restart_if_ended()
    assert not thread.restart_if_ended()
    assert 1 == len(caplog.records)
    monkeypatch.setattr(threads, "PAUSE", 0.0)
    assert thread.restart_if_ended()
    assert 1 == len(caplog.records)
    work.go.release()
    assert thread.join(10)
