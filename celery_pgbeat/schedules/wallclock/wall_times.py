"""From readings to instants: a set of wall clock readings, seen in a zone, under a DST rule.

A zone is a sequence of spans of constant offset. Within one span a reading is an instant plus that offset, so the
instants are the readings, shifted. Only the start of a span is special: there are readings that the change leaves out
(a gap) or shows again (repeated time).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from .dst import LONGEST_CAUGHT_UP, Gap, Repeat, Rule
from .instants import EARLIEST, LATEST, MICROSECOND, horizon_after, horizon_before
from .protocols import Readings, SecondReadings
from .zones import Span, Zone

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
        span = self.zone.span_at(after)
        if after >= span.affected_until:
            reading = self.readings.following(after + span.offset)
            if reading is not None:
                instant = reading - span.offset
                if instant < span.end:
                    return instant if instant.year - after.year < 100 or instant <= horizon_after(after) else None
                if span.end - after > MARGIN:  # no change can show a reading before `after` again
                    there = self.zone.span_at(instant)
                    instant = reading - there.offset
                    if there.affected_until <= instant < there.end:
                        return instant if instant <= horizon_after(after) else None
        return self._search_onwards(after, span)

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last instant strictly earlier than `before`, or None."""
        limit = horizon_before(before)
        span = self.zone.span_at(before - MICROSECOND)
        while (found := self._last_in(span, before)) is None:
            before = self._leap_back(span)
            if before <= limit:
                return None
            span = self.zone.span_at(before - MICROSECOND)
        return found if found >= limit else None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many instants lie in (after, until]."""
        total = 0
        until = min(until, LATEST - MICROSECOND)
        while after < until:
            span = self.zone.span_at(after + MICROSECOND)
            low, high = max(after, self._opening(span)), min(until, span.end - MICROSECOND)
            if low < high:
                total += self.readings.count(low + span.offset, high + span.offset)
            if after < span.affected_until:
                total += self._count_gap(span, after, until)
            after = span.end - MICROSECOND
        return total

    # Within one span

    def _opening(self, span: Span) -> datetime:
        """Return the instant after which the span's own readings count."""
        return (span.repeats_until if self._first_pass_only else span.start) - MICROSECOND

    def _first_in(self, span: Span, after: datetime) -> datetime | None:
        found = None
        reading = self.readings.following(max(after, self._opening(span)) + span.offset)
        if reading is not None and reading - span.offset < span.end:
            found = reading - span.offset
        if span.gap and after < span.affected_until:
            late = self._first_of_gap(span, after)
            if late is not None and (found is None or late < found):
                return late
        return found

    def _last_in(self, span: Span, before: datetime) -> datetime | None:
        found = None
        reading = self.readings.preceding(min(before, span.end) + span.offset)
        if reading is not None and reading - span.offset > self._opening(span):
            found = reading - span.offset
        if span.gap and (found is None or found < span.affected_until):
            late = self._last_of_gap(span, before)
            if late is not None and (found is None or late > found):
                return late
        return found

    # The readings of a gap

    def _first_of_gap(self, span: Span, after: datetime) -> datetime | None:
        if self.rule.gap is Gap.AFTER:
            return span.start if after < span.start and self._caught_up(span) else None
        if self.rule.gap is Gap.SHIFT:
            reading = self.readings.following(max(after, span.start - MICROSECOND) + span.before)
            if reading is not None and reading - span.before < min(span.affected_until, span.end):
                return reading - span.before
        return None

    def _last_of_gap(self, span: Span, before: datetime) -> datetime | None:
        if self.rule.gap is Gap.AFTER:
            return span.start if before > span.start and self._caught_up(span) else None
        if self.rule.gap is Gap.SHIFT:
            reading = self.readings.preceding(min(before, span.affected_until, span.end) + span.before)
            if reading is not None and reading - span.before >= span.start:
                return reading - span.before
        return None

    def _caught_up(self, span: Span) -> bool:
        reading = self.readings.following(span.start + span.before - MICROSECOND)
        return span.gap < LONGEST_CAUGHT_UP and reading is not None and reading < span.start + span.offset

    def _count_gap(self, span: Span, after: datetime, until: datetime) -> int:
        """Return how many instants in (after, until] come from the gap and are not readings themselves."""
        if not span.gap:
            return 0
        if self.rule.gap is Gap.SHIFT and isinstance(self.readings, SecondReadings):
            return self._count_shifted(self.readings, span, after, until)
        total = 0
        late = self._first_of_gap(span, after)
        while late is not None and late <= until:
            if self.readings.following(late + span.offset - MICROSECOND) != late + span.offset:
                total += 1
            late = self._first_of_gap(span, late)
        return total

    def _count_shifted(self, readings: SecondReadings, span: Span, after: datetime, until: datetime) -> int:
        """Return the same for readings that may occur every second, computed at once."""
        gap = span.gap // SECOND
        # The gap's own readings, and behind them those of the time into which it is shifted.
        shown = readings.seconds_from(span.start + span.before, 2 * gap)
        late = shown & ~(shown >> gap) & ((1 << gap) - 1)
        first = max((after - span.start) // SECOND + 1, 0)
        end = min((until - span.start) // SECOND + 1, -((span.start - span.end) // SECOND), gap)
        return (late & ((1 << end) - 1)).bit_count() - (late & ((1 << first) - 1)).bit_count() if first < end else 0

    # From span to span

    def _search_onwards(self, after: datetime, span: Span) -> datetime | None:
        limit = horizon_after(after)
        while (found := self._first_in(span, after)) is None:
            after = self._leap(span)
            if after >= limit:
                return None
            span = self.zone.span_at(after + MICROSECOND)
        return found if found <= limit else None

    def _leap(self, span: Span) -> datetime:
        """Return the instant after which to go on when the span has no more: its end, or far beyond it.

        No zone's clock that shows less than MARGIN before the next reading shows that reading, whatever its offset.
        """
        close = span.end - MICROSECOND
        reading = self.readings.following(close + span.offset - MARGIN)
        return LATEST if reading is None else max(close, reading - MARGIN)

    def _leap_back(self, span: Span) -> datetime:
        reading = self.readings.preceding(span.start + span.before + MARGIN)
        return EARLIEST if reading is None else min(span.start, reading + MARGIN)


def first_instant_of(reading: datetime, zone: Zone) -> datetime:
    """Return the first instant at which a clock in `zone` shows the reading; a gap shifts it, as it does dates."""
    if reading >= LATEST - MARGIN:
        return LATEST
    span = zone.span_at(max(reading - MARGIN, EARLIEST))
    while reading - span.offset >= span.end:
        span = zone.span_at(span.end)
    instant = reading - span.offset
    return instant if instant >= span.start else reading - span.before
