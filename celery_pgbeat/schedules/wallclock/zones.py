"""Time zones as periods of constant offset.

zoneinfo returns the offset at an instant, but not the instants at which it changes; this file finds those by probing,
once for each year of a zone, and keeps them. Inside a period, readings and instants differ by a constant, so searching
is fast and counting is exact.
"""

from __future__ import annotations

import difflib
import re
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from celery_pgbeat.errors import InvalidSchedule

from .instants import EARLIEST, LATEST, UTC

NONE = timedelta(0)
OFFSET = re.compile(r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?(\d\d))?", re.ASCII | re.IGNORECASE)
SHORTEST_PLACE = 4  # characters; what is shorter is an abbreviation
LONGEST_ZONE = 40  # characters of a name for which a similar one is looked for; the longest zone's has 32

# Between two probes there is at most one change of the offset: no two changes of any zone lie closer together than 3.9
# days (in Debian's tables; 6.9 days in the package tzdata: Recife 2000, Gaza 2040).
PROBE = timedelta(days=3)
LEAD = timedelta(days=3)  # a year's list begins this early, so that repeated time over New Year is seen whole


class Period:
    """A period during which the offset of a zone stays the same.

    Attributes:
        start, end: instants; `end` is the first one that is outside.
        offset: reading minus instant, here.
        before: the same just before `start`. Equal to `offset` where the period was cut at New Year.
        gap: how much wall time `start` leaps over; zero if none.
        repeats_until: the first instant whose reading the period before has not shown already.
        affected_until: the first instant that the change at `start` does not affect any more.
    """

    __slots__ = ("affected_until", "before", "end", "gap", "offset", "repeats_until", "start")

    def __init__(self, start: datetime, end: datetime, before: timedelta, offset: timedelta) -> None:
        self.start = start
        self.end = end
        self.before = before
        self.offset = offset
        self.gap = max(offset - before, NONE)
        self.repeats_until = start + max(before - offset, NONE)
        self.affected_until = start + abs(offset - before)


class Zone:
    """An IANA time zone: the period of an instant."""

    __slots__ = ("_info", "_recent", "_years", "name")

    def __init__(self, name: str, info: ZoneInfo) -> None:
        self.name = name
        self._info = info
        self._years: dict[int, tuple[Period, ...]] = {}
        fixed = info.utcoffset(None)
        # Most calls are about the period of the last call.
        self._recent = Period(EARLIEST, EARLIEST if fixed is None else LATEST, fixed or NONE, fixed or NONE)

    def period_at(self, instant: datetime) -> Period:
        """Return the period that holds the instant (which lies between EARLIEST and LATEST)."""
        period = self._recent
        if period.start <= instant < period.end:
            return period
        periods = self._years.get(instant.year) or self._survey(instant.year)
        for period in periods:
            if instant < period.end:
                self._recent = period
                return period
        return periods[-1]

    def offset_at(self, instant: datetime) -> timedelta:
        """Return what a wall clock adds to the instant."""
        return self.period_at(instant).offset

    def _survey(self, year: int) -> tuple[Period, ...]:
        begin = max(datetime(year, 1, 1, tzinfo=UTC) - LEAD, EARLIEST)
        end = min(datetime(year + 1, 1, 1, tzinfo=UTC), LATEST)
        before = offset = self._probe(begin)
        periods = []
        start = probed = begin
        while probed < end:
            ahead = min(probed + PROBE, end)
            if self._probe(ahead) != offset:
                change = self._first_change(probed, ahead)
                if change == end:  # the next year's list has it
                    break
                periods.append(Period(start, change, before, offset))
                before, offset, start = offset, self._probe(change), change
            probed = ahead
        periods.append(Period(start, end, before, offset))
        self._years[year] = tuple(periods)
        return self._years[year]

    def _first_change(self, low: datetime, high: datetime) -> datetime:
        """Return the first whole second in (low, high] whose offset is not that of `low`; that of `high` is not."""
        offset = self._probe(low)
        first, last = 0, int((high - low).total_seconds())
        while last - first > 1:
            middle = (first + last) // 2
            if self._probe(low + timedelta(seconds=middle)) == offset:
                first = middle
            else:
                last = middle
        return low + timedelta(seconds=last)

    def _probe(self, instant: datetime) -> timedelta:
        offset = instant.astimezone(self._info).utcoffset()
        assert offset is not None
        return offset


# Names that zoneinfo opens but that mean something else on each machine, or count leap seconds.
UNSTABLE = ("localtime", "posixrules", "posix/", "right/")


@lru_cache(maxsize=1024)
def zone_named(name: str) -> Zone:
    """Return the zone of that IANA name.

    Raises:
        InvalidSchedule: there is none, or the name is not the same everywhere ("localtime").
    """
    wanted = "UTC" if name.upper() == "UTC" else name
    try:
        if not wanted or wanted.startswith(UNSTABLE):
            raise ValueError(wanted)
        return Zone(wanted, ZoneInfo(wanted))
    except (LookupError, ValueError, OSError):
        # zoneinfo raises LookupError for an unknown name, ValueError for a bad path or file, OSError for a folder.
        raise InvalidSchedule(name, "timezone", f"there is no time zone of that name{_way_out(name)}", 0) from None


@lru_cache(maxsize=1024)
def _way_out(name: str) -> str:
    """Return the end of the message: a similar name, or what to write instead."""
    if match := OFFSET.fullmatch(name):
        return _instead_of_offset(match)
    known = {zone.lower(): zone for zone in _names() if "/" in zone}  # an abbreviation is like many and means none
    word = name[:LONGEST_ZONE].lower().replace(" ", "_")
    if "/" not in word and len(word) >= SHORTEST_PLACE:
        known |= {place.lower(): zone for place, zone in _places().items()}
    alike = difflib.get_close_matches(word, known, n=1, cutoff=0.8)
    if alike:
        return f"; did you mean {known[alike[0]]!r}?"
    return "; write an IANA name such as Europe/Berlin, not an offset or an abbreviation"


def _instead_of_offset(match: re.Match[str]) -> str:
    """Return what to write instead of `+02:00` or `UTC+2`. The signs of the zones in Etc are the other way round."""
    sign, hours, minutes = match[1], int(match[2]), int(match[3] or 0)
    if not hours and not minutes:
        return "; did you mean 'UTC'?"
    advice = "; an offset is not a time zone: write a place such as Europe/Berlin"
    zone = f"Etc/GMT{'-' if sign == '+' else '+'}{hours}"
    if minutes or zone not in _names():
        return advice
    return f"{advice}, or {zone!r}, which is always {sign}{hours:02}:00"


@lru_cache(maxsize=1)
def _places() -> dict[str, str]:
    """Return the zones by the last part of their names, such as Berlin; of several the one with the fewest parts."""
    zones = sorted((zone for zone in _names() if "/" in zone and not zone.startswith("Etc/")), reverse=True)
    return {zone.rpartition("/")[2]: zone for zone in sorted(zones, key=lambda zone: zone.count("/"), reverse=True)}


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones())
