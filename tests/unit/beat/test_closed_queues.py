"""Which queues are closed, how long their jobs wait, and which rows are not marked meanwhile."""

from __future__ import annotations

import pytest

from celery_pgbeat.beat.send import closed_queues
from celery_pgbeat.beat.send.closed_queues import (
    DELAYED_FOR,
    FORGOTTEN_AFTER,
    LONGEST_PAUSE,
    UNPROBED_FOR,
    ClosedQueues,
)
from tests.harness.outbox import app_of, job

LATER = 1000.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(closed_queues, "boottime", made)
    return made


@pytest.fixture
def closed(clock: Clock) -> ClosedQueues:
    app = app_of("memory://")
    app.conf.task_routes = {"mail.*": {"queue": "mail"}}
    return ClosedQueues(app)


def test_a_closed_queue_is_tried_with_one_job_after_pauses_that_grow(closed: ClosedQueues, clock: Clock) -> None:
    first, second = job(queue="full"), job(queue="full")
    pauses = []
    for _ in range(7):
        assert closed.wait_of(first) is None
        pauses.append(closed.close(first, "no room").seconds)
        delayed = closed.wait_of(second)
        assert delayed is not None
        assert (second.id, DELAYED_FOR, "no room") == delayed
        clock.now += pauses[-1]

    assert [0.5, 1.0, 2.0, 4.0, 8.0, LONGEST_PAUSE, LONGEST_PAUSE] == pauses


def test_a_batch_of_which_the_broker_takes_nothing_counts_once(closed: ClosedQueues) -> None:
    assert 0.5 == closed.close(job(queue="full"), "no room").seconds
    assert [DELAYED_FOR, DELAYED_FOR] == [closed.close(job(queue="full"), "no room").seconds for _ in range(2)]


def test_p6_a_message_that_alone_is_rejected_closes_its_queue_for_a_moment_only(
    closed: ClosedQueues, clock: Clock
) -> None:
    large, small = job(queue="celery"), job(queue="celery")
    assert 0.5 == closed.close(large, "rejected", may_be_its_own=True).seconds
    clock.now += 1
    assert closed.wait_of(large) is None
    assert DELAYED_FOR == closed.close(large, "rejected", may_be_its_own=True).seconds

    clock.now += 2 + UNPROBED_FOR
    assert ([], []) == closed.excluded()
    assert closed.wait_of(small) is None
    assert closed.took([small], clock.now)

    clock.now += DELAYED_FOR
    assert DELAYED_FOR == closed.close(large, "rejected", may_be_its_own=True).seconds
    assert not closed


def test_only_one_of_the_jobs_that_wait_is_the_probe(closed: ClosedQueues, clock: Clock) -> None:
    first, second = job(queue="full"), job(queue="full")
    closed.close(first, "no room")
    clock.now += 1

    assert closed.wait_of(first) is None
    assert closed.wait_of(second) is not None


def test_a_message_that_is_taken_opens_its_queue_and_no_other(closed: ClosedQueues) -> None:
    full, other = job(queue="full"), job(queue="other")
    closed.close(full, "no room")
    closed.close(other, "forbidden")

    assert not closed.took([job(queue="fine")], LATER)
    assert not closed.took([full], began=0.0)  # it was closed after some of the same batch were taken
    assert closed.took([full], LATER)
    assert (["other"], []) == closed.excluded()
    assert "it takes no message for 'other': forbidden" == closed.problem


def test_a_row_without_a_queue_is_excluded_by_its_task_and_routed_as_celery_routes_it(closed: ClosedQueues) -> None:
    routed, plain = job(task="mail.send"), job(task="app.probe")
    closed.close(routed, "no room")

    assert ([], ["mail.send"]) == closed.excluded()
    assert closed.wait_of(job(queue="mail")) is not None
    assert closed.wait_of(plain) is None


def test_options_of_one_row_exclude_no_other_row(closed: ClosedQueues) -> None:
    closed.close(job(queue="celery", options={"exchange": "elsewhere", "routing_key": "x"}), "forbidden")

    assert ([], []) == closed.excluded()
    assert closed.wait_of(job(queue="celery")) is None


def test_rows_are_tried_where_no_job_is_and_in_the_end_the_queue_counts_as_open(
    closed: ClosedQueues, clock: Clock
) -> None:
    closed.close(job(queue="full"), "no room")
    assert not closed.is_unprobed

    clock.now += LONGEST_PAUSE + UNPROBED_FOR
    assert closed.is_unprobed
    assert ([], []) == closed.excluded()
    assert closed.problem is not None

    clock.now += FORGOTTEN_AFTER
    assert not closed.is_unprobed
    assert closed.problem is None
