"""Where croniter would run a cron text at other instants than this package, and why.

Airflow and many other schedulers read cron with croniter, so a text that comes from one of them may mean something
else here. `validate` and `doctor` say so; no beat imports this module.

The comparison covers a year: the first occurrences one by one, all occurrences around each change of the clocks, and a
few of each other day. It takes milliseconds for most texts, and about half a second for one that runs every minute.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from croniter import croniter

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.safe_text import one_line
from celery_pgbeat.schedules import Schedule, parse
from celery_pgbeat.schedules.cron.fields import DAY, WEEKDAY, YEAR, Field, read_field
from celery_pgbeat.schedules.cron.hashed import expand
from celery_pgbeat.schedules.cron.reader import LAYOUTS, NICKNAMES
from celery_pgbeat.schedules.wallclock.dst import Gap, Repeat
from celery_pgbeat.schedules.wallclock.instants import UTC, as_utc
from celery_pgbeat.schedules.wallclock.wall_times import WallTimes
from celery_pgbeat.schedules.wallclock.zones import Span, zone_named

YEAR_OF_DAYS = 366
AROUND_A_CHANGE = timedelta(hours=3)  # before and after a change of the clocks
# Occurrences that are compared from the beginning, around a change of the clocks, and on each other day.
FIRST, AT_A_CHANGE, DAILY = 200, 500, 12
CONFIRMING = 3  # occurrences that must agree under another reading before that reading counts as the cause
LONGEST_SET = 12  # numbers of a field that a reason lists

PREFIX = re.compile(r"\s*cron\s*:", re.ASCII | re.IGNORECASE)
SPECIAL = re.compile(r"#|L|\dW", re.ASCII | re.IGNORECASE)
ZONE = re.compile(r"(CRON_)?TZ=")
SECOND = timedelta(seconds=1)
THEIR_ORDER = ("minute", "hour", "day", "month", "weekday", "second", "year")  # of `croniter.expanded`


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between croniter and this package.

    Attributes:
        cause: one word for the kind of difference: `seconds`, `zone`, `syntax`, `field`, `hash`, `star`,
            `special`, `clocks` or `other`.
        reason: the same in a clause.
        ours: the occurrence here after the last one that agrees; None where there is none, and for a text that
            croniter cannot read.
        theirs: that of croniter.
        readable: whether croniter can read the text at all.
    """

    cause: str
    reason: str
    ours: datetime | None = None
    theirs: datetime | None = None
    readable: bool = True


class Reading(Protocol):
    """One way to read a text."""

    def next(self, after: datetime, /) -> datetime | None:
        """Return the first instant later than `after`, None if there is none."""


class CroniterReading:
    """A text as croniter reads it.

    Raises:
        Exception: croniter cannot read it; most of its errors are ValueErrors, but not all.
    """

    def __init__(self, words: list[str], timezone: str, name: str, **options: Any) -> None:
        hash_id = name if any("H" in word for word in words) else None
        self._zone = ZoneInfo(timezone)
        self._croniter = croniter(" ".join(words), 0, ret_type=datetime, hash_id=hash_id, **options)

    def next(self, after: datetime, /) -> datetime | None:
        """Return the first instant later than `after`; None where croniter finds none, or fails."""
        try:
            found: datetime = self._croniter.get_next(datetime, start_time=after.astimezone(self._zone))
        except Exception:  # noqa: BLE001  it fails with errors of its own, and with AssertionError and RecursionError
            return None
        return found.astimezone(UTC)

    def values_of(self, field: Field) -> set[int] | None:
        """Return the numbers that a field stands for; None where it holds more than numbers."""
        values = self._croniter.expanded[THEIR_ORDER.index(field.name)]
        if values == ["*"]:
            return set(range(field.low, field.high + 1))
        beyond_numbers = self._croniter.nth_weekday_of_month or self._croniter.nearest_weekday
        return None if beyond_numbers or not all(isinstance(value, int) for value in values) else set(values)


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
        >>> compare_with_croniter("0 0 1 6-6 *", "UTC", december).reason
        "croniter reads the month '6-6' as 1 to 12, here it is 6"
    """
    schedule = parse(text, timezone, name=name, dst=dst)
    if schedule.kind != "cron":
        return None
    match = PREFIX.match(text)
    words = text[match.end() if match else 0 :].split()
    if ZONE.match(words[0]):
        return Difference("zone", f"a zone in the text ({words[0]}) is not in croniter's language", readable=False)
    words = NICKNAMES[words[0].lower()].split() if words[0].startswith("@") else words
    return _Comparison(schedule, words, name).difference(as_utc(begin))


class Never:
    """A text that never occurs."""

    def next(self, _after: datetime, /) -> None:
        """Return None."""


NEVER = Never()
SECONDS_LAST = "the seconds come first here; croniter expects them after the weekday"


class _Comparison:
    """One text, read by both."""

    def __init__(self, schedule: Schedule, words: list[str], name: str) -> None:
        self._schedule = schedule
        self._words = words
        self._name = name
        self._fields = list(zip(LAYOUTS[len(words)], words, strict=True))
        self._seconds = {"second_at_beginning": True} if len(words) > 5 else {}

    def difference(self, begin: datetime) -> Difference | None:
        """Return the first difference after an instant."""
        try:
            theirs = self._read_by_croniter()
        except Exception as error:  # noqa: BLE001  see CroniterReading
            return self._unreadable(error)
        parted = _first_difference(self._schedule, theirs, self._schedule.timezone, begin)
        if parted is None:
            return None
        cause, reason = self._why(theirs, *parted)
        _, ours, other = parted
        return Difference(cause, reason, ours, other)

    def _read_by_croniter(self, **options: Any) -> CroniterReading:
        return CroniterReading(self._words, self._schedule.timezone, self._name, **options)

    def _unreadable(self, error: Exception) -> Difference:
        """Return why croniter cannot read the text: the seconds are in another place, or one field is not its own."""
        if self._seconds and self._is_readable(self._words):
            return Difference("seconds", SECONDS_LAST, readable=False)
        for field, word in self._fields:
            if self._is_readable(self._with_star_for(field)):
                return Difference("syntax", f"the {field.name} {word!r} is not in croniter's language", readable=False)
        return Difference("syntax", f"croniter's error is {one_line(str(error), 200)!r}", readable=False)

    def _with_star_for(self, starred: Field) -> list[str]:
        return ["*" if field is starred else word for field, word in self._fields]

    def _is_readable(self, words: list[str]) -> bool:
        try:
            CroniterReading(words, "UTC", self._name, **self._seconds)
        except Exception:  # noqa: BLE001  see CroniterReading
            return False
        return True

    def _why(
        self, theirs: CroniterReading, at: datetime, ours: datetime | None, other: datetime | None
    ) -> tuple[str, str]:
        """Return the cause and the reason: what must be read otherwise for both to agree at this place."""
        if self._seconds:
            try:
                seconds_first = self._read_by_croniter(**self._seconds)
            except Exception:  # noqa: BLE001  see CroniterReading
                return "seconds", SECONDS_LAST
            if not _agree(theirs, seconds_first, at):
                return "seconds", SECONDS_LAST
            theirs = seconds_first
        return (
            self._why_a_field(theirs)
            or self._why_the_days(theirs, at)
            or self._why_the_clocks(min(instant for instant in (ours, other) if instant is not None))
            or ("other", "croniter reads the text otherwise" if other else "croniter finds no such occurrence")
        )

    def _why_a_field(self, theirs: CroniterReading) -> tuple[str, str] | None:
        for field, word in self._fields:
            values = read_field(field, expand(field, word, self._name))
            here, there = _numbers(values.numbers), theirs.values_of(field)
            if values.special or there is None or here == there or (field is YEAR and values.starred):
                continue
            if "H" in word:
                return "hash", f"the {field.name} {word!r} is hashed from the row's name here, from hash_id by croniter"
            return "field", f"croniter reads the {field.name} {word!r} as {_listed(there)}, here it is {_listed(here)}"
        return None

    def _why_the_days(self, theirs: CroniterReading, at: datetime) -> tuple[str, str] | None:
        """Return how the two day fields are joined, if that is it."""
        if _agree(self._schedule, self._read_by_croniter(**self._seconds, implement_cron_bug=True), at):
            return "star", (
                "one of the two day fields starts with '*': here a day must then fit both, for croniter one is enough"
            )
        if not any(SPECIAL.search(word) for field, word in self._fields if field in (DAY, WEEKDAY)):
            return None
        for field, other in ((DAY, WEEKDAY), (WEEKDAY, DAY)):
            if _agree(self._read_here("cron", self._with_star_for(other)), theirs, at):
                return "special", f"beside '#', 'L' or 'W' croniter looks at the {field.name} alone, here both count"
        if theirs.next(at) is None or _agree(self._read_here("crontab", self._words), theirs, at):
            return "special", "beside '#', 'L' or 'W' a day must fit both day fields for croniter, here one is enough"
        return None

    def _read_here(self, kind: str, words: list[str]) -> Reading:
        schedule = self._schedule
        try:
            return parse(f"{kind}: {' '.join(words)}", schedule.timezone, name=self._name, dst=schedule.dst)
        except InvalidSchedule:  # it never occurs
            return NEVER

    def _why_the_clocks(self, instant: datetime) -> tuple[str, str] | None:
        wall = self._schedule.times
        if not isinstance(wall, WallTimes):
            return None
        day = timedelta(days=1)
        change = next((span for span in _changes(wall.zone.name, instant - day, instant + day)), None)
        if change is None:
            return None
        if change.gap:
            then = "left out" if wall.rule.gap is Gap.NOTHING else "run once, right after it"
            return "clocks", f"the clocks go forward on {_day(change)}: times in the gap are {then} here"
        passes = "in the first pass only" if wall.rule.repeat is Repeat.FIRST else "in both passes"
        return "clocks", f"the clocks go back on {_day(change)}: times that come twice run {passes} here"


def _first_difference(
    ours: Reading, theirs: Reading, timezone: str, begin: datetime
) -> tuple[datetime, datetime | None, datetime | None] | None:
    """Return the last instant up to which both agree, and the next occurrence of each; None if all of it agrees."""
    at = begin
    for (start, most), (end, _) in pairwise(_stretches(timezone, begin)):
        at = max(at, start)
        for _ in range(most):
            if at >= end:
                break
            here, there = ours.next(at), theirs.next(at)
            if here != there:
                return at, here, there
            if here is None:
                return None
            at = here
    return None


@lru_cache(maxsize=16)
def _stretches(timezone: str, begin: datetime) -> tuple[tuple[datetime, int], ...]:
    """Return from where to compare how many occurrences; the last stretch only ends the one before it."""
    end = begin + timedelta(days=YEAR_OF_DAYS)
    changes = [span.start for span in _changes(timezone, begin, end)]
    zone, first_day = ZoneInfo(timezone), begin.date()
    days = [
        datetime.combine(first_day + timedelta(days=number), time(), zone).astimezone(UTC) - SECOND
        for number in range(1, YEAR_OF_DAYS)
    ]
    quiet = [day for day in days if day > begin and not any(abs(day - change) <= AROUND_A_CHANGE for change in changes)]
    return tuple(
        sorted(
            [
                (begin, FIRST),
                *((max(begin, change - AROUND_A_CHANGE), AT_A_CHANGE) for change in changes),
                *((day, DAILY) for day in quiet),
                (end, 0),
            ]
        )
    )


def _changes(timezone: str, begin: datetime, end: datetime) -> Iterable[Span]:
    """Iterate over the spans of a zone that begin in (begin, end] with another offset."""
    zone = zone_named(timezone)
    at = begin
    while (at := zone.span_at(at).end) <= end:
        span = zone.span_at(at)
        if span.offset != span.before:
            yield span


def _agree(one: Reading, other: Reading, at: datetime) -> bool:
    for _ in range(CONFIRMING):
        first, second = one.next(at), other.next(at)
        if first != second:
            return False
        if first is None:
            return True
        at = first
    return True


def _numbers(bits: int) -> set[int]:
    return {number for number in range(bits.bit_length()) if bits >> number & 1}


def _listed(numbers: set[int]) -> str:
    ordered = sorted(numbers)
    if len(ordered) > 2 and ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"{ordered[0]} to {ordered[-1]}"
    more = ", ..." if len(ordered) > LONGEST_SET else ""
    return ", ".join(map(str, ordered[:LONGEST_SET])) + more


def _day(change: Span) -> str:
    return f"{change.start + change.before:%Y-%m-%d}"
