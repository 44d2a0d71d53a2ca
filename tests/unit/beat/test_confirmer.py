"""The thread that confirms what was sent, beside the delivery."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence

import pytest

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.send import confirmer as module
from celery_pgbeat.beat.send.confirmer import Confirmer, ConfirmFailed, Sent

PATIENCE = 10.0  # seconds
LEASE, OTHER_LEASE = boottime() + 1e9, boottime() + 2e9  # however long the run takes


class Store:
    """Notes what is confirmed together, and in which thread, when it is let."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Semaphore(0)
        self.confirms: list[list[Sent]] = []
        self.threads: list[str] = []
        self.error: BaseException | None = None
        self.told: list[BaseException | None] = []

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
    return Confirmer(store.confirm, store.told.append, 3)


def sent(count: int, lease_ends: float = LEASE) -> Sent:
    return Sent([(uuid.uuid4(), 0.0) for _ in range(count)], lease_ends)


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
    confirmer.wait_for_room(1, LEASE)
    waiting = threading.Thread(target=confirmer.wait_for_room, args=(2, LEASE))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()

    store.open.set()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("stop"), RuntimeError("wrong")])
def test_after_a_failed_confirm_there_is_no_room_for_more_of_its_batch_but_for_others(
    store: Store, confirmer: Confirmer, error: BaseException
) -> None:
    store.error = error
    confirmer.add(sent(3))
    with pytest.raises(ConfirmFailed):
        confirmer.wait_for_room(1, LEASE)
    confirmer.wait()
    confirmer.wait_for_room(3, OTHER_LEASE)
    store.error = None
    confirmer.add(sent(3, OTHER_LEASE))
    confirmer.wait()

    with pytest.raises(ConfirmFailed):
        confirmer.wait_for_room(1, LEASE)
    assert [error, None] == store.told
    assert 2 == len(store.confirms)


def test_a_thread_that_has_ended_early_is_noticed_and_replaced(
    store: Store, confirmer: Confirmer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that it raises ends it, but an error may strike it from outside, at any point."""
    monkeypatch.setattr(module, "ALIVE_CHECKED_AFTER", 0.01)
    with monkeypatch.context() as struck:
        struck.setattr(Confirmer, "_run", lambda self: self._begin() and None)
        confirmer.add(sent(3))
        confirmer.wait()
    assert ["RuntimeError('the thread pgbeat-confirm has ended without being asked to')"] == [
        repr(error) for error in store.told
    ]
    with pytest.raises(ConfirmFailed):
        confirmer.wait_for_room(1, LEASE)

    confirmer.add(sent(3, OTHER_LEASE))
    confirmer.wait()
    assert 1 == len(store.confirms)


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
