"""The short submit does what the long one does, or leaves the row to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.planning import Decision, Skipped
from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.jobs import make_job
from tests.harness.ticks import decided, insert, jobs, make_due, row_of
from tests.harness.transactions import Transaction

FAR = datetime(3000, 1, 1, tzinfo=timezone.utc)
# What differs between two rows of one definition, or between two instants at which they are submitted.
OWN = {"id", "name", "periodic_task", "created_at", "updated_at", "finished_at", "busy_until", "blocked_by"}
CASES: dict[str, tuple[dict[str, Any], Callable[[Decision], Decision]]] = {
    "a plain row": ({}, lambda decision: decision),
    "all that a message needs": (
        {
            "args": [1, "two"],
            "kwargs": {"a": {"b": None}},
            "queue": "q",
            "priority": 3,
            "options": {"expires": 60},
            "sensitive": True,
            "max_run_time": "30m",
            "min_gap": "5m",
            "pause_after_failures": 3,
            "timezone": "Europe/Berlin",
            "on_lost": "rerun",
            "tracking": "send",
        },
        lambda decision: decision,
    ),
    "one that may overlap": ({"overlap": "allow"}, lambda decision: decision),
    "the last of its runs": ({"max_runs": 1}, lambda decision: decision),
    "not the last of its runs": ({"max_runs": 2}, lambda decision: decision),
    "the end of its schedule": ({}, lambda decision: decision._replace(next_run_at=None, planned_for=None)),
    "a record beside the job": ({}, lambda decision: decision._replace(skipped=passed(decision, 4))),
    "a record in place of a job": (
        {"max_runs": 1},
        lambda decision: decision._replace(job=None, scheduled_for=None, due_at=None, skipped=passed(decision, 1)),
    ),
    "a caught up one": ({"catchup": "all"}, lambda decision: decision._replace(origin="catchup")),
}


def passed(decision: Decision, count: int) -> Skipped:
    last = decision.row.next_run_at
    return Skipped(last - timedelta(hours=count), last - timedelta(minutes=1), count, "too_late")


def due_decision(store: BeatQueries, name: str, change: Callable[[Decision], Decision], **columns: Any) -> Decision:
    insert(store, name, **{"next_run_at": datetime(2026, 5, 1, tzinfo=timezone.utc), **columns})
    (row,) = store.mark(10)
    return change(decided(row, FAR))


def left_behind(store: BeatQueries, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the row and its jobs, without what is each one's own."""
    row = {column: value for column, value in row_of(store, name).items() if column not in OWN}
    for column in ("planned_from", "schedule_set_at", "failures_from", "last_run_at"):
        row.pop(column)
    found = [job for job in jobs(store) if job["periodic_task"] == name]
    shown = [{column: value for column, value in job.items() if column not in OWN} for job in found]
    return row, sorted(shown, key=lambda job: str(job["state"]))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("full_acts_as", ["full", "send"])
def test_a_free_row_is_submitted_as_the_long_statement_does_it(
    store: BeatQueries, case: str, full_acts_as: str
) -> None:
    columns, change = CASES[case]
    long = due_decision(store, "long", change, **columns)
    (told,) = store.submit([long], "Asia/Tokyo", True, True, full_acts_as)
    short = due_decision(store, "short", change, **columns)

    (answer,) = store.submit_free([short], "Asia/Tokyo", full_acts_as)

    assert replace(told, name="short") == answer
    assert left_behind(store, "long") == left_behind(store, "short")
    assert row_of(store, "short")["last_run_at"] == short.decided_until
    made = [job["id"] for job in jobs(store) if job["periodic_task"] == "short" and job["state"] == "pending"]
    assert made == ([] if short.job is None else [short.job])


def untouched(store: BeatQueries, decision: Decision) -> None:
    before = (row_of(store, "a"), jobs(store))
    assert [] == store.submit_free([decision], "UTC")
    assert before == (row_of(store, "a"), jobs(store))


def test_a_row_with_a_job_in_the_way_is_left(store: BeatQueries) -> None:
    decision = due_decision(store, "a", lambda made: made)
    make_job(store.database, periodic_task="a")

    untouched(store, decision)


def test_a_job_of_this_very_id_is_left_to_be_recorded(store: BeatQueries) -> None:
    decision = due_decision(store, "a", lambda made: made, overlap="allow")
    make_job(store.database, id=str(decision.job), periodic_task="a")

    untouched(store, decision)


@pytest.mark.parametrize(
    "write",
    [
        "marked_at = marked_at + interval '1 us'",
        "marked_by = 'beat-b'",
        "enabled = false",
        "next_run_at = next_run_at + interval '1 us'",
        "args = '[2]'",
    ],
)
def test_a_row_that_was_written_since_is_left(store: BeatQueries, write: str) -> None:
    decision = due_decision(store, "a", lambda made: made)
    store.database.execute(f"update pgbeat.periodic_task set {write}")

    untouched(store, decision)


def test_an_occurrence_that_is_decided_already_is_left(store: BeatQueries) -> None:
    decision = due_decision(store, "a", lambda made: made)
    store.database.execute("update pgbeat.periodic_task set last_run_at = next_run_at")

    untouched(store, decision)


def test_a_locked_row_is_skipped_and_the_others_are_submitted(store: BeatQueries, migrated_database: str) -> None:
    for name in ("a", "b"):
        make_due(store, name)
    rows = store.mark(10)
    other = Transaction(migrated_database)
    other.execute("select from pgbeat.periodic_task where name = 'a' for update")

    answers = store.submit_free([decided(row) for row in rows], "UTC")
    other.rollback()

    assert ["b"] == [answer.name for answer in answers]
    assert ["a"] == list(store.still_marked(["a", "b"]))
