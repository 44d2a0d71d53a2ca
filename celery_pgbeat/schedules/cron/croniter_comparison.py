"""Where croniter would run a cron text at other instants than this package.

Airflow and many other schedulers read cron with croniter, so a text that comes from one of them may mean something
else here. `validate` and `doctor` show the first difference, and docs/schedule-reference.md lists the reasons. No beat
imports this module.

The comparison covers a year: the first occurrences one by one, more of them around each change of the clocks, and a few
of each day. It takes milliseconds for most texts, and about half a second for one that runs every minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from croniter import croniter

from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.wallclock.instants import UTC, as_utc
from celery_pgbeat.schedules.wallclock.zones import zone_named
from celery_pgbeat.texts.safe_text import one_line

YEAR_OF_DAYS = 366
AROUND_A_CHANGE = timedelta(hours=3)  # before and after a change of the clocks
# Occurrences that are compared from the beginning, around a change of the clocks, and each day.
FIRST, AT_A_CHANGE, DAILY = 200, 500, 12
LONGEST_ERROR = 200  # characters of croniter's


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between croniter and this package.

    Attributes:
        ours: the occurrence here after the last one that agrees; None where there is none, and for a text that
            croniter cannot read.
        theirs: that of croniter.
        error: that of croniter, for a text that it cannot read; None for all others.
    """

    ours: datetime | None = None
    theirs: datetime | None = None
    error: str | None = None


def compare_with_croniter(
    text: str, timezone: str, begin: datetime, *, name: str = "", dst: str = "default"
) -> Difference | None:
    """Compare the occurrences of a cron text with those that croniter gives, for a year.

    Args:
        text: of a schedule; only cron is compared.
        timezone: IANA name of the zone whose wall clock counts.
        begin: where to begin; aware.
        name: what `H` is hashed from: the name of the row.
        dst: `default`, `skip`, `once` or `all`; croniter has no such choice.

    Returns:
        The first difference; None if there is none, or if the text is not cron.

    Raises:
        InvalidSchedule: the text, the zone or `dst` is wrong.

    Example:
        >>> from datetime import timezone
        >>> december = datetime(2026, 12, 1, tzinfo=timezone.utc)
        >>> compare_with_croniter("*/5 9-17 * * mon-fri", "UTC", december)
        >>> compare_with_croniter("0 0 1 6-6 *", "UTC", december).theirs.isoformat()
        '2027-01-01T00:00:00+00:00'
    """
    ours = parse(text, timezone, name=name, dst=dst)
    if ours.kind != "cron":
        return None
    without_kind = text.rpartition(":")[2]
    try:
        theirs = croniter(without_kind, 0, hash_id=name if "H" in text else None)
    except Exception as error:  # noqa: BLE001  most of its errors are ValueErrors, but not all
        return Difference(error=one_line(str(error), LONGEST_ERROR))
    zone, at, end = ZoneInfo(ours.timezone), as_utc(begin), as_utc(begin) + timedelta(days=YEAR_OF_DAYS)
    for start, most in sorted(_stretches(ours.timezone, at, end)):
        if at > start + 2 * AROUND_A_CHANGE:
            continue  # the comparison of rarer occurrences has come further already
        at = max(at, start)
        for _ in range(most):
            here, there = ours.next(at), _next(theirs, at.astimezone(zone))
            if here != there:
                return Difference(here, there)
            if here is None or here >= end:
                return None
            at = here
    return None


def _next(theirs: croniter, after: datetime) -> datetime | None:
    """Return croniter's first instant later than `after`; None where it finds none, or fails."""
    try:
        found: datetime = theirs.get_next(datetime, start_time=after)
    except Exception:  # noqa: BLE001  it fails with errors of its own, and with AssertionError and RecursionError
        return None
    return found.astimezone(UTC)


def _stretches(timezone: str, begin: datetime, end: datetime) -> Iterator[tuple[datetime, int]]:
    """Iterate over the instants from which to compare, each with how many occurrences."""
    yield begin, FIRST
    for days in range(1, YEAR_OF_DAYS):
        yield begin + timedelta(days=days), DAILY
    zone, change = zone_named(timezone), begin
    while (change := zone.period_at(change).end) < end:
        yield change - AROUND_A_CHANGE, AT_A_CHANGE
