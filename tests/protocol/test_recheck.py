"""By when a job is looked at again: never after its deadline, and seldom before its end."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.statements import statement
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from tests.harness.clock import Clock
from tests.harness.jobs import active, make_job
from tests.harness.reads import read_by
from tests.harness.session import Session
from tests.harness.ticks import LEASE, beat, jobs, make_due, submit
from tests.harness.wait import eventually

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
ON_TIME = timedelta(seconds=32)
SILENCE = timedelta(seconds=30)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
ROWS = 300
HERD = 5_000


@pytest.fixture
def clock(migrated_database: str) -> Clock:
    clock = Clock(migrated_database)
    clock.stand_at(NOON)
    return clock


@pytest.fixture
def store(migrated_database: str, clock: Clock) -> Iterator[BeatQueries]:
    made = beat(migrated_database)
    yield made
    made.database.close()


def pending(store: BeatQueries, name: str = "a") -> uuid.UUID:
    """Submit a job at the clock's time."""
    make_due(store, name)
    store.database.execute("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    submit(store, store.mark(10))
    return next(job["id"] for job in jobs(store) if job["periodic_task"] == name)


def sent(store: BeatQueries) -> uuid.UUID:
    job = pending(store)
    assert {job} == store.confirm([(job, 0.0)]).jobs
    return job


def row(store: BeatQueries, job: uuid.UUID) -> dict[str, Any]:
    """Return a job's row with the instant by which it is looked at, which has to be finite."""
    found = active(store.database, job)
    assert found is not None
    (look,) = store.database.execute("select check_at from pgbeat.active_job where id = %(job)s", {"job": job})
    return {**found, "check_at": look.check_at}


def start_of(job: uuid.UUID, attempt: int = 0) -> Start:
    return Start(job, 0, attempt, uuid.uuid4(), "worker-a")


def started(store: BeatQueries, job: uuid.UUID) -> Start:
    start = start_of(job)
    assert WorkerQueries(store.database).start(start, SILENCE)
    return start


def test_an_unsent_job_is_looked_at_when_the_lease_of_its_mark_is_over(store: BeatQueries, clock: Clock) -> None:
    job = pending(store)
    assert NOON + LEASE == row(store, job)["check_at"]

    clock.advance(LEASE)
    assert not store.look().unsent
    clock.advance(SECOND)

    assert store.look().unsent
    assert [job] == [taken.id for taken in store.recover(10, ON_TIME)]
    assert not store.look().unsent


def test_a_job_that_has_begun_is_moved_on_when_the_lease_is_over(store: BeatQueries, clock: Clock) -> None:
    job = sent(store)
    assert NOON + LEASE == row(store, job)["check_at"]

    clock.advance(LEASE)
    view = store.look()

    assert (view.in_time, view.past_deadline, view.unsent) == (True, False, False)
    assert 1 == store.recheck(10)
    assert NOON + HOUR == row(store, job)["check_at"] == row(store, job)["busy_until"]
    assert not store.look().in_time


def test_a_start_that_is_silent_is_found_though_its_job_had_waited_long(store: BeatQueries, clock: Clock) -> None:
    job = sent(store)
    clock.advance(LEASE)
    store.recheck(10)
    started(store, job)

    clock.advance(SILENCE)
    assert not store.look().past_deadline
    clock.advance(SECOND)

    assert store.look().past_deadline
    assert [job] == [verdict.id for verdict in store.judge(10, resending=True)]


def test_a_spaced_start_brings_the_look_forward_as_well(store: BeatQueries) -> None:
    job = make_job(store.database, min_gap=SECOND, check_at=NOON + HOUR)

    assert WorkerQueries(store.database).start_spaced(start_of(job), SILENCE) is True
    assert NOON + SILENCE == row(store, job)["check_at"]


def test_a_heartbeat_brings_the_look_forward_where_it_shortens_the_deadline(store: BeatQueries) -> None:
    start = started(store, make_job(store.database))
    store.database.execute(
        "update pgbeat.active_job set check_at = pgbeat.now() + interval '1 h', max_run_time = '1 s', "
        "attempt_at = pgbeat.now() - interval '10 s'"
    )

    WorkerQueries(store.database).heartbeat("worker-a", [start], SILENCE)

    assert NOON + 22 * SECOND == row(store, start.job)["busy_until"] == row(store, start.job)["check_at"]


def test_a_heartbeat_leaves_the_look_where_it_is(store: BeatQueries, clock: Clock) -> None:
    start = started(store, sent(store))
    clock.advance(10 * SECOND)

    WorkerQueries(store.database).heartbeat("worker-a", [start], SILENCE)

    assert NOON + LEASE == row(store, start.job)["check_at"]


@pytest.mark.parametrize(("delay", "check_at"), [(SECOND, NOON + HOUR + SECOND), (2 * HOUR, NOON + 2 * HOUR)])
def test_a_retry_is_looked_at_by_its_deadline(store: BeatQueries, delay: timedelta, check_at: datetime) -> None:
    start = started(store, make_job(store.database))
    store.database.execute("update pgbeat.active_job set check_at = pgbeat.now() + interval '2 hours'")

    assert WorkerQueries(store.database).retry(start, delay, "it failed")

    assert check_at == row(store, start.job)["check_at"] <= row(store, start.job)["busy_until"]


@pytest.mark.parametrize("resend", [True, False])
def test_a_requeued_job_is_to_be_sent_at_once_or_looked_at_by_its_deadline(store: BeatQueries, resend: bool) -> None:
    start = started(store, make_job(store.database))
    store.database.execute("update pgbeat.active_job set check_at = pgbeat.now() + interval '2 hours'")

    assert WorkerQueries(store.database).requeue(start, "its process died", resend)

    assert resend == store.look().unsent
    assert row(store, start.job)["check_at"] <= row(store, start.job)["busy_until"]


@pytest.mark.parametrize("step", ["confirm", "start", "heartbeat"])
def test_a_job_that_was_to_be_sent_and_has_gone_on_is_looked_at_again(
    store: BeatQueries, clock: Clock, step: str
) -> None:
    """Given back, taken by nobody yet, and its message is at a worker all the same."""
    job = pending(store)
    if step == "confirm":
        store.database.execute("update pgbeat.active_job set check_at = '-infinity'")
        store.confirm([(job, 0.0)])
    else:
        store.give_back([job])
        if step == "start":
            started(store, job)
        else:
            assert [job] == WorkerQueries(store.database).heartbeat("worker-a", [start_of(job)], SILENCE)

    assert NOON < row(store, job)["check_at"] <= row(store, job)["busy_until"]
    clock.advance(2 * HOUR)
    assert store.look().past_deadline


def test_a_row_that_says_nothing_of_it_is_looked_at_at_once(store: BeatQueries) -> None:
    job = make_job(store.database)

    assert store.look().in_time
    assert 1 == store.recheck(10)
    assert row(store, job)["busy_until"] == row(store, job)["check_at"]


def test_a_job_that_waits_for_its_turn_is_never_looked_at(store: BeatQueries) -> None:
    job = make_job(store.database, state="buffered", exclusive=False)
    store.database.execute("update pgbeat.active_job set busy_until = 'infinity'")

    assert 1 == store.recheck(10)

    (found,) = store.database.execute("select isfinite(check_at) as finite, id from pgbeat.active_job")
    assert (job, False) == (uuid.UUID(str(found.id)), found.finite)
    assert not store.look().in_time


def test_what_is_late_is_not_moved_on(store: BeatQueries) -> None:
    """Else a look would find it, and find it again, while nobody may judge it yet."""
    make_job(store.database)
    store.database.execute("update pgbeat.active_job set busy_until = pgbeat.now() - interval '1 s'")

    view = store.look()

    assert (view.in_time, view.past_deadline) == (False, True)
    assert 0 == store.recheck(10)


def test_a_job_that_was_marked_before_the_clock_was_set_back_is_sent(store: BeatQueries, clock: Clock) -> None:
    job = pending(store)
    clock.advance(-HOUR)
    assert not store.look().unsent

    assert 1 == store.recheck_future_marks()

    assert [job] == [taken.id for taken in store.recover(10, ON_TIME)]
    assert 0 == store.recheck_future_marks(), "a mark of now is nobody's to take"


def test_a_mark_from_before_the_clock_was_set_back_delays_its_job_by_one_lease(
    store: BeatQueries, clock: Clock
) -> None:
    make_due(store, "a")
    store.database.execute("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    marked = store.mark(10)
    clock.advance(-HOUR)

    submit(store, marked)

    assert NOON - HOUR + LEASE == row(store, jobs(store)[0]["id"])["check_at"]


# What it is good for: the confirm and the start rewrite no index.


def share_of_hot_updates(store: BeatQueries, clock: Clock) -> float:
    """Submit, confirm and start jobs; return the share of the updates that rewrote no index."""
    store.database.execute(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) "
        f"select 'row-' || n, 'app.probe', 'every 1h', pgbeat.now() from generate_series(1, {ROWS}) n"
    )
    submit(store, store.mark(ROWS))
    made = [job["id"] for job in jobs(store)]
    clock.advance(SECOND)
    assert ROWS == len(store.confirm([(job, 0.0) for job in made]).jobs)
    store.database.execute(
        "vacuum pgbeat.active_job"
    )  # what the next update does for itself, if nobody reads meanwhile
    for job in made:
        started(store, job)
    store.database.close()  # a session tells its counts at its end at the latest
    counted = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relid = 'pgbeat.active_job'::regclass"
    eventually(lambda: store.database.execute(counted)[0].n_tup_upd == 2 * ROWS, 20, "all updates are counted")
    (updates,) = store.database.execute(counted)
    return float(updates.n_tup_hot_upd / updates.n_tup_upd)


def test_confirm_and_start_rewrite_no_index(store: BeatQueries, clock: Clock) -> None:
    assert 0.95 < share_of_hot_updates(store, clock)


@pytest.mark.parametrize("index", ["(busy_until)", "(created_at) where state = 'pending'"])
def test_an_index_on_what_they_write_would_be_rewritten_each_time(store: BeatQueries, clock: Clock, index: str) -> None:
    """The control."""
    store.database.execute(f"create index on pgbeat.active_job {index}")

    assert 0 == share_of_hot_updates(store, clock)


def test_p11_a_look_reads_only_the_jobs_whose_check_at_has_passed(store: BeatQueries) -> None:
    make_job(store.database)
    store.database.execute(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until, check_at) select gen_random_uuid(), 'row-' || n, "
        "pgbeat.now(), 'schedule', 'sent', true, 'app.probe', '{}', 'give_up', 'full', '1 hour', "
        f"pgbeat.now() + interval '1 hour', pgbeat.now() + interval '1 hour' from generate_series(1, {HERD}) n"
    )
    store.database.execute("vacuum analyze pgbeat.active_job")

    for name in ("recheck", "judge", "recover", "give_back"):
        rows = store.database.execute(
            f"explain (analyze, timing off) {statement(name, 'pgbeat')}",
            {
                "lease": 15.0,
                "batch": 10,
                "resending": True,
                "on_time": 32.0,
                "lazy_names": [],
                "beat": "beat-a",
                "jobs": None,
                "late": False,
            },
        )
        plan = "\n".join(row[0] for row in rows)
        assert "Seq Scan on active_job" not in plan, f"{name}: {plan}"
    session = Session(store.database.engine.url.render_as_string(hide_password=False))
    assert read_by(session)["rows"] < 20
