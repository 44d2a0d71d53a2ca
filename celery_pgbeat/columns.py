"""The table of columns: the single definition of each column of `pgbeat.periodic_task`, in one line.

Made from it: what Python reads and returns, the options and the help of `add`, export and import, the comments in the
database and the pages made of them, the grants of author and reader, and the column lists of the statements (see
`postgres/column_lists.py`). Only the types for a type checker (`declare.Columns`) and the table itself, in the
migrations, are written again; tests compare them. `times`, `job`, `free_text` and `state` say what a column is for.

Pure: imports nothing of Celery, no driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from celery_pgbeat.choices import AfterCondition, BlackoutAction, Catchup, Dst, Kind, OnError, OnLost, Overlap, Tracking
from celery_pgbeat.texts.redaction import ARGUMENTS, MASK

YEAR = timedelta(days=366)  # the longest one; the '1 year' of Postgres, which has 360, is within it
CENTURY = timedelta(days=36_000)  # as Postgres compares intervals: a hundred times twelve months of thirty days

Decides = Literal["times", "job", "nothing"]
SQL_TYPES: dict[Any, str] = {
    str: "text",
    int: "int",
    bool: "boolean",
    datetime: "timestamptz",
    timedelta: "interval",
    list[str]: "text[]",
    list[Any]: "jsonb",
    dict[str, Any]: "jsonb",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of `pgbeat.periodic_task`.

    Attributes:
        name: of the column, of the argument in Python and SQL, of the option at the shell.
        type: what Python reads of it: str, int, bool, datetime, timedelta, or a list or dict.
        says: what it is, in a sentence, for the help of `add` and the comment in the database.
        more: what only the comment adds.
        choices: the values that are allowed, with what they mean.
        default: what it is when nothing is given; NULL without one.
        longest: of a duration, the longest that is allowed.
        may_be_zero: whether a duration may be 0.
        declared: whether a declaration gives it. What is omitted there becomes the default.
        decides: what a change of it means. `times`: a beat plans the next run again. `job`: the mark is taken off, so
            that a beat decides about the row with the new values. `nothing`: it has no effect on either.
        author: what the role author may do: insert and update, update, change it by a write to another table, whose
            trigger acts for the owner, or nothing.
        hidden: whether the role reader may not read it.
    """

    name: str
    type: Any
    says: str
    more: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    default: str | bool | None = None
    longest: timedelta = YEAR
    may_be_zero: bool = False
    declared: bool = False
    decides: Decides = "nothing"
    author: Literal["insert and update", "update", "by another table", "nothing"] = "nothing"
    hidden: bool = False

    @property
    def sql_type(self) -> str:
        """Its type in Postgres, as an argument of a function."""
        return SQL_TYPES[self.type]

    @property
    def initial(self) -> str | bool | None:
        """What it is in a new row when nothing is given; JSON as text."""
        return {list[Any]: "[]", dict[str, Any]: "{}"}.get(self.type, self.default)

    @property
    def is_free_text(self) -> bool:
        """Whether it is a text for people, without effect."""
        return self.declared and self.decides == "nothing" and self.default is None

    @property
    def help(self) -> str:
        """What it is, with the values that are allowed."""
        if not self.choices:
            return self.says
        known = (f"{value} ({meaning})" if meaning else value for value, meaning in self.choices.items())
        return f"{self.says}: {', '.join(known)}."

    @property
    def comment(self) -> str:
        """What it is, for the database."""
        return f"{self.help} {self.more}".strip()


def times(says: str, more: str = "", **others: Any) -> Any:
    """Describe a column of the definition that decides when the row runs."""
    return _declared(says, more, decides="times", **others)


def job(says: str, more: str = "", **others: Any) -> Any:
    """Describe a column of the definition that decides what is sent, and what happens to the jobs."""
    return _declared(says, more, decides="job", **others)


def free_text(says: str, more: str = "") -> Any:
    """Describe a column of the definition that is a text for people, without effect."""
    return _declared(says, more)


def _declared(says: str, more: str, **others: Any) -> Any:
    words = {"declared": True, "author": "insert and update", **others}
    return field(metadata={"says": says, "more": more, **words})


def state(says: str, more: str = "", **others: Any) -> Any:
    """Describe a column that no declaration gives: what beats, triggers or operators write."""
    return field(metadata={"says": says, "more": more, **others})


@dataclass(frozen=True, slots=True, repr=False)
class PeriodicTask:
    """One row of `pgbeat.periodic_task`, as it was when it was read."""

    name: str = job("Unique, up to 200 characters.")
    task: str | None = job("The Celery task, by the name that workers know.", "NULL is allowed for kind human.")
    args: list[Any] = job("Positional arguments, a JSON array.", "At most 64 kB together with kwargs.", hidden=True)
    kwargs: dict[str, Any] = job("Keyword arguments, a JSON object.", hidden=True)
    queue: str | None = job("The queue; default: where the app routes the task.")
    priority: int | None = job("The broker's priority, 0 to 255.")
    options: dict[str, Any] = job(
        'Every other option of apply_async, a JSON object, such as {"expires": 60}.',
        "known_options() lists the keys that are allowed: time_limit, headers, exchange, ...",
        hidden=True,
    )
    sensitive: bool = job(
        "Hide its arguments wherever messages, events, logs and commands show them, and show only the class of its "
        "jobs' errors.",
        "The table and the message itself hold the arguments as they are.",
        default=False,
    )
    schedule: str | None = times(
        "When: cron (*/5 * * * *), an interval (every 30s), ISO 8601 (R/PT1H, 2026-12-09), a calendar event "
        "(Mon..Fri 09:00) or an RRULE.",
        "NULL: it has no times of its own. trigger() starts it, or it runs once when next_run_at is set.",
    )
    timezone: str | None = times(
        "The IANA zone whose clock counts, such as Europe/Berlin; default: the app's zone.",
        "NULL until the first beat that plans the row writes its app's zone there; from then on a change of that "
        "setting moves nothing.",
    )
    anchor: datetime | None = times(
        "Where the grid of an interval starts; default: start_at, else the instant at which the schedule was set."
    )
    dst: Dst = times(
        "What happens to a run where the clocks change",
        choices={
            "default": "",
            "skip": "nothing runs in a skipped hour",
            "once": "a time that the clocks show twice runs once",
            "all": "a time that they show twice runs twice",
        },
        default="default",
    )
    start_at: datetime | None = times("No occurrence before this instant; inclusive.")
    end_at: datetime | None = times("No occurrence after this instant; inclusive.")
    max_runs: int | None = times("Stop after this number of submitted scheduled runs.")
    run_count: int = state("How many scheduled runs were submitted.")
    jitter: timedelta | None = times(
        "Each run is later than its occurrence by up to this, such as 30s.",
        "The delay of an occurrence is the same on every beat, and never reaches past the next occurrence.",
        may_be_zero=True,
    )
    overlap: Overlap = job(
        "What happens to an occurrence while a job of this row is not final",
        "cancel_other and terminate_other send the latest occurrence after the job that they end.",
        choices={
            "skip": "recorded as skipped",
            "buffer_one": "one waits for its turn",
            "buffer_all": "up to 1,000 wait for their turn",
            "cancel_other": "the job that runs is cancelled",
            "terminate_other": "the job that runs is terminated",
            "allow": "sent beside it",
        },
        default="skip",
    )
    catchup: Catchup = job(
        "Which of the occurrences that no beat decided in time are sent",
        "Under overlap = skip, all sends them one after the other.",
        choices={"none": "", "latest": "", "earliest": "", "all": ""},
        default="latest",
    )
    catchup_window: timedelta | None = job(
        "How late an occurrence may still be sent, such as 1h; default: no limit.",
        "In all durations a month has 30 days and a year 360, as Postgres compares them.",
        longest=CENTURY,
        may_be_zero=True,
    )
    catchup_limit: int | None = job(
        "At most this number of occurrences, the newest, are sent under catchup = all; default: 1,000."
    )
    min_gap: timedelta | None = job(
        "A run that would start sooner than this after the last start is dropped, such as 55s.",
        "The worker drops the job: skipped, min_gap. It never drops a retry, a rerun or a manual run.",
    )
    max_run_time: timedelta | None = job(
        "How long a run may take, such as 30m; in Python and at the shell also 50% of the interval.",
        "It is the soft time limit; the hard one is twice that, at most 60 s more. 30 s after that on_lost decides, "
        "even if the worker still sends heartbeats.",
    )
    blackout: list[str] | None = times(
        "When nothing may start: a schedule that opens a window and an ISO duration, such as cron: 0 0 * * sat P2D.",
        "A ; separates several windows in one element; a recurrence rule needs an element of its own. window: name "
        "refers to the table blackout.",
    )
    blackout_action: BlackoutAction = times(
        "What happens to an occurrence within a blackout window",
        choices={"defer": "it runs when the window closes", "skip": "recorded as skipped"},
        default="defer",
    )
    group_name: str | None = job(
        "The group with which it is paused and limited.",
        "See the table task_group; a group that has no row there has no limit.",
    )
    group_paused: bool = state(
        "Whether its group is paused.",
        "One UPDATE of task_group sets it for all rows of the group.",
        author="by another table",
    )
    submitter: str | None = free_text("Who wants it; free text.")
    subject: str | None = free_text("Its purpose; free text.")
    pause_after_failures: int | None = job(
        "Pause after this number of failed jobs in a row; default: never.",
        "A success, a resume and a new name start the count again; backfill does not count.",
    )
    enabled: bool = state("False: paused.", author="insert and update")
    pause_reason: str | None = state("Why it is paused.", author="insert and update")
    paused_by: str | None = state("Who paused it.", author="insert and update")
    paused_until: datetime | None = state("When it resumes by itself; NULL: never.", author="insert and update")
    on_lost: OnLost = job(
        "What happens to a job whose worker dies",
        choices={"give_up": "the job is lost: at most once", "rerun": "it runs again: at least once"},
        default="give_up",
    )
    on_error: OnError = job(
        "What happens to a job that has failed",
        "A failure is that of the last attempt: Celery's retries come first. Only under tracking full.",
        choices={"fail": "it ends", "ask": "it waits in state error until retry_job or fail_job, and blocks its row"},
        default="fail",
    )
    tracking: Tracking = job(
        "Who reports the end of a job",
        "Under result a beat asks when a job is in the way of its next occurrence. Under send a beat knows only that "
        "the broker has the message: workers neither guard nor track it, and overlap is not promised.",
        choices={"full": "the workers, and every state", "result": "the result backend", "send": "no process"},
        default="full",
    )
    kind: Kind = job(
        "Who does it",
        "Of a task for people no message is sent: its job waits in state created until a person picks it up.",
        choices={"task": "a worker", "human": "a person"},
        default="task",
    )
    target: list[str] | None = job(
        "Of a task for people: who may pick it up, users or roles by your application's names; default: any person.",
        "At most 100 names.",
    )
    due_in: timedelta | None = job(
        "Of a task for people: how long after it can be picked up it is overdue, such as 4h; default: never.",
    )
    after: list[str] | None = job(
        "The periodic tasks after which it runs: each of its occurrences waits until they have ended for the same one "
        "or a later one.",
        "Without a schedule it is due whenever all of them have ended. At most 100 names.",
    )
    after_condition: AfterCondition = job(
        "How the tasks in after must have ended",
        choices={"success": "succeeded, or its occurrence is skipped: after", "finish": "in any way"},
        default="success",
    )
    next_run_at: datetime | None = state(
        "When it is due.",
        "NULL while planned_revision differs from revision: a beat will plan it. A row with after and no schedule: "
        "NULL until those tasks have ended. Otherwise NULL: never again. SQL may set it: now() runs it at once, NULL "
        "has it planned from now.",
        author="insert and update",
    )
    planned_for: datetime | None = state(
        "The occurrence behind next_run_at, the job's scheduled_for; NULL when SQL set next_run_at itself.",
        "If a blackout window postpones such a run, or a named window of its row changes, it is the instant of that "
        "run.",
    )
    last_run_at: datetime | None = state(
        "The last occurrence decided.",
        "It is later than now where the clock of the database was ahead. Then a resume, a change of the times or a "
        "next_run_at set by SQL lowers it to now.",
    )
    marked_by: str | None = state("The beat that is deciding this row's due occurrence.")
    marked_at: datetime | None = state("Since when; the mark is valid for its lease.")
    managed_by: str = _declared("Who keeps the definition: sql, api, code:<app>, ...", "", default="sql")
    problem: str | None = state(
        "Why this row cannot be planned; NULL if it can.", "After a change of the definition a beat tries again."
    )
    revision: int = state("Goes up with every change of the definition.")
    planned_revision: int = state("The revision that next_run_at was planned for.")
    created_at: datetime = state("When the row was made.")
    updated_at: datetime = state("When it was last changed by another than a beat.")

    def __repr__(self) -> str:
        hidden = ARGUMENTS if self.sensitive else ()
        shown = (f"{name}={MASK if name in hidden else repr(getattr(self, name))}" for name in PUBLIC)
        return f"PeriodicTask({', '.join(shown)})"


def _internal(name: str, says: str, **others: Any) -> Column:
    """Describe a column that callers do not see: beats and triggers write it."""
    return Column(name=name, type=None, says=f"Internal: {says}", **others)


INTERNAL = (
    _internal(
        "schedule_set_at",
        "when the text of the schedule was set (if code has changed it: its last run), the anchor of last resort.",
    ),
    _internal("planned_from", "occurrences count from here on."),
    _internal(
        "judged_from",
        "set when code has changed the times. The newest occurrence after this instant and up to planned_from, if "
        "there is one, is due at once.",
    ),
    _internal("taken_over", "whether a beat took the mark over from another beat."),
    _internal("mark_lease", "how long the mark is valid: the lease of the beat that set it."),
    _internal("pickup_deadline", "how long a job may wait for a worker before it is sent again."),
    _internal(
        "planned_ahead",
        "the occurrences that a beat has planned, planned_for among them; a mark submits such a row at once.",
    ),
    _internal("due_ahead", "when those are due; NULL if each is due at its own instant."),
    _internal("lazy", "only beats whose code declares this row may mark it.", decides="job"),
    _internal("declared", "what code last declared, and whether its row has been withdrawn.", hidden=True),
    _internal(
        "declared_timezone", "the zone as its author gave it; NULL where a beat filled in the app's.", author="update"
    ),
    _internal("windows_used", "the named windows in blackout."),
    _internal("windows_revision", "how often one of the named windows was changed.", author="by another table"),
    _internal("decided_anew_at", "when last_run_at was last lowered to now; the ids of jobs are made from it."),
    _internal(
        "failures_from", "pause_after_failures counts only the failures that were recorded under this very instant."
    ),
)


def _columns_of(row: Any) -> Iterator[Column]:
    hints = get_type_hints(row)
    for one in fields(row):
        yield Column(name=one.name, type=type_of(hints[one.name]), **one.metadata)


def type_of(hint: Any) -> Any:
    """Return the type of a value that is there: of one of a few texts, str."""
    if get_origin(hint) is Literal:
        return str
    given = [kind for kind in get_args(hint) if kind is not NoneType]
    return given[0] if len(given) < len(get_args(hint)) else hint


# By name: the columns that Python and SQL show, and those of them that a declaration gives.
PUBLIC: Mapping[str, Column] = {column.name: column for column in _columns_of(PeriodicTask)}
DECLARED: Mapping[str, Column] = {name: column for name, column in PUBLIC.items() if column.declared}
JSON_COLUMNS = frozenset(name for name, column in PUBLIC.items() if column.sql_type == "jsonb")

# What the table of changes records of a row: its definition and its pause.
RECORDED: tuple[str, ...] = (*DECLARED, "enabled", "pause_reason", "paused_by", "paused_until")
