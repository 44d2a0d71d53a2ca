"""The reports: what a worker writes about a job, one class for each kind, and the statement that writes it.

`Finish` and `Unstarted` have statements that write many at once (`worker_queries.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias, cast
from uuid import UUID

from celery_pgbeat.postgres.worker_queries import Finish, Start, Unstarted, WorkerQueries


@dataclass(frozen=True, slots=True)
class Retry:
    """A start that has sent the message of the next attempt: when that is due, and the error of this one."""

    start: Start
    delay: timedelta
    error: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """A start whose message goes back to the broker; with `resend` a beat sends another copy."""

    start: Start
    error: str
    resend: bool = False
    done: Callable[[], object] | None = None  # called once it is written or dropped


@dataclass(frozen=True, slots=True)
class Lost:
    """A start whose process died."""

    start: Start
    error: str


@dataclass(frozen=True, slots=True)
class Killed:
    """A start that the main process ended: `failed` by its hard time limit, or `revoked` on request.

    A terminated process may fail while it unwinds, and report that first: `revoked` overrules such a `failed`.
    """

    start: Start
    state: str
    error: str
    done: Callable[[], object] | None = None  # called once it is written or dropped


Report: TypeAlias = Finish | Unstarted | Retry | Requeue | Lost | Killed


def job_of(report: Report) -> UUID:
    """Return the job that a report is about."""
    return report.copy.job if isinstance(report, Unstarted) else report.start.job


def can_share(one: Report, other: Report) -> bool:
    """Whether one statement can write both reports."""
    return type(one) is type(other) and isinstance(one, Finish | Unstarted)


def write(report: Report, queries: WorkerQueries) -> None:
    """Write one report; waits while another transaction has locked the job's row."""
    match report:
        case Finish(start, state, error):
            queries.finish(start, state, error)
        case Unstarted(copy, state, worker, reason, error):
            queries.end_unstarted(copy, state, worker, reason=reason, error=error)
        case Retry(start, delay, error):
            queries.retry(start, delay, error)
        case Requeue(start, error, resend):
            queries.requeue(start, error, resend)
        case Lost(start, error):
            queries.give_up_start(start, error)
        case Killed(start, state, error):
            if not queries.finish(start, state, error) and state == "revoked":
                queries.revoke_failed(start, error)


def write_batch(reports: Sequence[Report], queries: WorkerQueries) -> set[UUID]:
    """Write reports that can share a statement; return the jobs whose rows were locked and are unchanged."""
    if isinstance(reports[0], Finish):
        return queries.finish_many(cast("Sequence[Finish]", reports))
    if isinstance(reports[0], Unstarted):
        return queries.end_unstarted_many(cast("Sequence[Unstarted]", reports))
    write(reports[0], queries)
    return set()
