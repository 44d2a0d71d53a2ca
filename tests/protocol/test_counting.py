"""What a beat counts is what its statements returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone

import pytest

from celery_pgbeat.beat.send.messages import Refusal
from celery_pgbeat.beat.send.publisher import Published
from celery_pgbeat.measures.counting import Counting
from celery_pgbeat.measures.tally import Tally
from celery_pgbeat.planning import Skipped
from tests.harness.jobs import make_job
from tests.harness.observed import Observed
from tests.harness.outbox import job as outgoing
from tests.harness.ticks import beat, decided, make_due, plan_ahead

SECOND = timedelta(seconds=1)


class Counted(Observed):
    """A beat that counts, what it counts, and by how much its clock is ahead."""

    def __init__(self, url: str) -> None:
        self.tally = Tally()
        self.ahead = timedelta(0)
        super().__init__(beat(url), Counting(self.tally, lambda: datetime.now(timezone.utc) + self.ahead))


@pytest.fixture
def counted(migrated_database: str) -> Iterator[Counted]:
    made = Counted(migrated_database)
    yield made
    made.close()


def submit(beat: Observed) -> None:
    beat.submit([decided(row) for row in beat.mark()])


def submit_at_once(beat: Observed) -> None:
    for name in ("a", "b"):
        plan_ahead(beat.queries, name)
    assert 2 == len(beat.mark_or_submit().at_once)


@pytest.mark.parametrize("how", [submit, submit_at_once])
def test_what_is_confirmed_counts_as_sent_with_how_late_it_was(
    counted: Counted, how: Callable[[Observed], None]
) -> None:
    make_due(counted.queries, "a")
    make_due(counted.queries, "b")
    how(counted)
    assert 0 == counted.tally.counts()["sent"]

    counted.ahead = 20 * SECOND
    counted.deliver(counted.jobs())

    buckets, total = counted.tally.lateness()
    assert (2, 0, 2) == (counted.tally.counts()["sent"], dict(buckets)["10.0"], dict(buckets)["+Inf"])
    assert 39 < total < 60


def test_a_job_whose_row_is_locked_is_counted_when_it_is_confirmed_again(
    counted: Counted, migrated_database: str
) -> None:
    make_due(counted.queries, "a")
    submit(counted)
    with (
        beat(migrated_database, "other")
        .database.engine.execution_options(isolation_level="READ COMMITTED")
        .begin() as holding
    ):
        holding.exec_driver_sql("select from pgbeat.active_job for update")
        counted.deliver(counted.jobs())
        assert counted.beat.delivery.has_unconfirmed
    assert 0 == counted.tally.counts()["sent"]

    assert counted.beat.delivery.confirm_again()

    assert (1, 1) == (counted.tally.counts()["sent"], counted.tally.lateness()[0][-1][1])


def test_a_job_in_the_way_and_occurrences_that_are_left_out_count_as_skipped(counted: Counted) -> None:
    make_due(counted.queries, "a")
    make_job(counted.queries.database, periodic_task="a", state="running", exclusive=True)
    (row,) = counted.mark()
    skipped = Skipped(row.next_run_at - 3 * SECOND, row.next_run_at - SECOND, 3, "too_late")

    counted.submit([decided(row, skipped=skipped)])

    assert {"overlap": 1, "too_late": 3} == counted.tally.skipped()


def test_what_was_taken_from_this_beat_is_not_counted(counted: Counted) -> None:
    make_due(counted.queries, "a")
    (row,) = counted.mark()
    counted.queries.unmark()

    counted.submit([decided(row)])

    assert not counted.tally.skipped()


def test_a_refusal_is_counted_and_the_third_one_loses_the_job(counted: Counted) -> None:
    make_due(counted.queries, "a")
    submit(counted)
    (job,) = counted.jobs()
    counted.published = Published(refused=[Refusal(job, "a", ValueError("no such exchange"))])

    for _ in range(3):
        counted.deliver([job])

    assert (3, 1) == (counted.tally.counts()["refused"], counted.tally.counts()["lost"])


def test_what_is_taken_over_counts_as_recovered_or_skipped(counted: Counted) -> None:
    make_due(counted.queries, "a")
    make_due(counted.queries, "gone")
    submit(counted)
    counted.queries.give_back()
    counted.queries.database.execute("delete from pgbeat.periodic_task where name = 'gone'")

    counted.beat.dispatcher.run_cycle()

    assert (1, {"deleted": 1}) == (counted.tally.counts()["recovered"], counted.tally.skipped())


def test_a_silent_job_that_is_given_up_counts_as_lost(counted: Counted) -> None:
    make_job(counted.queries.database, periodic_task="marked", state="running", on_lost="give_up")
    make_job(counted.queries.database, periodic_task="again", state="running", on_lost="rerun")
    counted.queries.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', busy_until = pgbeat.now() - interval '1 hour'"
    )

    counted.beat.dispatcher.run_cycle()

    assert 1 == counted.tally.counts()["lost"]


def test_jobs_of_which_no_message_was_sent_count_as_skipped(counted: Counted) -> None:
    make_due(counted.queries, "a")
    submit(counted)
    (job,) = counted.jobs()
    counted.published = Published(not_sent=[outgoing(id=job)])

    counted.deliver([job])

    assert {"not_sent": 1} == counted.tally.skipped()
