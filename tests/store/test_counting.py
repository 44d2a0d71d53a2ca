"""What a beat counts is what its statements answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pytest

from celery_pgbeat.measures.counting import CountingQueries
from celery_pgbeat.measures.tally import Tally
from celery_pgbeat.planning import Skipped
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from tests.store.jobs import make_job
from tests.store.ticks import LEASE, beat, decided, make_due

SECOND = timedelta(seconds=1)


@dataclass
class Counted:
    """A store that counts, what it counts, and by how much its beat's clock is ahead."""

    store: CountingQueries
    tally: Tally
    ahead: timedelta = timedelta(0)


@pytest.fixture
def counted(migrated_database: str) -> Counted:
    tally = Tally()
    store = CountingQueries(
        Database(migrated_database), "beat-a", LEASE, tally, lambda: datetime.now(timezone.utc) + made.ahead
    )
    made = Counted(store, tally)
    return made


def submit_free(store: BeatQueries) -> None:
    store.submit_free([decided(row) for row in store.mark(10)], "UTC")


def submit(store: BeatQueries) -> None:
    store.submit([decided(row) for row in store.mark(10)], "UTC", judging=True, resending=True)


@pytest.mark.parametrize("how", [submit_free, submit])
def test_what_is_confirmed_counts_as_sent_with_how_late_it_was(
    counted: Counted, how: Callable[[BeatQueries], None]
) -> None:
    make_due(counted.store, "a")
    make_due(counted.store, "b")
    how(counted.store)
    assert 0 == counted.tally.counts()["sent"]
    rows = counted.store.database.execute("select id from pgbeat.active_job")

    counted.ahead = 20 * SECOND
    counted.store.confirm([(row.id, 0.0) for row in rows])

    buckets, total = counted.tally.lateness()
    assert (2, 0, 2) == (counted.tally.counts()["sent"], dict(buckets)["10.0"], dict(buckets)["+Inf"])
    assert 39 < total < 60


def test_a_job_whose_row_was_locked_is_counted_when_it_is_confirmed(counted: Counted, migrated_database: str) -> None:
    make_due(counted.store, "a")
    submit_free(counted.store)
    (row,) = counted.store.database.execute("select id from pgbeat.active_job")
    with (
        beat(migrated_database, "other")
        .database.engine.execution_options(isolation_level="READ COMMITTED")
        .begin() as holding
    ):
        holding.exec_driver_sql("select from pgbeat.active_job for update")
        assert {row.id} == counted.store.confirm([(row.id, 0.0)]).held
    assert 0 == counted.tally.counts()["sent"]

    counted.store.confirm([(row.id, 0.0)])

    assert (1, 1) == (counted.tally.counts()["sent"], counted.tally.lateness()[0][-1][1])


def test_a_job_in_the_way_and_what_is_passed_over_count_as_skipped(counted: Counted) -> None:
    make_due(counted.store, "a")
    make_job(counted.store.database, periodic_task="a", state="running", exclusive=True)
    (row,) = counted.store.mark(10)
    passed = Skipped(row.next_run_at - 3 * SECOND, row.next_run_at - SECOND, 3, "too_late")

    counted.store.submit([decided(row, skipped=passed)], "UTC", judging=True, resending=True)

    assert {"overlap": 1, "too_late": 3} == counted.tally.skipped()


def test_what_was_taken_from_this_beat_is_not_counted(counted: Counted) -> None:
    make_due(counted.store, "a")
    (row,) = counted.store.mark(10)
    counted.store.unmark()

    counted.store.submit([decided(row)], "UTC", judging=True, resending=True)

    assert not counted.tally.skipped()


def test_a_refusal_is_counted_and_the_third_one_loses_the_job(counted: Counted) -> None:
    make_due(counted.store, "a")
    submit_free(counted.store)
    (row,) = counted.store.database.execute("select id from pgbeat.active_job")

    for _ in range(3):
        counted.store.refuse([(row.id, "no such exchange")])

    assert (3, 1) == (counted.tally.counts()["refused"], counted.tally.counts()["lost"])


def test_what_is_taken_over_counts_as_recovered_or_skipped(counted: Counted) -> None:
    make_due(counted.store, "a")
    make_due(counted.store, "gone")
    submit_free(counted.store)
    counted.store.give_back()
    counted.store.database.execute("delete from pgbeat.periodic_task where name = 'gone'")

    counted.store.recover(10, on_time=32 * SECOND)

    assert (1, {"deleted": 1}) == (counted.tally.counts()["recovered"], counted.tally.skipped())


def test_a_silent_job_that_is_given_up_counts_as_lost(counted: Counted) -> None:
    make_job(counted.store.database, periodic_task="marked", state="running", on_lost="give_up")
    make_job(counted.store.database, periodic_task="again", state="running", on_lost="rerun")
    counted.store.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', busy_until = pgbeat.now() - interval '1 hour'"
    )

    counted.store.judge(10, resending=True)

    assert 1 == counted.tally.counts()["lost"]


def test_jobs_that_are_not_allowed_count_as_skipped(counted: Counted) -> None:
    make_due(counted.store, "a")
    submit_free(counted.store)
    (row,) = counted.store.database.execute("select id from pgbeat.active_job")

    counted.store.skip([row.id], "not_allowed")

    assert {"not_allowed": 1} == counted.tally.skipped()
