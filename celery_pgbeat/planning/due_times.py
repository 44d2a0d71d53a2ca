"""When a row's occurrences are due: each nominal instant, spread by the jitter, moved out of the blackout windows.

The nominal instant stays the identity of an occurrence; where it is due may lie later. Both grow together:
spreading never passes the next occurrence, and of two instants in one window both leave it at its end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import Schedule, Windows, parse_windows

from .cached_schedule import CachedSchedule, cached_schedule_of
from .types import LONGEST_PICKUP, MICROSECOND, SHORTEST_PICKUP, PlanningRow, Rules


@dataclass(slots=True)  # not frozen: each decision makes one, and freezing would double what that takes
class DueTimes:
    """The occurrences of one row, and when each is due."""

    name: str
    recurrence: CachedSchedule | None
    counts_after: datetime
    end_at: datetime | None
    jitter: timedelta | None
    windows: Windows | None
    moves: bool  # out of the windows (defer), rather than passing over what falls into them (skip)

    @property
    def schedule(self) -> Schedule | None:
        """The schedule, None for a row that has none."""
        return None if self.recurrence is None else self.recurrence.schedule

    def next(self, after: datetime) -> datetime | None:
        """Return the schedule's first occurrence after an instant, whatever the row's bounds."""
        return None if self.recurrence is None else self.recurrence.next(after)

    def following(self, after: datetime) -> datetime | None:
        """Return the first occurrence after an instant that lies within the row's inclusive bounds."""
        found = self.next(after if after >= self.counts_after else self.counts_after)
        return None if found is None or (self.end_at is not None and found > self.end_at) else found

    def newest(self, until: datetime) -> datetime | None:
        """Return the last occurrence up to and including an instant."""
        last = until if self.end_at is None else min(until, self.end_at)
        return None if self.schedule is None else self.schedule.previous(last + MICROSECOND)

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many occurrences lie in (after, until]."""
        last = until if self.end_at is None else min(until, self.end_at)
        return 0 if self.schedule is None or last <= after else self.schedule.count(after, last)

    def spread(self, nominal: datetime) -> datetime:
        """Return the instant with its jitter: stable for a row and an occurrence, before the next occurrence."""
        if not self.jitter:
            return nominal
        following = self.next(nominal)
        room = self.jitter if following is None else min(self.jitter, following - nominal - MICROSECOND)
        steps = room // MICROSECOND + 1
        digest = hashlib.sha256(f"{self.name}\0{nominal.isoformat()}".encode()).digest()
        return nominal + int.from_bytes(digest[:8], "big") % steps * MICROSECOND

    def covers(self, instant: datetime) -> bool:
        """Tell whether an instant lies in a blackout window."""
        return self.windows is not None and self.windows.covers(instant)

    def free_from(self, instant: datetime) -> datetime:
        """Return the instant itself if it is free, else the first free one after it.

        Raises:
            InvalidSchedule: there is none.
        """
        if self.windows is None:
            return instant
        free = self.windows.defer(instant)
        if free is None:
            raise InvalidSchedule(self.windows.text, "blackout", "the windows never leave a free moment from here on")
        return free

    def blocked_since(self, instant: datetime) -> datetime:
        """Return when the stretch of windows opened that covers an instant.

        Raises:
            InvalidSchedule: it never did.
        """
        opening = None if self.windows is None else self.windows.since(instant)
        if opening is None:
            raise InvalidSchedule(str(self.windows), "blackout", "the windows never left a free moment before")
        return opening

    def due(self, nominal: datetime) -> datetime:
        """Return when an occurrence is due; under `skip` it may be covered then, and is skipped."""
        spread = self.spread(nominal)
        return self.free_from(spread) if self.moves else spread

    def newest_due_before(self, oldest: datetime, boundary: datetime) -> datetime:
        """Return the last occurrence from `oldest` on that is due before the boundary; `oldest` is known to be."""
        low, high = oldest, self.newest(boundary - MICROSECOND)
        if high is None or high <= low:
            return low
        if self.due(high) < boundary:
            return high
        # Due instants grow with nominal ones, so halving finds the place without walking through millions.
        while (middle := self.newest(low + (high - low) / 2)) is not None:
            if middle <= low:
                step = self.following(low)
                if step is None or step >= high or self.due(step) >= boundary:
                    return low
                middle = step
            if self.due(middle) < boundary:
                low = middle
            else:
                high = middle
        return low


def due_times_of(row: PlanningRow, rules: Rules) -> DueTimes:
    """Compile a row's schedule and windows.

    Raises:
        InvalidSchedule: a text is wrong, or the schedule is faster than `pgbeat_min_interval`.
    """
    return DueTimes(
        row.name,
        cached_schedule_of(row, rules),
        row.counts_after,
        row.end_at,
        row.jitter,
        windows_of(row.blackout, row.windows, row.timezone or rules.timezone),
        row.blackout_action == "defer",
    )


def pickup_after(line: DueTimes, occurrence: datetime | None, rules: Rules) -> timedelta:
    """Return how long a sent message may wait for a worker: twice the gap to the next occurrence, within bounds."""
    if rules.pickup_deadline is not None:
        return rules.pickup_deadline
    following = None if occurrence is None else line.next(occurrence)
    if occurrence is None or following is None:
        return LONGEST_PICKUP
    wait = 2 * (following - occurrence)
    if wait <= SHORTEST_PICKUP:
        return SHORTEST_PICKUP
    return wait if wait < LONGEST_PICKUP else LONGEST_PICKUP


def windows_of(
    blackout: Sequence[str] | None, windows: Mapping[str, tuple[Sequence[str], str | None]], zone: str
) -> Windows | None:
    """Compile a row's windows and the named ones that they refer to; None for a row that has none.

    Raises:
        InvalidSchedule: a text is wrong, or names a window that is not there.
    """
    if not blackout:
        return None
    named = {name: parse_windows(list(texts), own or zone) for name, (texts, own) in windows.items()}
    return parse_windows(list(blackout), zone, named=named)
