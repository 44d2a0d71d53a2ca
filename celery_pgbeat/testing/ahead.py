"""What an app will send, computed from its code alone: no database, no broker, no clock.

The beat's own code reads the declarations and plans the runs. It does not know of an outage, a job that blocks its row
or an operator's edit: that is for `PgBeatTest`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import chain, islice, takewhile
from typing import Any
from zoneinfo import ZoneInfo

from celery import Celery

from celery_pgbeat.api import PgBeat
from celery_pgbeat.api.ahead import coming_runs
from celery_pgbeat.api.expected_runs import ExpectedRuns
from celery_pgbeat.declare import app_timezone, timing_of
from celery_pgbeat.planning import Rules
from celery_pgbeat.schedules import parse
from celery_pgbeat.settings import Settings
from celery_pgbeat.testing.declared import app_of, strict_code
from celery_pgbeat.testing.instants import at, shown

MICROSECOND = timedelta(microseconds=1)
MOST = 10_000  # runs in one result; more is probably a mistake, such as a year instead of a day


@dataclass(frozen=True, slots=True)
class Run:
    """One run that the code asks for.

    Attributes:
        due_at: when it is sent, in UTC: with jitter, outside the blackout windows.
        scheduled_for: the occurrence behind it, in UTC; None for the first run of `run_on_start`.
        timezone: the zone whose clocks the row follows.
        note: what moved it, or what a change of the clocks does to it; None for neither.
    """

    periodic_task: str
    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    queue: str | None
    due_at: datetime
    scheduled_for: datetime | None
    timezone: str
    note: str | None

    @property
    def local(self) -> datetime:
        """When it is sent, on the clocks of its zone."""
        return self.due_at.astimezone(ZoneInfo(self.timezone))

    def __str__(self) -> str:
        return f"{self.periodic_task} at {shown(self.due_at, self.timezone)}{f' ({self.note})' if self.note else ''}"


def upcoming(
    source: Celery | PgBeat,
    since: datetime | str,
    until: datetime | str,
    *,
    name: str | None = None,
    windows: Mapping[str, str | Sequence[str]] | None = None,
    limit: int = MOST,
) -> list[Run]:
    """Return what an app that was deployed at `since` sends until `until` (inclusive), the earliest first.

    Everything that its code declares counts: `beat_schedule`, `add_periodic_task`, `@beat.periodic_task`, and what
    Celery adds itself (`celery.backend_cleanup`). The first run of a row is the next occurrence after its definition,
    and there the grid of an interval begins.

    A row without a schedule that runs after others is expected when the last of these is due. It is sent later, when
    they have ended, and only if they have ended as its `after_condition` asks. If the code does not declare one of
    them, no run is expected.

    Args:
        source: the app, or its PgBeat.
        since: see `at`; rows are new at this instant.
        until: see `at`.
        name: only runs of this row.
        windows: the texts of named blackout windows that rows refer to; the real ones are in the database.
        limit: more runs than this are an error, not a long wait.

    Raises:
        InvalidPeriodicTask: a declaration is wrong: a beat would refuse it, log it and go on.
        InvalidSchedule: a schedule cannot be planned, or refers to a window that is not among `windows`.
        LookupError: the code declares nothing of that name.
        ValueError: there are more than `limit` runs, or `since` or `until` is no instant.

    Example:
        >>> from celery import Celery
        >>> from celery_pgbeat import PgBeat, cron
        >>> app = Celery("shop")
        >>> beat = PgBeat(app)
        >>> @beat.periodic_task(cron("30 2 * * *", timezone="Europe/Berlin"), name="nightly")
        ... @app.task
        ... def nightly_report(): ...
        >>> for run in upcoming(app, "2026-03-28T00:00Z", "2026-03-30T00:00Z", name="nightly"):
        ...     print(run.local)
        2026-03-28 02:30:00+01:00
        2026-03-29 03:00:00+02:00
    """
    app, begin, end = app_of(source), at(since), at(until)
    settings = Settings.from_mapping(app.conf)
    code = strict_code(app, settings).declared
    rules = Rules(
        timezone=app_timezone(app),
        on_time=settings.on_time,
        lease=settings.lease,
        pickup_deadline=settings.pickup_deadline,
        min_interval=settings.min_interval,
    )
    if name is not None and name not in code.records:
        raise LookupError(f"The code declares no {name!r}, only {', '.join(map(repr, sorted(code.records)))}")
    named = {key: ([texts] if isinstance(texts, str) else list(texts), None) for key, texts in (windows or {}).items()}
    rows = {
        record["name"]: _new_row(record, begin, record["name"] in code.running_first, named)
        for record in code.records.values()
    }
    expected = ExpectedRuns(rows.values(), rules)
    lines = [_runs(row, expected, end, rules) for row in rows.values() if name is None or name == row["name"]]
    found = list(islice(merge(*lines, key=lambda run: (run.due_at, run.periodic_task)), limit + 1))
    if len(found) > limit:
        raise ValueError(f"There are more than {limit} runs until {until}: ask for a shorter time, or for one `name`")
    return found


def occurrences(
    schedule: Any, since: datetime | str, until: datetime | str, *, timezone: str = "UTC", limit: int = MOST
) -> list[datetime]:
    """Return the occurrences of a schedule alone after `since`, up to and including `until`, in UTC.

    Args:
        schedule: anything that may be declared: `cron(...)`, `every(...)`, text, a timedelta, Celery's `crontab`.
        since: see `at`; the grid of an interval begins here, unless it has an anchor.
        until: see `at`.
        timezone: of a schedule that has none of its own.
        limit: more than this are an error, not a long wait.

    Raises:
        InvalidSchedule: the schedule or the zone is wrong; names the field and the value.
        ValueError: there are more than `limit`, or `since` or `until` is no instant.

    Example:
        >>> from celery.schedules import crontab
        >>> found = occurrences(crontab(minute="*/20"), "2026-12-07T10:00Z", "2026-12-07T10:40Z")
        >>> [instant.minute for instant in found]
        [20, 40]
    """
    begin, end = at(since), at(until)
    timing = timing_of(schedule, timezone)
    parsed = parse(timing.text, timing.timezone or timezone, anchor=timing.anchor or begin)
    found = list(parsed.occurrences(begin, end, limit + 1))
    if len(found) > limit:
        raise ValueError(f"There are more than {limit} occurrences until {until}: ask for a shorter time")
    return found


def _new_row(
    record: Mapping[str, Any], begin: datetime, runs_first: bool, windows: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return a row as it is just after its declaration."""
    instants = {column: record[column] and at(record[column]) for column in ("anchor", "start_at", "end_at")}
    return {
        **record,
        **instants,
        "anchor": instants["anchor"] or instants["start_at"] or begin,
        "jitter": None if record["jitter"] is None else timedelta(seconds=record["jitter"]),
        "windows": json.dumps(windows),
        "run_count": 0,
        "held_back": None,
        "revision": 1,
        "planned_revision": 1 if runs_first else 0,
        "planned_from": begin,
        "judged_from": None,
        "next_run_at": begin if runs_first else None,
        "planned_for": None,
        "last_run_at": None,
        "planned_ahead": None,
        "enabled": True,
        "problem": None,
        "now": begin - MICROSECOND,
        # None of the tasks before it has a job yet.
        "since": begin if instants["start_at"] is None else max(begin, instants["start_at"] - MICROSECOND),
        "firsts": [None] * len(record["after"] or ()),
        "lasts": [None] * len(record["after"] or ()),
    }


def _runs(row: Mapping[str, Any], expected: ExpectedRuns, end: datetime, rules: Rules) -> Iterator[Run]:
    """Iterate over the runs of a row, planned and expected."""
    runs = chain(coming_runs(row, rules), expected.of(row["name"]))
    for run in takewhile(lambda run: run.next_run_at <= end, runs):
        yield Run(
            periodic_task=row["name"],
            task=row["task"],
            args=list(row["args"]),
            kwargs=dict(row["kwargs"]),
            queue=row["queue"],
            due_at=run.next_run_at,
            scheduled_for=run.planned_for,
            timezone=row["timezone"],
            note=run.note,
        )
