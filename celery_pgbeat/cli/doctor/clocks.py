"""The clock and the time zone rules of this node, compared with the database's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from celery_pgbeat.cli.doctor.finding import ERROR, WARNING, Finding
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.postgres.admin_queries import AdminQueries

MOST_APART = 2.0  # seconds; a worker checks `expires` and `eta` by its own clock
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


def _offset(zone: str, instant: datetime) -> int:
    offset = instant.astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return round(offset.total_seconds())


def _tzdata() -> str:
    try:
        return version_of("tzdata")
    except PackageNotFoundError:
        return "of the system"
