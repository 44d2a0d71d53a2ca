"""From a text to a Schedule: find its kind, call its reader, and keep the result in a cache."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

from celery_pgbeat.errors import InvalidSchedule

from . import registry
from .interval.reader import EVERY
from .rrule.text import is_recurrence_set
from .schedule import Schedule
from .source_text import SourceText
from .wallclock import dst as dst_rules
from .wallclock.instants import as_utc, within_reach

LONGEST_TEXT = 250  # characters
LONGEST_SET = 4_000  # characters of a recurrence set
CACHED = 8192  # schedules; about 1 kB each, and of an interval one for all its anchors

SPOKEN = re.compile(r"\d+(\.\d+)?\s*[a-z]", re.ASCII | re.IGNORECASE)
AMAZON = re.compile(r"(cron|rate|at) *\(", re.ASCII | re.IGNORECASE)
INSTEAD = {
    "cron": "its fields without the year, and weekdays by name: 0 13 * * MON-FRI",
    "rate": "every 5m",
    "at": "the time alone: 2026-12-09T09:00",
}
NOT_A_SCHEDULE = (
    "not a schedule: write cron (*/5 * * * *), an interval (every 30s), ISO 8601 (R/PT1H, 2026-12-09), "
    "a calendar event (Mon..Fri 09:00), RRULE:... or solar: ..."
)


def parse(
    text: str, timezone: str = "UTC", *, name: str = "", dst: str = "default", anchor: datetime | None = None
) -> Schedule:
    """Read the text of a schedule.

    What was read is kept in a cache, so a text may be parsed again each time it is needed.

    Args:
        text: cron, crontab, an interval, ISO 8601, a calendar event, an RRULE or a solar event; see docs/schedules.md.
        timezone: IANA name of the zone whose wall clock counts; a zone in the text wins.
        name: what `H` in cron is hashed from: the name of the row.
        dst: `default`, `skip`, `once` or `all`.
        anchor: aware datetime at which the grid of an interval starts that has no start of its own; without it the
            Unix epoch. `every 5m` may occur at the anchor itself; `R/PT5M` first occurs one step later.

    Raises:
        InvalidSchedule: the text, the zone or `dst` is wrong; names the field, the value and the position.
        ValueError: `anchor` is naive.

    Example:
        >>> from datetime import datetime, timezone
        >>> parse("0 9 * * mon-fri", "America/New_York").next(datetime(2026, 12, 4, 20, tzinfo=timezone.utc))
        datetime.datetime(2026, 12, 7, 14, 0, tzinfo=datetime.timezone.utc)
    """
    name_in_key, anchor_in_key = cache_key_parts(text, name, anchor)
    if anchor_in_key is not None and registry.KINDS.dependencies(text).movable:
        moved = _remembered(text, timezone, name_in_key, dst, None).with_anchor(anchor_in_key)
        if moved is not None:
            return moved
    return _remembered(text, timezone, name_in_key, dst, anchor_in_key)


def cache_key_parts(text: str, name: str, anchor: datetime | None) -> tuple[str, datetime | None]:
    """Return the parts of a cache key besides text, zone and dst: the name and the anchor, if the text depends on them.

    A million rows with `*/5 * * * *` are one entry.

    Raises:
        ValueError: `anchor` is naive.
    """
    if len(text) > LONGEST_SET:  # refused in any case, and not to be kept
        return "", None
    depends_on = registry.KINDS.dependencies(text)
    start = anchor and within_reach(as_utc(anchor))
    return name if depends_on.name else "", start if depends_on.anchor else None


def read(
    text: str, timezone: str = "UTC", name: str = "", dst: str = "default", anchor: datetime | None = None
) -> Schedule:
    """Read the text of a schedule without the cache; arguments as those of `parse`, `anchor` in UTC."""
    source = _source(text, timezone, name, dst, anchor)
    if match := AMAZON.match(source.body):
        raise source.refuse("schedule", _not_amazon(match.group(1)), source.at)
    recognised = registry.KINDS.recognise(source.body)
    if recognised is None:
        raise source.refuse("schedule", _hint(source.body), source.at)
    kind, prefix = recognised
    if prefix:
        source = source.skip(prefix)
    if match := EVERY.match(source.body):
        source = source.skip(match.end())
    found = kind.read(source)
    return Schedule(
        text=found.text,
        kind=found.kind,
        timezone=found.zone.name,
        dst=dst,
        anchor=found.anchor,
        times=found.times,
        kind_info=registry.KINDS[found.kind],
    )


_remembered = lru_cache(maxsize=CACHED)(read)


def _source(text: str, timezone: str, name: str, dst: str, anchor: datetime | None) -> SourceText:
    longest = LONGEST_SET if is_recurrence_set(text) else LONGEST_TEXT
    if len(text) > longest:
        raise InvalidSchedule(text, "schedule", f"longer than {longest:,} characters", longest)
    for at, character in enumerate(text) if not (text.isascii() and text.isprintable()) else ():
        if not character.isascii():
            raise InvalidSchedule(text, "schedule", f"{character!r} is not an ASCII character", at)
        if not character.isprintable() and character not in "\t\n\r":
            raise InvalidSchedule(text, "schedule", f"{character!r} is not a printable character", at)
    if dst not in dst_rules.CHOICES:
        raise InvalidSchedule(text, "dst", f"dst {dst!r} is not one of {', '.join(dst_rules.CHOICES)}")
    body = text.strip()
    if not body:
        raise InvalidSchedule(text, "schedule", NOT_A_SCHEDULE, 0)
    return SourceText(text, body, text.index(body), timezone, name, dst, anchor)


def _hint(body: str) -> str:
    """Return why a text is not a schedule, and what may have been meant."""
    if SPOKEN.match(body):
        return f"not a schedule: did you mean 'every {body}'?"
    return NOT_A_SCHEDULE


def _not_amazon(word: str) -> str:
    return f"not a schedule: {word}(...) is Amazon's notation; write {INSTEAD[word.lower()]}"
