"""The thread that confirms what was sent, beside the delivery."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence

import pytest

from celery_pgbeat.beat.send.confirmer import Confirmer, Sent

PATIENCE = 10.0  # seconds


class Store:
    """Notes what is confirmed together, and in which thread, when it is let."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Semaphore(0)
        self.confirms: list[list[Sent]] = []
        self.threads: list[str] = []
        self.error: BaseException | None = None

    def confirm(self, parts: Sequence[Sent]) -> None:
        self.entered.release()
        assert self.open.wait(PATIENCE)
        self.confirms.append(list(parts))
        self.threads.append(threading.current_thread().name)
        if self.error is not None:
            raise self.error


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def confirmer(store: Store) -> Confirmer:
    return Confirmer(store.confirm, 3)


def sent(count: int) -> Sent:
    return Sent([(uuid.uuid4(), 0.0) for _ in range(count)], 0.0)


def test_what_is_sent_during_a_confirm_is_confirmed_by_the_next_one_together(
    store: Store, confirmer: Confirmer
) -> None:
    parts = [sent(1) for _ in range(3)]
    store.open.clear()
    confirmer.add(parts[0])
    assert store.entered.acquire(timeout=PATIENCE)
    for part in parts[1:]:
        confirmer.add(part)
    store.open.set()
    confirmer.wait()

    assert [parts[:1], parts[1:]] == store.confirms
    assert {"pgbeat-confirm"} == set(store.threads)


def test_p2_there_is_room_for_as_many_as_may_be_unconfirmed(store: Store, confirmer: Confirmer) -> None:
    store.open.clear()
    confirmer.add(sent(2))
    confirmer.wait_for_room(1)
    waiting = threading.Thread(target=confirmer.wait_for_room, args=(2,))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()

    store.open.set()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("stop"), RuntimeError("wrong")])
def test_an_error_is_raised_once_by_the_next_wait_and_the_next_confirm_is_made(
    store: Store, confirmer: Confirmer, error: BaseException
) -> None:
    store.error = error
    confirmer.add(sent(3))
    with pytest.raises(type(error)):
        confirmer.wait_for_room(1)
    store.error = None
    confirmer.add(sent(3))
    confirmer.wait()

    assert 2 == len(store.confirms)
    assert not confirmer.has_failed


def test_it_confirms_at_once_if_no_thread_can_be_started(
    store: Store, confirmer: Confirmer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as no_threads:
        no_threads.setattr(threading.Thread, "start", refused)
        confirmer.add(sent(3))
        assert [threading.current_thread().name] == store.threads
        confirmer.wait()

    confirmer.add(sent(3))
    confirmer.wait()
    assert "pgbeat-confirm" == store.threads[-1]
