"""A job keeps when it was due and its group, whatever becomes of it: in the view `job`, in Python and in the shell."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from click.testing import CliRunner

from celery_pgbeat.api import PgBeat
from celery_pgbeat.cli import main
from celery_pgbeat.planning import Decision, Skipped
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from tests.harness.jobs import make_job
from tests.harness.ticks import decided, insert, jobs

OCCURRENCE = datetime(2026, 5, 1, tzinfo=timezone.utc)
DUE = OCCURRENCE + timedelta(seconds=40)  # by its jitter


@pytest.fixture
def api(migrated_database: str) -> PgBeat:
    return PgBeat(url=migrated_database)


def decision(store: BeatQueries, name: str = "a", **columns: Any) -> Decision:
    insert(store, name, **{"group_name": "reports", "jitter": "1m", "next_run_at": DUE, **columns})
    (row,) = [row for row in store.mark(10) if row.name == name]
    return decided(row)._replace(scheduled_for=OCCURRENCE, decided_until=OCCURRENCE)


def kept(store: BeatQueries) -> list[tuple[str, datetime | None, str | None]]:
    return [(job["state"], job["due_at"], job["group_name"]) for job in jobs(store)]


def test_a_job_has_them_from_its_submit_to_its_end(store: BeatQueries) -> None:
    made = decision(store)
    store.submit([made], "UTC", True, True)
    assert [("pending", DUE, "reports")] == kept(store)

    assert made.job is not None
    workers = WorkerQueries(store.database)
    start = Start(made.job, 0, 0, uuid.uuid4(), "worker-a")
    assert workers.start(start, timedelta(minutes=1))
    workers.finish(start, "succeeded")

    assert [("succeeded", DUE, "reports")] == kept(store)


def test_an_occurrence_that_is_skipped_has_them(store: BeatQueries) -> None:
    made = decision(store)
    make_job(store.database, periodic_task="a")

    store.submit([made], "UTC", True, True)

    assert [("skipped", DUE, "reports"), ("sent", None, None)] == kept(store)


def test_occurrences_that_are_skipped_together_have_the_group(store: BeatQueries) -> None:
    passed = Skipped(OCCURRENCE - timedelta(hours=3), OCCURRENCE - timedelta(hours=1), 3, "too_late")
    made = decision(store)._replace(skipped=passed, job=None, scheduled_for=None, due_at=None)

    store.submit([made], "UTC", True, True)

    assert [("skipped", None, "reports")] == kept(store)


def test_what_a_person_asks_for_was_never_due(store: BeatQueries, api: PgBeat) -> None:
    insert(store, "a", group_name="reports")
    api.trigger("a")
    assert [("pending", None, "reports")] == kept(store)


def test_jobs_are_found_by_the_group_in_which_they_were_made(
    store: BeatQueries, api: PgBeat, migrated_database: str
) -> None:
    for name, group in (("a", "reports"), ("b", "mails"), ("c", None)):
        insert(store, name, group_name=group)
        api.trigger(name)
    store.database.execute("update pgbeat.periodic_task set group_name = 'mails' where name = 'c'")

    assert [("b", "mails")] == [(job.periodic_task, job.group_name) for job in api.jobs(group_name="mails")]
    words = ("--url", migrated_database, "jobs", "--group-name", "reports", "--json")
    (shown,) = json.loads(CliRunner().invoke(main, words).stdout)
    assert ("a", "reports", None) == (shown["periodic_task"], shown["group_name"], shown["due_at"])
