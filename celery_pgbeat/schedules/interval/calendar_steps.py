"""Readings and instants at steps of months and days, always counted from the anchor.

31 January plus one month is 28 February, plus two months is 31 March: each step is taken from the anchor, so a short
month does not shorten the later ones. The last step before a moment is found by halving, between the numbers of steps
that months of 31 and of 28 days would give.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from ..durations import Duration
from ..wallclock.instants import LATEST, MICROSECOND, horizon_after, horizon_before
from ..wallclock.wall_times import first_instant_of
from ..wallclock.zones import Zone

StepAt = Callable[[int], datetime]


class CalendarSteps:
    """Ascending moments, numbered from `first` to `last`; number 0 is the anchor."""

    __slots__ = ("_anchor", "_at", "_first", "_last", "_longest", "_shortest")

    def __init__(self, anchor: datetime, step: Duration, at: StepAt, first: int, last: int | None) -> None:
        self._anchor = anchor
        self._at = at
        self._first = first
        self._shortest = timedelta(days=28 * step.months + step.days) + step.elapsed
        self._longest = timedelta(days=31 * step.months + step.days) + step.elapsed
        whole = max(0, (LATEST - anchor) // self._longest - 1)
        self._last = whole if last is None else min(last, whole)

    def following(self, after: datetime) -> datetime | None:
        """Return the first moment strictly later than `after`, or None."""
        number = max(self._index(after) + 1, self._first)
        if number > self._last:
            return None
        found = self._at(number)
        return found if found <= horizon_after(after) else None

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last moment strictly earlier than `before`, or None."""
        number = min(self._index(before - MICROSECOND), self._last)
        if number < self._first:
            return None
        found = self._at(number)
        return found if found >= horizon_before(before) else None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many moments lie in (after, until]."""
        bounds = [min(max(self._index(moment), self._first - 1), self._last) for moment in (after, until)]
        return max(0, bounds[1] - bounds[0])

    def _index(self, moment: datetime) -> int:
        """Return the number of the last moment that is not later; -1 before the anchor, `last` at most."""
        distance = moment - self._anchor
        # Two days to either side: an instant differs from its reading by less.
        low = max(-1, (distance - timedelta(days=2)) // self._longest)
        high = min(self._last, (distance + timedelta(days=2)) // self._shortest) + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._at(middle) <= moment:
                low = middle
            else:
                high = middle
        return low


def date_steps(anchor: datetime, step: Duration, first: int = 0, last: int | None = None) -> CalendarSteps:
    """Return the readings at steps of months and days from the reading `anchor`."""
    return CalendarSteps(anchor, step, lambda number: step.after_date_parts(anchor, number), first, last)


def mixed_steps(anchor: datetime, step: Duration, zone: Zone, first: int = 0, last: int | None = None) -> CalendarSteps:
    """Return the instants at steps with a date part and a time part, such as P1DT1H.

    The date part is added first, on the wall clock, then the time part elapses. `dst` has no effect.
    """

    def at(number: int) -> datetime:
        return first_instant_of(step.after_date_parts(anchor, number), zone) + step.elapsed * number

    return CalendarSteps(anchor, step, at, first, last)
