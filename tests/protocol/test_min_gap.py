"""The least gap between two starts of a name: which first start is too early, by the database's clock."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.worker_queries import JobState, MinGapViolation, Start, WorkerQueries
from celery_pgbeat.worker.start.guard import StartResult, start_job
from tests.harness.clock import Clock
from tests.harness.jobs import active, bury, finished, make_job, state
from tests.harness.transactions import Transaction, at_once

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
GAP = timedelta(seconds=55)  # an interval of 60 s, and a tolerance of 5 s
SECOND = timedelta(seconds=1)
SILENCE = timedelta(seconds=30)


@pytest.fixture
def reports(migrated_database: str, database_clock: Clock) -> Iterator[WorkerQueries]:
    database_clock.stand_at(NOON)
    database = Database(migrated_database)
    yield WorkerQueries(database)
    database.close()


def start_of(job: uuid.UUID, run: int = 0, attempt: int = 0) -> Start:
    return Start(job, run, attempt, uuid.uuid4(), "worker-a")


def job(reports: WorkerQueries, **columns: Any) -> Start:
    """Make a job of a row with a gap, whose jobs may overlap."""
    columns = {"periodic_task": "a", "min_gap": GAP, "exclusive": False, **columns}
    return start_of(make_job(reports.database, **columns), columns.get("run", 0), columns.get("attempt", 0))


def verdict(reports: WorkerQueries, start: Start) -> StartResult:
    return start_job(reports, start, SILENCE)


def last_start(reports: WorkerQueries, name: str = "a") -> datetime | None:
    rows = reports.database.execute(
        "select last_started_at from pgbeat.periodic_task_state where name = %(name)s", {"name": name}
    )
    return rows[0].last_started_at.astimezone(timezone.utc) if rows else None


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (0.0, StartResult.TOO_EARLY),
        (45.0, StartResult.TOO_EARLY),
        (54.999, StartResult.TOO_EARLY),
        (55.0, StartResult.STARTED),
        (60.0, StartResult.STARTED),
        (95.0, StartResult.STARTED),
    ],
)
def test_a_first_start_is_measured_against_the_last_one(
    reports: WorkerQueries, database_clock: Clock, after: float, expected: StartResult
) -> None:
    assert StartResult.STARTED is verdict(reports, job(reports)), "no last start: it runs"
    assert NOON == last_start(reports)
    database_clock.advance(timedelta(seconds=after))
    second = job(reports)

    assert expected is verdict(reports, second)

    started = expected is StartResult.STARTED
    assert (NOON + timedelta(seconds=after) if started else NOON) == last_start(reports)
    assert ("running" if started else "skipped") == state(reports.database, second.job)


def test_a_job_that_came_too_early_is_recorded_with_the_reason(
    reports: WorkerQueries, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    verdict(reports, job(reports))
    early = job(reports)
    verdict(reports, early)
    record = finished(reports.database, early.job)
    assert record is not None
    assert ("skipped", "min_gap", None, "worker-a", None) == tuple(
        record[name] for name in ("state", "reason", "started_at", "worker", "error")
    )
    assert active(reports.database, early.job) is None
    assert [f"Job {early.job} of 'a' is dropped: less than its min_gap of 0:00:55 since the last start"] == [
        each.message for each in caplog.records
    ]


def test_an_early_job_that_asks_again_is_dropped_again(reports: WorkerQueries) -> None:
    """The answer to its first question was lost."""
    verdict(reports, job(reports))
    early = job(reports)
    assert MinGapViolation("a", GAP) == reports.start_spaced(early, SILENCE)
    assert StartResult.DUPLICATE is verdict(reports, early)
    assert "skipped" == state(reports.database, early.job)


def test_a_start_whose_answer_was_lost_is_not_measured_against_itself(
    reports: WorkerQueries, database_clock: Clock
) -> None:
    start = job(reports)
    assert reports.start_spaced(start, SILENCE)
    database_clock.advance(SECOND)
    assert StartResult.STARTED is verdict(reports, start)
    assert NOON == last_start(reports)
    assert StartResult.DUPLICATE is verdict(reports, start_of(start.job))


def test_names_do_not_count_for_each_other(reports: WorkerQueries) -> None:
    verdict(reports, job(reports))
    assert StartResult.STARTED is verdict(reports, job(reports, periodic_task="b"))


@pytest.mark.parametrize(
    "columns",
    [
        {"origin": "manual"},
        {"attempt": 1, "state": "retrying"},
        {"run": 1, "state": "pending"},
        {"started_at": NOON - SECOND},  # its message went back to the broker
    ],
)
def test_what_is_no_first_start_of_a_schedule_s_is_never_too_early_and_counts(
    reports: WorkerQueries, database_clock: Clock, columns: dict[str, Any]
) -> None:
    verdict(reports, job(reports))
    database_clock.advance(SECOND)
    assert StartResult.STARTED is verdict(reports, job(reports, **columns))
    assert NOON + SECOND == last_start(reports)


def test_a_last_start_from_a_clock_that_was_set_back_since_counts_as_none(
    reports: WorkerQueries, database_clock: Clock
) -> None:
    verdict(reports, job(reports))
    database_clock.advance(-GAP + SECOND)
    assert StartResult.TOO_EARLY is verdict(reports, job(reports)), "so near it is no other clock's"
    database_clock.advance(-SECOND)
    assert StartResult.STARTED is verdict(reports, job(reports))
    assert NOON - GAP == last_start(reports)


def test_a_job_without_a_gap_takes_one_statement_and_leaves_no_trace(
    reports: WorkerQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    run = reports.database.run
    monkeypatch.setattr(reports.database, "run", lambda name, **given: asked.append(name) or run(name, **given))
    assert StartResult.STARTED is verdict(reports, job(reports, min_gap=None))
    assert ["start"] == asked
    assert last_start(reports) is None


def test_the_state_of_a_job_says_that_it_has_a_min_gap(reports: WorkerQueries) -> None:
    start = job(reports)
    assert JobState("sent", 0, 0, None, final=False, task="app.probe", spaced=True) == reports.state_of(start.job)


def test_of_two_starts_at_the_same_moment_one_runs_and_the_other_is_dropped(
    reports: WorkerQueries, database_clock: Clock
) -> None:
    databases = [Database(reports.database.url) for _ in range(4)]
    for number in range(20):
        name = f"row-{number}"
        starts = [job(reports, periodic_task=name) for _ in databases]
        barrier = threading.Barrier(len(databases))
        answers: list[Any] = []

        def try_it(
            database: Database,
            start: Start,
            barrier: threading.Barrier = barrier,
            answers: list[Any] = answers,
        ) -> None:
            barrier.wait()
            answers.append(WorkerQueries(database).start_spaced(start, SILENCE))

        threads = [threading.Thread(target=try_it, args=pair) for pair in zip(databases, starts, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 1 == answers.count(True)
        assert 3 == answers.count(MinGapViolation(name, GAP))
    for database in databases:
        database.close()


def test_of_many_copies_at_once_one_starts(reports: WorkerQueries) -> None:
    databases = [Database(reports.database.url) for _ in range(4)]
    for number in range(20):
        first = job(reports, periodic_task=f"row-{number}")
        barrier = threading.Barrier(len(databases))
        answers: list[Any] = []

        def try_it(
            database: Database,
            copy: uuid.UUID = first.job,
            barrier: threading.Barrier = barrier,
            answers: list[Any] = answers,
        ) -> None:
            barrier.wait()
            answers.append(WorkerQueries(database).start_spaced(start_of(copy), SILENCE))

        threads = [threading.Thread(target=try_it, args=(database,)) for database in databases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [False, False, False, True] == sorted(answers)
    for database in databases:
        database.close()


# --- late starts


def lost(reports: WorkerQueries, **columns: Any) -> Start:
    start = job(reports, **columns)
    bury(reports.database, start.job)
    assert "lost" == state(reports.database, start.job)
    return start


def test_a_late_start_counts_as_a_start_and_keeps_its_gap(reports: WorkerQueries, database_clock: Clock) -> None:
    start = lost(reports)
    database_clock.advance(SECOND)
    assert reports.start_lost(start, SILENCE)
    assert NOON + SECOND == last_start(reports)
    assert GAP == (active(reports.database, start.job) or {})["min_gap"]


@pytest.mark.parametrize(("after", "starts"), [(54.999, False), (55.0, True)])
def test_a_late_start_that_comes_too_early_stays_lost(
    reports: WorkerQueries, database_clock: Clock, after: float, starts: bool
) -> None:
    verdict(reports, before := job(reports))
    reports.finish(before, "succeeded")
    database_clock.advance(timedelta(seconds=after))
    late = lost(reports)
    waiting = make_job(reports.database, periodic_task="a", min_gap=GAP)

    assert starts is reports.start_lost(late, SILENCE)

    expected = ("running", "skipped") if starts else ("lost", "sent")
    assert expected == (state(reports.database, late.job), state(reports.database, waiting))


def test_a_late_manual_start_is_never_too_early(reports: WorkerQueries, database_clock: Clock) -> None:
    verdict(reports, before := job(reports))
    reports.finish(before, "succeeded")
    database_clock.advance(SECOND)
    assert reports.start_lost(lost(reports, origin="manual"), SILENCE)


def test_a_late_start_without_a_gap_leaves_no_trace(reports: WorkerQueries) -> None:
    assert reports.start_lost(lost(reports, min_gap=None), SILENCE)
    assert last_start(reports) is None


def row(reports: WorkerQueries, name: str = "a") -> None:
    reports.database.execute(
        "insert into pgbeat.periodic_task (name, task, min_gap) values (%(name)s, 'app.probe', '55 s')", {"name": name}
    )


def remove(reports: WorkerQueries, name: str = "a") -> None:
    reports.database.execute("delete from pgbeat.periodic_task where name = %(name)s", {"name": name})


def test_a_row_made_anew_under_an_old_name_does_not_inherit_the_last_start(
    reports: WorkerQueries, database_clock: Clock
) -> None:
    row(reports)
    assert StartResult.STARTED is verdict(reports, job(reports))
    remove(reports)
    database_clock.advance(SECOND)
    row(reports)

    assert StartResult.STARTED is verdict(reports, job(reports)), "the last start was another row's"
    assert StartResult.TOO_EARLY is verdict(reports, job(reports)), "and now it is its own"


def test_a_late_start_of_a_row_made_anew_is_not_measured_against_the_old_one(
    reports: WorkerQueries, database_clock: Clock
) -> None:
    row(reports)
    verdict(reports, job(reports))
    remove(reports)
    reports.database.execute("delete from pgbeat.active_job")
    database_clock.advance(SECOND)
    row(reports)

    assert reports.start_lost(lost(reports), SILENCE), "the last start was another row's"
    reports.database.execute("delete from pgbeat.active_job")
    assert not reports.start_lost(lost(reports), SILENCE), "and now it is its own"


def test_a_start_does_not_wait_for_an_author_that_inserts_the_row_again(
    reports: WorkerQueries, migrated_database: str
) -> None:
    row(reports)
    start = job(reports)
    author = Transaction(migrated_database)
    author.execute("delete from pgbeat.periodic_task where name = 'a'")
    author.execute("insert into pgbeat.periodic_task (name, task, min_gap) values ('a', 'app.probe', '55 s')")

    assert StartResult.STARTED is at_once(lambda: verdict(reports, start))
    author.commit()


def test_what_is_known_of_a_name_that_has_been_gone_for_long_is_pruned(
    reports: WorkerQueries, database_clock: Clock, migrated_database: str
) -> None:
    for name in ("a", "gone", "held"):
        row(reports, name)
        verdict(reports, job(reports, periodic_task=name))
    remove(reports, "gone")
    remove(reports, "held")
    reports.database.run("prune", retention=86400.0)
    assert None is not last_start(reports, "gone"), "not for long enough"
    database_clock.advance(timedelta(days=3))
    author = Transaction(migrated_database)
    author.execute("select from pgbeat.periodic_task_state where name = 'held' for update")

    at_once(lambda: reports.database.run("prune", retention=86400.0))

    author.rollback()
    assert [True, False, True] == [last_start(reports, name) is not None for name in ("a", "gone", "held")]
