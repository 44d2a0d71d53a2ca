"""The front door: which kind of schedule a text is, told by the text without guessing."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

from celery_pgbeat.errors import InvalidSchedule

from .calendar.reader import looks_like_calendar, read_calendar
from .cron.reader import LAYOUTS, read_cron, read_crontab
from .interval.reader import anchored, read_every, read_iso_interval
from .iso.reader import REPEATING, read_iso_text, read_once, read_repeating
from .moments import MOMENT
from .rrule.reader import read_rrule
from .schedule import Schedule
from .solar.reader import read_solar
from .source_text import SourceText
from .wallclock import dst as dst_rules
from .wallclock.instants import as_utc, within_reach

LONGEST_TEXT = 250  # characters
LONGEST_SET = 4_000  # characters of a recurrence set
CACHED = 8192  # schedules; about 1 kB each, and of an interval one for all its anchors

Reader = Callable[[SourceText], Schedule]

PREFIX = re.compile(r"(cron|crontab|calendar|iso|every|solar)\s*:", re.ASCII | re.IGNORECASE)
PREFIXES: dict[str, Reader] = {
    "cron": read_cron,
    "crontab": read_crontab,
    "calendar": read_calendar,
    "iso": read_iso_text,
    "every": read_every,
    "solar": read_solar,
}
EVERY = re.compile(r"@?every\s", re.ASCII | re.IGNORECASE)
INTERVALS_BEGIN_WITH = "eE@Pp"  # nothing that these begin is refused for its anchor
DURATION = re.compile(r"-?P[\dT]", re.ASCII | re.IGNORECASE)
RRULE_SET = re.compile(r"(rrule|dtstart|exdate|rdate|exrule)\s*[:;]", re.ASCII | re.IGNORECASE)
CRON_FIELD = re.compile(r"[\d*/,?LWH-]+", re.ASCII)
SPOKEN = re.compile(r"\d+(\.\d+)?\s*[a-z]", re.ASCII | re.IGNORECASE)
CALENDAR_WORDS = 4  # weekdays, date, time, zone
AMAZON = re.compile(r"(cron|rate)\s*\(", re.ASCII | re.IGNORECASE)
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
    used, start = cache_key_parts(text, name, anchor)
    if start is not None and text[:1] in INTERVALS_BEGIN_WITH:
        interval = anchored(_remembered(text, timezone, used, dst, None), start)
        if interval is not None:
            return interval
    return _remembered(text, timezone, used, dst, start)


def cache_key_parts(text: str, name: str, anchor: datetime | None) -> tuple[str, datetime | None]:
    """Return the name and the anchor as far as the text can use them: what a cache's key needs of them.

    A million rows with `*/5 * * * *` are one entry.

    Raises:
        ValueError: `anchor` is naive.
    """
    start = anchor and within_reach(as_utc(anchor))
    head = text.lstrip()[:2]
    anchorable = head[:1] in "eEPpRrIiDdFf-" or head in ("@e", "@E")
    return name if "H" in text else "", start if anchorable else None


def read(
    text: str, timezone: str = "UTC", name: str = "", dst: str = "default", anchor: datetime | None = None
) -> Schedule:
    """Read the text of a schedule, past the cache; arguments as those of `parse`, `anchor` in UTC."""
    source = _source(text, timezone, name, dst, anchor)
    if match := PREFIX.match(source.body):
        reader = PREFIXES[match.group(1).lower()]
        return reader(_without_every(source.skip(match.end())))
    return _reader(source)(_without_every(source))


_remembered = lru_cache(maxsize=CACHED)(read)


def _source(text: str, timezone: str, name: str, dst: str, anchor: datetime | None) -> SourceText:
    longest = LONGEST_SET if RRULE_SET.match(text.lstrip()) else LONGEST_TEXT
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


def _without_every(source: SourceText) -> SourceText:
    match = EVERY.match(source.body)
    return source.skip(match.end()) if match else source


def _reader(source: SourceText) -> Reader:
    for is_one, reader in DETECTORS:
        if is_one(source.body):
            return reader
    raise source.refuse("schedule", _hint(source.body), source.at)


def _is_rrule(body: str) -> bool:
    return bool(RRULE_SET.match(body) or body[:5].upper() == "FREQ=")


def _is_calendar(body: str) -> bool:
    return len(body.split()) <= CALENDAR_WORDS and looks_like_calendar(body)


def _is_cron(body: str) -> bool:
    words = body.split()
    named = body.startswith(("@", "CRON_TZ=", "TZ="))
    return named or len(words) in LAYOUTS or all(map(CRON_FIELD.fullmatch, words))


# In this order: the first that says yes reads the text.
DETECTORS: tuple[tuple[Callable[[str], object], Reader], ...] = (
    (EVERY.match, read_every),
    (_is_rrule, read_rrule),
    (REPEATING.match, read_repeating),
    (DURATION.match, read_iso_interval),
    (MOMENT.fullmatch, read_once),
    (_is_calendar, read_calendar),
    (_is_cron, read_cron),
)


def _hint(body: str) -> str:
    """Return why a text is not a schedule, and what its author may have meant."""
    if SPOKEN.match(body):
        return f"not a schedule: did you mean 'every {body}'?"
    if match := AMAZON.match(body):
        return (
            f"not a schedule: {match.group(1)}(...) is Amazon's notation; write every 5m, or cron with names (MON-FRI)"
        )
    return NOT_A_SCHEDULE
