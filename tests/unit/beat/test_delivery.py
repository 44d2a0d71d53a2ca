"""The thread that delivers: one batch under way, one that waits, errors told to who runs the cycles."""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.log_throttle import LogThrottle
from celery_pgbeat.beat.send.delivery import Delivery
from celery_pgbeat.beat.send.delivery_thread import DeliveryThread
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.send.publisher import BATCH, Published
from celery_pgbeat.measures.observer import Observer
from tests.harness.outbox import job as outgoing

PATIENCE = 10.0  # seconds
NOW = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)


class Gate:
    """A publisher that sends when it is let, and a store that notes what it is told."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Semaphore(0)
        self.confirms = threading.Event()
        self.confirms.set()
        self.confirming = threading.Semaphore(0)
        self.sends = True
        self.told: list[tuple[str, list[uuid.UUID], bool]] = []
        self.error: Exception | None = None  # of a confirm
        self.raises: Exception | None = None  # of a publish

    def publish(
        self, jobs: Sequence[Any], _lease_ends: float, dropped: Callable[[], Collection[uuid.UUID]]
    ) -> Published:
        self.entered.release()
        assert self.open.acquire(timeout=PATIENCE)
        if self.raises is not None:
            raise self.raises
        without = dropped()
        ids = [job.id for job in jobs if job.id not in without]
        self.told.append(("write", ids, False))
        return Published(sent=[(job, 0.0) for job in ids]) if self.sends else Published(unsent=ids)

    def confirm(self, sent: Sequence[tuple[uuid.UUID, float]]) -> Any:
        self.confirming.release()
        assert self.confirms.wait(PATIENCE)
        self.told.append(("confirm", [job for job, _ in sent], False))
        if self.error is not None:
            raise self.error
        return SimpleNamespace(locked=set())

    def skip(self, jobs: Sequence[uuid.UUID], reason: str) -> None:
        self.told.append((reason, list(jobs), False))

    def give_back(self, jobs: Sequence[uuid.UUID], late: bool) -> None:
        self.told.append(("give back", list(jobs), late))


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def stopping() -> threading.Event:
    return threading.Event()


@pytest.fixture
def rung() -> threading.Semaphore:
    return threading.Semaphore(0)


class Clock:
    """The database's time, set by hand."""

    now = NOW


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def delivery(gate: Gate, clock: Clock, stopping: threading.Event, rung: threading.Semaphore) -> Iterator[Delivery]:
    made: Any = gate
    line = DeliveryThread(made, made, LogThrottle(), lambda: clock.now, stopping.is_set, Observer(), rung.release)
    yield line
    for _ in range(10):
        gate.open.release()
    assert line.drain(PATIENCE)


def batch(send_by: datetime | None = None) -> tuple[uuid.UUID, list[OutgoingJob]]:
    made = outgoing(due_at=send_by, catchup_window=timedelta(0))
    return made.id, [made]


def until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition."""
    ends = boottime() + PATIENCE
    while not is_so():
        assert boottime() < ends
        time.sleep(0.001)


def steps(gate: Gate, what: str) -> list[list[uuid.UUID]]:
    """What was told of one kind, step by step."""
    return [jobs for told, jobs, _ in gate.told if told == what]


def test_batches_are_sent_in_order_and_each_is_confirmed(gate: Gate, delivery: Delivery) -> None:
    made = [batch() for _ in range(3)]
    for _, jobs in made:
        delivery.deliver(jobs, boottime() + PATIENCE)
        gate.open.release()

    assert delivery.drain(PATIENCE)
    jobs = [job for job, _ in made]
    assert [[job] for job in jobs] == steps(gate, "write")
    assert jobs == [job for step in steps(gate, "confirm") for job in step]


def test_p2_a_full_step_is_confirmed_before_the_next_one_is_written_which_is_made_meanwhile(
    gate: Gate, delivery: Delivery
) -> None:
    made = [batch() for _ in range(BATCH + 1)]
    first, last = [job for job, _ in made[:BATCH]], [made[-1][0]]
    gate.confirms.clear()
    delivery.deliver([job for _, (job,) in made], boottime() + PATIENCE)
    for _ in range(2):
        assert gate.entered.acquire(timeout=PATIENCE)
        gate.open.release()
    assert [("write", first, False)] == gate.told

    gate.confirms.set()
    assert delivery.drain(PATIENCE)
    assert [(what, step, False) for step in (first, last) for what in ("write", "confirm")] == gate.told


def test_p2_small_batches_are_written_while_the_first_is_confirmed_up_to_one_full_step(
    gate: Gate, delivery: Delivery
) -> None:
    gate.confirms.clear()
    sizes = [1, BATCH - 2, 1, 1]
    made = [[batch() for _ in range(size)] for size in sizes]
    for number, jobs in enumerate(made):
        delivery.deliver([job for _, (job,) in jobs], boottime() + PATIENCE)
        gate.open.release()
        if number == 0:
            assert gate.confirming.acquire(timeout=PATIENCE)
    for _ in sizes:
        assert gate.entered.acquire(timeout=PATIENCE)
    # The last one is made, and would be one too many; it is written when there is room.
    expected = [[job for job, _ in jobs] for jobs in made]
    until(lambda: len(steps(gate, "write")) == 3)
    assert expected[:3] == steps(gate, "write")
    assert [] == steps(gate, "confirm")

    gate.confirms.set()
    assert delivery.drain(PATIENCE)
    assert expected == steps(gate, "write")
    assert [expected[0], expected[1] + expected[2], expected[3]] == steps(gate, "confirm")


def test_what_is_to_be_recorded_waits_until_no_confirm_is_under_way(gate: Gate, delivery: Delivery) -> None:
    """Beside the confirm that would need one more connection."""
    (sent, first), (late, second) = batch(), batch(NOW - timedelta(microseconds=1))
    gate.confirms.clear()
    for jobs in (first, second):
        delivery.deliver(jobs, boottime() + PATIENCE)
        gate.open.release()
        assert gate.entered.acquire(timeout=PATIENCE)
    assert not delivery.drain(0.2)
    assert [("write", [sent], False)] == gate.told

    gate.confirms.set()
    assert delivery.drain(PATIENCE)
    assert [("confirm", [sent], False), ("too_late", [late], False), ("write", [], False)] == gate.told[1:]


def test_nothing_is_written_after_a_full_step_that_could_not_be_confirmed(gate: Gate, delivery: Delivery) -> None:
    made = [batch() for _ in range(BATCH + 1)]
    gate.error = RuntimeError("the database is away")
    delivery.deliver([job for _, (job,) in made], boottime() + PATIENCE)
    gate.open.release(2)

    assert delivery.drain(PATIENCE)
    assert ["write", "confirm"] == [what for what, _, _ in gate.told]
    with pytest.raises(RuntimeError, match="the database is away"):
        delivery.check()


def test_a_cycle_that_reports_a_failed_confirm_does_not_let_its_batch_go_on(gate: Gate, delivery: Delivery) -> None:
    gate.error = RuntimeError("the database is away")
    delivery.deliver([job for _, (job,) in (batch() for _ in range(BATCH + 1))], boottime() + PATIENCE)
    gate.open.release()
    for _ in range(2):
        assert gate.entered.acquire(timeout=PATIENCE)  # the second step is being made
    until(lambda: delivery.is_failing)
    with pytest.raises(RuntimeError, match="the database is away"):
        delivery.check()
    gate.error = None
    gate.open.release()

    assert delivery.drain(PATIENCE)
    assert ["write", "confirm"] == [what for what, _, _ in gate.told]


def test_what_is_to_be_recorded_of_a_batch_is_recorded_although_the_confirm_of_another_has_failed(
    gate: Gate, delivery: Delivery
) -> None:
    (_, first), (late, second) = batch(), batch(NOW - timedelta(microseconds=1))
    gate.error = RuntimeError("the database was away")
    gate.confirms.clear()
    delivery.deliver(first, boottime() + PATIENCE)
    gate.open.release()
    assert gate.confirming.acquire(timeout=PATIENCE)
    delivery.deliver(second, boottime() + 2 * PATIENCE)
    gate.open.release()
    assert not delivery.drain(0.1)
    gate.confirms.set()

    assert delivery.drain(PATIENCE)
    assert ("too_late", [late], False) in gate.told
    with pytest.raises(RuntimeError, match="the database was away"):
        delivery.check()


def test_a_job_that_becomes_too_late_while_the_step_before_is_confirmed_is_skipped(
    gate: Gate, clock: Clock, delivery: Delivery
) -> None:
    made = [batch(NOW) for _ in range(BATCH + 2)]
    gate.confirms.clear()
    delivery.deliver([job for _, (job,) in made], boottime() + PATIENCE)
    gate.open.release(2)
    assert gate.entered.acquire(timeout=PATIENCE)
    assert gate.entered.acquire(timeout=PATIENCE)  # the second step is made

    clock.now = NOW + timedelta(microseconds=1)
    gate.confirms.set()
    assert delivery.drain(PATIENCE)
    late = [job for job, _ in made[BATCH:]]
    assert [("too_late", late, False), ("write", [], False)] == gate.told[2:]


def test_a_job_that_is_later_than_its_catchup_window_is_skipped_and_not_sent(gate: Gate, delivery: Delivery) -> None:
    (late, first), (fresh, second) = batch(NOW - timedelta(microseconds=1)), batch(NOW)

    delivery.deliver(first + second, boottime() + PATIENCE)
    gate.open.release()

    assert delivery.drain(PATIENCE)
    assert [("too_late", [late], False), ("write", [fresh], False), ("confirm", [fresh], False)] == gate.told


def test_there_is_no_place_while_a_batch_waits_and_the_cycles_are_woken_when_there_is_one(
    gate: Gate, delivery: Delivery, rung: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert delivery.wait_for_place()
    delivery.deliver(batch()[1], boottime() + PATIENCE)
    assert gate.entered.acquire(timeout=PATIENCE)
    assert delivery.wait_for_place()  # one under way, none waiting
    delivery.deliver(batch()[1], boottime() + PATIENCE)

    assert not delivery.wait_for_place()  # the broker hangs, and the cycle goes on
    monkeypatch.setattr("celery_pgbeat.beat.send.delivery_thread.MOMENT", PATIENCE)
    began = boottime()
    assert not delivery.wait_for_place()  # it has been waited for once
    assert boottime() - began < PATIENCE / 2
    assert not rung.acquire(blocking=False)

    gate.open.release()  # the first is done, the second begun
    assert rung.acquire(timeout=PATIENCE)
    assert delivery.wait_for_place()
    delivery.deliver(batch()[1], boottime() + PATIENCE)
    gate.open.release()
    gate.open.release()
    assert delivery.drain(PATIENCE)
    assert not rung.acquire(blocking=False)  # it rings for a cycle that found no place, and for nothing else


def test_the_parts_of_one_batch_which_have_one_lease_leave_a_place_for_the_next_batch(
    gate: Gate, delivery: Delivery
) -> None:
    lease_ends = boottime() + PATIENCE
    made = [batch() for _ in range(3)]
    delivery.deliver(made[0][1], lease_ends)
    assert gate.entered.acquire(timeout=PATIENCE)

    delivery.deliver(made[1][1], lease_ends)
    assert delivery.wait_for_place()
    delivery.deliver(made[2][1], boottime() + PATIENCE)
    assert not delivery.wait_for_place()
    gate.open.release()  # now the second part is under way, and the other batch still waits
    assert gate.entered.acquire(timeout=PATIENCE)
    assert not delivery.wait_for_place()

    for _ in made:
        gate.open.release()
    assert delivery.drain(PATIENCE)
    assert [[job] for job, _ in made] == steps(gate, "write")


def test_a_cycle_waits_for_a_place_that_becomes_free_within_a_moment(
    gate: Gate, delivery: Delivery, rung: threading.Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("celery_pgbeat.beat.send.delivery_thread.MOMENT", PATIENCE)
    for _ in range(2):
        delivery.deliver(batch()[1], boottime() + PATIENCE)
    opening = threading.Timer(0.1, gate.open.release)
    opening.start()

    assert delivery.wait_for_place()
    opening.join()
    assert not rung.acquire(blocking=False)


def test_there_is_no_place_at_the_end_of_the_beat(delivery: Delivery, stopping: threading.Event) -> None:
    assert delivery.wait_for_place()
    stopping.set()
    assert not delivery.wait_for_place()


def test_an_error_of_a_batch_is_raised_once_in_the_next_cycle_and_the_next_batch_is_sent(
    gate: Gate, delivery: Delivery
) -> None:
    gate.raises = RuntimeError("no message can be made")
    delivery.deliver(batch()[1], boottime() + PATIENCE)
    gate.open.release()
    assert gate.entered.acquire(timeout=PATIENCE)
    (job, jobs) = batch()
    delivery.deliver(jobs, boottime() + PATIENCE)
    assert gate.entered.acquire(timeout=PATIENCE)  # so the first has failed
    assert delivery.is_failing
    gate.raises = None
    gate.open.release()

    with pytest.raises(RuntimeError, match="no message can be made"):
        delivery.check()
    delivery.check()
    assert delivery.drain(PATIENCE)
    assert ("confirm", [job], False) == gate.told[-1]
    assert not delivery.is_failing


def test_an_error_of_the_last_confirm_is_raised_in_the_next_cycle_without_another_batch(
    gate: Gate, delivery: Delivery
) -> None:
    gate.error = RuntimeError("the database is away")
    delivery.deliver(batch()[1], boottime() + PATIENCE)
    gate.open.release()
    until(lambda: delivery.is_failing)
    with pytest.raises(RuntimeError, match="the database is away"):
        delivery.check()
    delivery.check()
    assert delivery.is_failing  # until a confirm succeeds
    gate.error = None
    delivery.deliver(batch()[1], boottime() + PATIENCE)
    gate.open.release()
    assert delivery.drain(PATIENCE)
    assert not delivery.is_failing


def test_each_cycle_raises_one_error_and_equal_ones_are_raised_once(gate: Gate, delivery: Delivery) -> None:
    gate.error = RuntimeError("the database is away")
    delivery.deliver(batch()[1], boottime() + PATIENCE)
    gate.open.release()
    until(lambda: len(steps(gate, "confirm")) == 1)  # by itself, not together with the next
    delivery.deliver(batch()[1], boottime() + PATIENCE)
    gate.open.release()
    until(lambda: len(steps(gate, "confirm")) == 2)
    gate.raises = RuntimeError("no message can be made")
    delivery.deliver(batch()[1], boottime() + PATIENCE)
    gate.open.release()
    assert delivery.drain(PATIENCE)

    with pytest.raises(RuntimeError, match="the database is away"):
        delivery.check()
    with pytest.raises(RuntimeError, match="no message can be made"):
        delivery.check()
    delivery.check()


@pytest.mark.parametrize(("lease", "late"), [(PATIENCE, False), (0.0, True)])
def test_an_unsent_job_is_given_back_and_counts_as_late_if_its_lease_is_over(
    gate: Gate, delivery: Delivery, lease: float, late: bool
) -> None:
    gate.sends = False
    job, jobs = batch()
    delivery.deliver(jobs, boottime() + lease)
    gate.open.release()

    assert delivery.drain(PATIENCE)
    assert [("write", [job], False), ("give back", [job], late)] == gate.told


def test_the_delivery_estimates_how_many_messages_it_can_send_in_a_time(
    gate: Gate, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert math.inf == delivery.most_within(5.0)
    monkeypatch.setattr("celery_pgbeat.beat.send.delivery.boottime", iter([100.0, 100.5]).__next__)
    delivery.deliver(batch()[1] + batch()[1], 200.0)
    gate.open.release()

    assert delivery.drain(PATIENCE)
    assert 20.0 == delivery.most_within(5.0)
