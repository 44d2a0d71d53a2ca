"""Jobs: what was decided, the latest first, and one of them in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args

from celery_pgbeat.api.ids import read_job_id
from celery_pgbeat.api.rows import read_row
from celery_pgbeat.choices import JobState
from celery_pgbeat.columns_of_job import PUBLIC, Job
from celery_pgbeat.errors import NotPermitted, UnknownJob
from celery_pgbeat.web.page import Page, Query
from celery_pgbeat.web.pages.definition import SENSITIVE, call_in_words
from celery_pgbeat.web.reading import Reader

ROWS = 50
STATES: tuple[str, ...] = get_args(JobState)
REASONS = (
    *("overlap", "blackout", "too_late", "paused", "deleted", "limit", "min_gap", "superseded", "not_allowed"),
    *("not_sent", "finished", "after", "shadow"),
)
# The columns for which the page of a job has a place of its own, in templates/job.html.
PLACED = (
    *("id", "periodic_task", "scheduled_for", "last_scheduled_for", "occurrences", "origin", "state", "reason"),
    *("blocked_by", "task", "queue", "created_at", "sent_at", "started_at", "finished_at", "attempt", "sends"),
    *("beat", "worker", "error", "busy_until", "owner", "due_by", "note", "stop_request", "due_at", "group_name"),
)
# How far one page looks back where a filter may leave hardly any job; the last one is without bound.
LOOKS: Mapping[str, timedelta | None] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "all": None,
}


@dataclass(frozen=True, slots=True)
class Run:
    """A job, and how long its parts took.

    Attributes:
        job: the job.
        late: how long after it was due it was decided; None for a backfill, whose occurrences are past.
        queued: from the decision to the start.
        took: from the start to the end, or to now.
    """

    job: Job
    late: timedelta | None
    queued: timedelta | None
    took: timedelta | None


def runs_of(jobs: Sequence[Job], now: datetime) -> list[Run]:
    """Return the jobs with how long their parts took."""
    return [_run_of(job, now) for job in jobs]


def _run_of(job: Job, now: datetime) -> Run:
    started, ended = job.started_at, job.finished_at or now
    return Run(
        job,
        late=None
        if job.origin == "backfill"
        else max(job.created_at - (job.due_at or job.scheduled_for), timedelta(0)),
        queued=None if started is None else max(started - job.created_at, timedelta(0)),
        took=None if started is None else max(ended - started, timedelta(0)),
    )


def read_jobs(reader: Reader, query: Query) -> Page:
    """Read a page of jobs."""
    state, reason = query.choice("state", STATES), query.choice("reason", REASONS)
    name, task, queue, group = query.name() or None, query.text("task"), query.text("queue"), query.text("group")
    filters: dict[str, Any] = {"name": name, "reason": reason, "task": task, "queue": queue}
    chosen = {key: value for key, value in {"state": state, "group": group, **filters}.items() if value is not None}
    queries = reader.queries
    now = queries.clock()
    look = query.choice("look", LOOKS) or ("day" if set(chosen) - {"name"} else "all")
    back = LOOKS[look]
    before, before_at = query.text("before"), query.instant("before_at")
    rows = queries.page_of_jobs(
        limit=ROWS + 1,
        states=None if state is None else [state],
        since=None if back is None else now - back,
        before=str(read_job_id(before)) if before and before_at else None,
        before_at=before_at if before else None,
        group_name=group,
        **filters,
    )
    found = [read_row(Job, row) for row in rows]
    further = list(LOOKS)[list(LOOKS).index(look) + 1 :]
    return Page(
        "jobs",
        "Jobs",
        {
            "now": now,
            "runs": runs_of(found[:ROWS], now),
            "more": found[ROWS - 1] if len(found) > ROWS else None,
            "is_first": before is None,
            "chosen": chosen,
            "look": look,
            "further": further[0] if further else None,
            "since": None if back is None else now - back,
            "states": STATES,
            "reasons": REASONS,
        },
    )


def read_job(reader: Reader, query: Query) -> Page:
    """Read one job."""
    id = str(read_job_id(query.name("id")))
    queries = reader.queries
    row = queries.job(id)
    if row is None:
        raise UnknownJob(f"There is no job {id}: it may have been removed after pgbeat_retention")
    now = queries.clock()
    run = _run_of(read_row(Job, row), now)
    return Page(
        "job",
        f"Job {id[:8]}",
        {
            "now": now,
            "run": run,
            "has_task": queries.look_at(run.job.periodic_task) is not None,
            "arguments": _arguments(reader, id),
            "others": _others(run.job),
        },
    )


def _others(job: Job) -> list[tuple[str, Any]]:
    """Return the columns for which the page has no place of its own, with their values."""
    names = (name for name in PUBLIC if name not in PLACED)
    return [(name.replace("_", " ").capitalize(), value) for name in names if (value := getattr(job, name)) is not None]


def _arguments(reader: Reader, id: str) -> str | None:
    """Return the call in words; None if it is not kept, or this user of the database may not read it."""
    try:
        with reader.database.attempt():
            kept = reader.queries.arguments_of_job(id)
    except NotPermitted:
        return None
    if kept is None:
        return None
    return SENSITIVE if kept["hidden"] else call_in_words(kept)
