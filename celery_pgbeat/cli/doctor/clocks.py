"""The clock and the time zone rules of this node, compared with the database's."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from itertools import takewhile
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from celery_pgbeat.api.ahead import planned_anew
from celery_pgbeat.cli.doctor.finding import ERROR, WARNING, Finding
from celery_pgbeat.cli.output.times import instant
from celery_pgbeat.cli.output.values import number, text
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.settings import Settings

MOST_APART = 2.0  # seconds; a worker checks `expires` and `eta` by its own clock
MOST_ROWS = 10_000  # whose next runs are compared, in name order
TIME_LIMIT = 5.0  # seconds after which no further row is compared
WEEKS = 104  # that are compared; rules change for the near future


def node_clock(operators: AdminQueries) -> Iterator[Finding]:
    """Compare the clock of this node with the database's."""
    operators.clock()  # the first statement pays for the connection
    before = time.time()
    database = operators.clock().timestamp()
    after = time.time()
    apart = (before + after) / 2 - database
    if abs(apart) - (after - before) / 2 > MOST_APART:
        direction = "ahead of" if apart > 0 else "behind"
        yield Finding(
            WARNING,
            f"The clock of this node is {abs(apart):.0f} s {direction} the database's.",
            "Run a time daemon on both hosts: the database's clock decides what is due, but a worker checks `expires` "
            "and `eta` by its own.",
        )


def zones(operators: AdminQueries) -> Iterator[Finding]:
    """Compare Python's rules of the zones in use with Postgres's."""
    start = operators.clock()
    instants = [start + timedelta(weeks=week) for week in range(WEEKS)]
    for zone, name in operators.zones_in_use().items():
        try:
            ours = {instant: _offset(zone, instant) for instant in instants}
        except (ZoneInfoNotFoundError, ValueError):
            yield Finding(
                ERROR,
                f"Python on this node does not know the time zone {zone!r}, which {name!r} uses.",
                "Upgrade the package tzdata here and wherever a beat runs: pip install --upgrade tzdata",
            )
            continue
        try:
            theirs = operators.offsets_of(zone, instants)
        except InvalidPeriodicTask:
            yield Finding(
                ERROR,
                f"Postgres does not know the time zone {zone!r}, which {name!r} uses.",
                "Upgrade Postgres or its time zone data, or give the row another zone.",
            )
            continue
        apart = [instant for instant in instants if ours[instant] != theirs[instant]]
        if apart:
            yield Finding(
                WARNING,
                f"Python (tzdata {_tzdata()}) and Postgres have different rules for {zone!r}, first at "
                f"{apart[0]:%Y-%m-%d %H:%M}Z.",
                "Upgrade the older one: pip install --upgrade tzdata wherever a beat runs, or Postgres's minor "
                "version. Beats plan by Python's rules.",
            )


def stored_runs(operators: AdminQueries, settings: Settings, timezone: str) -> Iterator[Finding]:
    """Compare the stored next runs with what the schedules say by the time zone tables of this process."""
    rules = Rules(timezone, settings.on_time, settings.lease, min_interval=settings.min_interval)
    ends_at = time.monotonic() + TIME_LIMIT
    rows = operators.stored_runs(MOST_ROWS)
    wrong = [row for row in takewhile(lambda _: time.monotonic() < ends_at, rows) if _is_out_of_date(row, rules)]
    if wrong:
        first = wrong[0]
        yield Finding(
            WARNING,
            f"By the time zone tables here {number(len(wrong), 'next run')} would be at another time, the first of "
            f"{text(first['name'])!r}, {instant(first['next_run_at'])}: a beat planned it by other tables.",
            "Give all beats the same new tables (pip install --upgrade tzdata), restart them, then: "
            "celery-pgbeat replan --all",
        )


def _is_out_of_date(row: Mapping[str, Any], rules: Rules) -> bool:
    try:
        if planned_anew(row, rules) is not None:
            return True
        for last in (row["planned_ahead"] or ())[-1:]:
            alone = {"planned_for": last, "next_run_at": last, "last_run_at": None, "planned_ahead": None}
            return planned_anew({**row, **alone}, rules) is not None
        return False
    except InvalidSchedule:  # the check of the zones names an unknown one, and a beat that cannot plan it writes so
        return False


def _offset(zone: str, instant: datetime) -> int:
    offset = instant.astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return round(offset.total_seconds())


def _tzdata() -> str:
    try:
        return version_of("tzdata")
    except PackageNotFoundError:
        return "of the system"
