"""From readings to instants: a set of wall clock readings, seen in a zone, under a DST rule.

A zone is a sequence of periods of constant offset. Within one period a reading is an instant plus that offset, so the
instants are the readings, shifted. Only the start of a period is special: there are readings that the change leaves out
(a gap) or shows again (repeated time).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from .dst import LONGEST_CAUGHT_UP, Gap, Repeat, Rule
from .instants import EARLIEST, LATEST, MICROSECOND, horizon_after, horizon_before
from .protocols import Readings, SecondReadings
from .zones import Period, Zone

# No two offsets differ by more, so a search may jump to this long before the next reading.
MARGIN = timedelta(days=2)
SECOND = timedelta(seconds=1)


class WallTimes:
    """The instants at which a wall clock in `zone` shows one of `readings`."""

    __slots__ = ("_first_pass_only", "readings", "rule", "zone")

    def __init__(self, readings: Readings, zone: Zone, rule: Rule) -> None:
        self.readings = readings
        self.zone = zone
        self.rule = rule
        self._first_pass_only = rule.repeat is Repeat.FIRST

    def following(self, after: datetime) -> datetime | None:
        """Return the first instant strictly later than `after`, or None."""
        period = self.zone.period_at(after)
        if after >= period.affected_until:
            reading = self.readings.following(after + period.offset)
            if reading is not None:
                instant = reading - period.offset
                if instant < period.end:
                    return instant if instant.year - after.year < 100 or instant <= horizon_after(after) else None
                if period.end - after > MARGIN:  # no change can show a reading before `after` again
                    there = self.zone.period_at(instant)
                    instant = reading - there.offset
                    if there.affected_until <= instant < there.end:
                        return instant if instant <= horizon_after(after) else None
        return self._search_onwards(after, period)

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last instant strictly earlier than `before`, or None."""
        limit = horizon_before(before)
        period = self.zone.period_at(before - MICROSECOND)
        while (found := self._last_in(period, before)) is None:
            before = self._leap_back(period)
            if before <= limit:
                return None
            period = self.zone.period_at(before - MICROSECOND)
        return found if found >= limit else None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many instants lie in (after, until]."""
        total = 0
        until = min(until, LATEST - MICROSECOND)
        while after < until:
            period = self.zone.period_at(after + MICROSECOND)
            low, high = max(after, self._opening(period)), min(until, period.end - MICROSECOND)
            if low < high:
                total += self.readings.count(low + period.offset, high + period.offset)
            if after < period.affected_until:
                total += self._count_gap(period, after, until)
            after = period.end - MICROSECOND
        return total

    # Within one period

    def _opening(self, period: Period) -> datetime:
        """Return the instant after which the period's own readings count."""
        return (period.repeats_until if self._first_pass_only else period.start) - MICROSECOND

    def _first_in(self, period: Period, after: datetime) -> datetime | None:
        found = None
        reading = self.readings.following(max(after, self._opening(period)) + period.offset)
        if reading is not None and reading - period.offset < period.end:
            found = reading - period.offset
        if period.gap and after < period.affected_until:
            late = self._first_of_gap(period, after)
            if late is not None and (found is None or late < found):
                return late
        return found

    def _last_in(self, period: Period, before: datetime) -> datetime | None:
        found = None
        reading = self.readings.preceding(min(before, period.end) + period.offset)
        if reading is not None and reading - period.offset > self._opening(period):
            found = reading - period.offset
        if period.gap and (found is None or found < period.affected_until):
            late = self._last_of_gap(period, before)
            if late is not None and (found is None or late > found):
                return late
        return found

    # The readings of a gap

    def _first_of_gap(self, period: Period, after: datetime) -> datetime | None:
        if self.rule.gap is Gap.AFTER:
            return period.start if after < period.start and self._caught_up(period) else None
        if self.rule.gap is Gap.SHIFT:
            reading = self.readings.following(max(after, period.start - MICROSECOND) + period.before)
            if reading is not None and reading - period.before < min(period.affected_until, period.end):
                return reading - period.before
        return None

    def _last_of_gap(self, period: Period, before: datetime) -> datetime | None:
        if self.rule.gap is Gap.AFTER:
            return period.start if before > period.start and self._caught_up(period) else None
        if self.rule.gap is Gap.SHIFT:
            reading = self.readings.preceding(min(before, period.affected_until, period.end) + period.before)
            if reading is not None and reading - period.before >= period.start:
                return reading - period.before
        return None

    def _caught_up(self, period: Period) -> bool:
        reading = self.readings.following(period.start + period.before - MICROSECOND)
        return period.gap < LONGEST_CAUGHT_UP and reading is not None and reading < period.start + period.offset

    def _count_gap(self, period: Period, after: datetime, until: datetime) -> int:
        """Return how many instants in (after, until] come from the gap and are not readings themselves."""
        if not period.gap:
            return 0
        if self.rule.gap is Gap.SHIFT and isinstance(self.readings, SecondReadings):
            return self._count_shifted(self.readings, period, after, until)
        total = 0
        late = self._first_of_gap(period, after)
        while late is not None and late <= until:
            if self.readings.following(late + period.offset - MICROSECOND) != late + period.offset:
                total += 1
            late = self._first_of_gap(period, late)
        return total

    def _count_shifted(self, readings: SecondReadings, period: Period, after: datetime, until: datetime) -> int:
        """Return the same for readings that may occur every second, computed at once."""
        gap = period.gap // SECOND
        # The gap's own readings, and behind them those of the time into which it is shifted.
        shown = readings.seconds_from(period.start + period.before, 2 * gap)
        late = shown & ~(shown >> gap) & ((1 << gap) - 1)
        first = max((after - period.start) // SECOND + 1, 0)
        end = min((until - period.start) // SECOND + 1, -((period.start - period.end) // SECOND), gap)
        return (late & ((1 << end) - 1)).bit_count() - (late & ((1 << first) - 1)).bit_count() if first < end else 0

    # From period to period

    def _search_onwards(self, after: datetime, period: Period) -> datetime | None:
        limit = horizon_after(after)
        while (found := self._first_in(period, after)) is None:
            after = self._leap(period)
            if after >= limit:
                return None
            period = self.zone.period_at(after + MICROSECOND)
        return found if found <= limit else None

    def _leap(self, period: Period) -> datetime:
        """Return the instant after which to go on when the period has no more: its end, or far beyond it.

        No zone's clock that shows less than MARGIN before the next reading shows that reading, whatever its offset.
        """
        close = period.end - MICROSECOND
        reading = self.readings.following(close + period.offset - MARGIN)
        return LATEST if reading is None else max(close, reading - MARGIN)

    def _leap_back(self, period: Period) -> datetime:
        reading = self.readings.preceding(period.start + period.before + MARGIN)
        return EARLIEST if reading is None else min(period.start, reading + MARGIN)


def first_instant_of(reading: datetime, zone: Zone) -> datetime:
    """Return the first instant at which a clock in `zone` shows the reading; a gap shifts it, as it does dates."""
    if reading >= LATEST - MARGIN:
        return LATEST
    period = zone.period_at(max(reading - MARGIN, EARLIEST))
    while reading - period.offset >= period.end:
        period = zone.period_at(period.end)
    instant = reading - period.offset
    return instant if instant >= period.start else reading - period.before
