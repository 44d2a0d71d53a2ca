"""The table of the columns of a job: the single definition of each column, in one line.

Made from it: what Python returns (`Job`), Django's model, the view `job`, what `new_job` and `archived` write into
`active_job` and `finished_job`, what a lost job needs to start after all, the grants of the reader, and the comments in
the database with the pages made of them (see `postgres/job_column_lists.py`). Only the tables themselves, in the
migrations, are written again; a test compares them.

Pure: imports nothing of Celery, no driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Literal, get_type_hints
from uuid import UUID

from celery_pgbeat.choices import JobOrigin, JobState
from celery_pgbeat.columns import SQL_TYPES, type_of

# How a column of `active_job` is filled when a job is made: with the column of the periodic task that has its name,
# with NULL, 0 or false, or by an expression in `new_job`. None: the table does not have it.
Made = Literal["copied", "empty", "computed"] | None
# How one of `finished_job` is filled when a job ends: with the column of the active job, or in `archived`.
Ended = Literal["kept", "computed"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobColumn:
    """One column of a job.

    Attributes:
        name: of the column, in Python and SQL.
        type: what Python reads of it.
        says: what it is, in a sentence.
        made: how `active_job` gets it.
        ended: how `finished_job` gets it.
        active: what the view `job` shows of an active job, if that is not the column.
        final: likewise of a final job.
        hidden: whether the role reader may not read it.
        public: whether the view and Python have it.
        hot: whether a confirm, a start, a heartbeat or the end of a mark writes it. These come last in `active_job`:
            the WAL has of a new version only what lies between the first and the last difference from the old one.
        since: the migration that adds it. Postgres has the columns of a table in this order.
    """

    name: str
    type: Any
    says: str
    made: Made = "empty"
    ended: Ended = "kept"
    active: str = ""
    final: str = ""
    hidden: bool = False
    public: bool = True
    hot: bool = False
    since: int = 1

    @property
    def sql_type(self) -> str:
        """Its type in Postgres."""
        return "uuid" if self.type is UUID else SQL_TYPES[self.type]


def column(says: str, **others: Any) -> Any:
    """Describe a column that the view `job` and Python have."""
    return field(metadata={"says": says, **others})


@dataclass(frozen=True, slots=True)
class Job:
    """One row of `pgbeat.job`, as it was when it was read."""

    id: UUID = column("The Celery task id.", made="computed")
    periodic_task: str = column("The name of the periodic task.", made="computed")
    scheduled_for: datetime = column("The instant of the occurrence.", made="computed")
    last_scheduled_for: datetime | None = column(
        "The end of the range, if several occurrences were skipped together.", made=None, ended="computed"
    )
    occurrences: int = column("How many occurrences the row records.", made=None, ended="computed", active="1")
    origin: JobOrigin = column("schedule, catchup, backfill or manual.", made="computed")
    state: JobState = column(
        "pending, sent, running, retrying, buffered, waiting (for other tasks), error (failed, and waiting for a "
        "decision), created (for people: no person has picked it up yet); final: succeeded, failed, revoked, expired, "
        "lost, skipped, untracked (sent, where tracking is send).",
        made="computed",
        ended="computed",
        hot=True,
    )
    reason: str | None = column(
        "Why it was skipped: overlap, blackout, too_late, paused, deleted, limit, min_gap, superseded, not_allowed, "
        "not_sent, finished, after (a task before it has not succeeded), shadow (pgbeat_shadow: it would have been "
        "sent).",
        made=None,
        ended="computed",
    )
    blocked_by: UUID | None = column("The job that blocked it.", made=None, ended="computed")
    task: str | None = column("The Celery task; NULL for a task for people without one.", made="copied")
    queue: str | None = column("The queue it was sent to; NULL: where the app routes the task.", made="copied")
    created_at: datetime = column("When it was decided.", made="computed")
    sent_at: datetime | None = column(
        "When a beat recorded that the broker had the message. NULL: it was not sent, or its run began or ended before "
        "that was recorded; started_at is set then.",
        ended="computed",
        hot=True,
    )
    started_at: datetime | None = column("When it first started.", ended="computed", hot=True)
    finished_at: datetime | None = column("When it became final.", made=None, ended="computed")
    attempt: int = column("How many retries came before this attempt.", ended="computed", hot=True)
    sends: int = column("How often the message was handed to the broker.", made="computed")
    beat: str | None = column("The beat that sent it.", made="computed", ended="computed")
    worker: str | None = column("The worker that started it.", ended="computed", hot=True)
    error: str | None = column("What went wrong.", ended="computed", hot=True)
    busy_until: datetime | None = column(
        "Until when it counts as under way without a heartbeat; after that the job is sent again, run again or lost. "
        "NULL for a task for people.",
        made="computed",
        ended="computed",
        active="{schema}.in_the_calendar(case when wait_reason is null then busy_until else "
        "{schema}.busy_until_of_waiting(wait_reason, periodic_task, group_name, created_at + pickup_deadline) end)",
        final="{schema}.in_the_calendar(busy_until)",
        hot=True,
    )
    owner: str | None = column("The person who has the task for people, or had it when it ended.")
    due_by: datetime | None = column("When the task for people is overdue; NULL: never.")
    note: str | None = column("What its owner said of its end.", made=None, ended="computed")
    stop_request: str | None = column(
        "What a job that runs was asked to do because the next one is due (overlap): cancel or terminate; else NULL.",
        ended=None,
    )
    due_at: datetime | None = column(
        "When it was due: its occurrence with jitter, or the end of the window that moved it. NULL: a person asked for "
        "it, or several occurrences were skipped together.",
        made="computed",
    )
    group_name: str | None = column("The group of its periodic task when it was decided.", made="copied")


def _of_beats(name: str, kind: Any, says: str, **others: Any) -> JobColumn:
    """Describe a column of `active_job` that callers do not see."""
    return JobColumn(**{"name": name, "type": kind, "says": says, "public": False, "ended": None, **others})


def _copied(name: str, kind: Any) -> JobColumn:
    return _of_beats(name, kind, f"{name} of the periodic task when the job was made.", made="copied")


INTERNAL = (
    _of_beats(
        "exclusive",
        bool,
        "whether it is the one job of its periodic task; the unique index job_one_at_a_time allows one such row for "
        "each name.",
        made="computed",
    ),
    _of_beats(
        "message",
        dict[str, Any],
        "the arguments and options that its message is made from.",
        made="computed",
        hidden=True,
    ),
    _copied("on_lost", str),
    _of_beats(
        "tracking",
        str,
        "what reports its end: full (the workers), result (the result backend) or send (nothing).",
        made="computed",
    ),
    _copied("min_gap", timedelta),
    _copied("max_run_time", timedelta),
    _of_beats(
        "pause_after_failures",
        int,
        "pause_after_failures of the periodic task when the job was made; NULL for a backfill.",
        made="computed",
    ),
    _of_beats(
        "pickup_deadline", timedelta, "how long it may wait for a worker before it is sent again.", made="computed"
    ),
    _of_beats("attempt_at", datetime, "when this attempt started.", hot=True),
    _of_beats(
        "check_at",
        datetime,
        "no beat has to look at it before then; never later than busy_until.",
        made="computed",
        hot=True,
    ),
    _of_beats("run", int, "how often it was to run again after it was lost.", ended="kept"),
    _of_beats("resends", int, "how often it was sent again because no worker had started it."),
    _of_beats("refusals", int, "how many attempts to send its message have failed."),
    _of_beats("token", UUID, "the start that the row belongs to.", hidden=True, hot=True),
    _of_beats("marked_by", str, "the beat that sends it.", made="computed", hot=True),
    _of_beats("marked_at", datetime, "since when; the mark is valid for its lease.", made="computed", hot=True),
    _of_beats(
        "mark_lease", timedelta, "how long the mark is valid: the lease of the beat that set it.", made="computed"
    ),
    _of_beats(
        "wait_reason",
        str,
        "what a job waits for: predecessor (another job of its name), upstream (the tasks in after) or slot (a slot in "
        "its group).",
        made="computed",
    ),
    _of_beats("waited", bool, "whether it has waited; then a later occurrence does not make it too late."),
    _of_beats(
        "slot",
        int,
        "its slot in its group, from 1; 0 if the group had no limit when the job was made or promoted; NULL while it "
        "waits.",
        made="computed",
    ),
    _of_beats("backfill", UUID, "the backfill that made it.", made="computed"),
    _copied("on_error", str),
    _copied("kind", str),
    _copied("target", list[str]),
    _copied("due_in", timedelta),
    _of_beats(
        "restart_data",
        dict[str, Any],
        "what a lost job that never started needs to start after all.",
        made=None,
        ended="computed",
        hidden=True,
    ),
    _of_beats(
        "arguments",
        dict[str, Any],
        "args and kwargs of a manual job that has not succeeded, for retry_job().",
        made=None,
        ended="computed",
        hidden=True,
    ),
)


def _public() -> Iterator[JobColumn]:
    hints = get_type_hints(Job)
    for one in fields(Job):
        yield JobColumn(name=one.name, type=type_of(hints[one.name]), **one.metadata)


def _in_order(columns: Iterable[JobColumn], *, hot_last: bool = False) -> Mapping[str, JobColumn]:
    return {one.name: one for one in sorted(columns, key=lambda one: (one.since, hot_last and one.hot))}


# By name: the columns of the view and of the two tables, in their order in Postgres.
PUBLIC = _in_order(_public())
ACTIVE = _in_order((one for one in (*PUBLIC.values(), *INTERNAL) if one.made is not None), hot_last=True)
FINISHED = _in_order(one for one in (*PUBLIC.values(), *INTERNAL) if one.ended is not None)
UUID_COLUMNS = frozenset(name for name, one in PUBLIC.items() if one.type is UUID)
