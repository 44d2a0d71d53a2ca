"""The inbox of the report thread: nothing is lost, and a wait ends in time, whatever interrupts it."""

from __future__ import annotations

import signal
import sys
import threading
from queue import Empty
from time import monotonic

import pytest

from celery_pgbeat.worker.report.inbox import Inbox

ROUNDS = 20_000  # `queue.SimpleQueue` hangs within these before Python 3.13, on any machine that was tried
PATIENCE = 60.0  # seconds


def test_a_wait_that_is_over_at_once_ends_however_often_it_is_tried() -> None:
    inbox: Inbox[int] = Inbox()
    empty = 0

    def run() -> None:
        nonlocal empty
        for number in range(ROUNDS):
            inbox.put(number)
            assert number == inbox.get(0.0)
            with pytest.raises(Empty):
                inbox.get(1e-6)
            empty += 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)

    assert (ROUNDS, False) == (empty, thread.is_alive())


def test_it_waits_as_long_as_it_is_told_to_and_no_longer() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.put(1)
    inbox.get(0.0)
    began = monotonic()

    with pytest.raises(Empty):
        inbox.get(0.05)

    assert 0.05 <= monotonic() - began < PATIENCE


def test_what_many_threads_put_in_comes_out_once_and_in_their_order() -> None:
    inbox: Inbox[tuple[int, int]] = Inbox()

    def write(who: int) -> None:
        for number in range(2_000):
            inbox.put((who, number))

    writers = [threading.Thread(target=write, args=(who,), daemon=True) for who in range(4)]
    for writer in writers:
        writer.start()

    taken = [inbox.get(PATIENCE) for _ in range(4 * 2_000)]

    for who in range(4):
        assert list(range(2_000)) == [number for writer, number in taken if writer == who]
    with pytest.raises(Empty):
        inbox.get(0.0)


def test_a_thread_that_waits_forever_is_woken() -> None:
    inbox: Inbox[str] = Inbox()
    taken: list[str] = []
    thread = threading.Thread(target=lambda: taken.append(inbox.get(None)), daemon=True)
    thread.start()

    inbox.put("a")
    thread.join(PATIENCE)

    assert ["a"] == taken


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_a_signal_handler_may_put_in_while_it_interrupts_another_put() -> None:
    inbox: Inbox[int] = Inbox()
    handled = 0

    def handle(*_: object) -> None:
        nonlocal handled
        handled += 1
        inbox.put(-1)

    former = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
    try:
        put, until = 0, monotonic() + PATIENCE
        while handled < 200 and monotonic() < until:
            inbox.put(put)
            put += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)

    taken = [inbox.get(0.0) for _ in range(put + handled)]
    assert list(range(put)) == [number for number in taken if number >= 0]
    assert 200 <= handled == taken.count(-1)
