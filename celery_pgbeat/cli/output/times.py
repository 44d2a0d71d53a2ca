"""Instants and durations for people: in the viewer's own zone, or in UTC with --utc; and how far they are from now."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import click

KEY = "celery_pgbeat.utc"
IN_SQL = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")  # an instant, as the sentences of Postgres have it
UNTIL = re.compile(rf"\buntil ({IN_SQL.pattern})")
# The largest number of seconds that is shown in a unit, the seconds of the unit, and its word.
UNITS = ((100, 1, "s"), (6_000, 60, "min"), (48 * 3_600, 3_600, "h"), (730 * 86_400, 86_400, "d"))
YEAR = 365 * 86_400


def _remember(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta[KEY] = value


with_utc = click.option(
    "--utc", is_flag=True, expose_value=False, callback=_remember, help="Show times in UTC instead of your own zone."
)


def instant(value: datetime | None) -> str:
    """Return an instant in the viewer's zone, to the second, with its offset; `Z` is UTC."""
    ctx = click.get_current_context(silent=True)
    return in_zone(value, timezone.utc if ctx is not None and ctx.meta.get(KEY) else None)


def in_zone(value: datetime | None, zone: tzinfo | None, *, milliseconds: bool = False) -> str:
    """Return an instant in a zone; without one in that of this machine."""
    if value is None:
        return "-"
    try:
        local = value.astimezone(zone)
    except (OverflowError, ValueError):
        local = value.astimezone(timezone.utc)  # the end of the calendar
    exactness = "milliseconds" if milliseconds else "seconds"
    if local.utcoffset():
        return local.isoformat(" ", exactness)
    return f"{local.replace(tzinfo=None).isoformat(' ', exactness)}Z"


def on_the_clock(instant: datetime, zone: str, *, milliseconds: bool = False) -> str:
    """Return the local time in the zone, with the weekday and the offset from UTC."""
    local = ZoneInfo(zone)
    return f"{instant.astimezone(local):%a} {in_zone(instant, local, milliseconds=milliseconds)}"


def in_utc(instant: datetime, *, milliseconds: bool = False) -> str:
    """Return the instant in UTC."""
    return in_zone(instant, timezone.utc, milliseconds=milliseconds)


def both_as_dict(instant: datetime, zone: str) -> dict[str, str]:
    """Return the instant in UTC and in the zone, as JSON has it."""
    return {
        "utc": instant.astimezone(timezone.utc).isoformat(),
        "local": instant.astimezone(ZoneInfo(zone)).isoformat(),
    }


def from_now(value: datetime | None, now: datetime) -> str:
    """Return how far an instant is from now, such as `in 4 min` or `2 h ago`."""
    if value is None:
        return "-"
    distance = value - now
    if abs(distance) < timedelta(seconds=1):
        return "now"
    return f"in {rounded(distance)}" if distance > timedelta(0) else f"{rounded(-distance)} ago"


def rounded(value: timedelta | None) -> str:
    """Return a duration in its largest sensible unit, such as `45 s`, `4 min`, `2 h`."""
    if value is None:
        return "-"
    seconds = value.total_seconds()
    for most, unit, word in UNITS:
        if seconds < most:
            return f"{round(seconds / unit)} {word}"
    return f"{round(seconds / YEAR)} years"


def duration(value: timedelta | None) -> str:
    """Return how long something took; below ten seconds with two decimals."""
    if value is None:
        return "-"
    seconds = value.total_seconds()
    return f"{seconds:.2f} s" if abs(seconds) < 10 else rounded(value)


def localised(sentence: Any) -> str:
    """Return a sentence of Postgres with its instants as `instant` shows them."""
    return IN_SQL.sub(lambda found: instant(_read(found[0])), str(sentence))


def until_from_now(state: str, now: datetime) -> str:
    """Return a state that ends at an instant in fewer letters: `paused until …` as `paused for 3 d more`."""
    return UNTIL.sub(lambda found: f"for {rounded(max(_read(found[1]) - now, timedelta(0)))} more", state)


def _read(shown: str) -> datetime:
    return datetime.fromisoformat(f"{shown[:-1]}+00:00")
