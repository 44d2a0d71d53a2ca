"""When the occurrences of a row are due: with the jitter added, and moved out of the blackout windows.

An occurrence is the instant that the schedule names: it identifies a run. The instant at which it is due may be later.
Of two occurrences the later one is never due earlier: jitter does not reach the next occurrence, and what a window
moves is due when the window closes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import Schedule, Windows, parse_windows

from .cached_schedule import CachedSchedule, cached_schedule_of
from .types import LONGEST_PICKUP, MICROSECOND, SHORTEST_PICKUP, PlanningRow, Rules, Skipped


@dataclass(slots=True)  # not frozen: each decision makes one, and freezing would double what that takes
class DueTimes:
    """The occurrences of one row, and when each is due."""

    name: str
    cached_schedule: CachedSchedule | None
    counts_after: datetime
    end_at: datetime | None
    jitter: timedelta | None
    windows: Windows | None
    defers: bool  # whether windows move what falls into them to their end (defer), or drop it (skip)

    @property
    def schedule(self) -> Schedule | None:
        """The schedule, None for a row that has none."""
        return None if self.cached_schedule is None else self.cached_schedule.schedule

    def next_ignoring_bounds(self, after: datetime) -> datetime | None:
        """Return the first occurrence of the schedule after an instant, also outside the bounds of the row."""
        return None if self.cached_schedule is None else self.cached_schedule.next(after)

    def following(self, after: datetime) -> datetime | None:
        """Return the first occurrence after an instant within the bounds of the row, which are inclusive."""
        found = self.next_ignoring_bounds(after if after >= self.counts_after else self.counts_after)
        return None if found is None or (self.end_at is not None and found > self.end_at) else found

    def last_until(self, until: datetime) -> datetime | None:
        """Return the last occurrence up to and including an instant."""
        last = until if self.end_at is None else min(until, self.end_at)
        return None if self.schedule is None else self.schedule.previous(last + MICROSECOND)

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many occurrences are in (after, until]."""
        last = until if self.end_at is None else min(until, self.end_at)
        return 0 if self.schedule is None or last <= after else self.schedule.count(after, last)

    def with_jitter(self, occurrence: datetime, following: datetime | None = None) -> datetime:
        """Return the occurrence with its jitter: the same each time, and before the next one, if that is known."""
        if not self.jitter:
            return occurrence
        following = following or self.next_ignoring_bounds(occurrence)
        widest = self.jitter if following is None else min(self.jitter, following - occurrence - MICROSECOND)
        steps = widest // MICROSECOND + 1
        digest = hashlib.sha256(f"{self.name}\0{occurrence.isoformat()}".encode()).digest()
        return occurrence + int.from_bytes(digest[:8], "big") % steps * MICROSECOND

    def is_blacked_out(self, instant: datetime) -> bool:
        """Return whether an instant is in a blackout window."""
        return self.windows is not None and self.windows.covers(instant)

    def next_allowed(self, instant: datetime) -> datetime:
        """Return the instant itself if no window covers it, else the first one after it that none covers.

        Raises:
            InvalidSchedule: there is no such instant.
        """
        if self.windows is None:
            return instant
        free = self.windows.defer(instant)
        if free is None:
            raise InvalidSchedule(self.windows.text, "blackout", "the windows never leave a free moment from here on")
        return free

    def blacked_out_since(self, instant: datetime) -> datetime:
        """Return since when windows have covered an instant without a pause.

        Raises:
            InvalidSchedule: there was no pause before.
        """
        opening = None if self.windows is None else self.windows.since(instant)
        if opening is None:
            raise InvalidSchedule(str(self.windows), "blackout", "the windows never left a free moment before")
        return opening

    def due_at(self, occurrence: datetime) -> datetime:
        """Return when an occurrence is due. Under `skip` a window may cover that instant; the occurrence is skipped."""
        jittered = self.with_jitter(occurrence)
        return self.next_allowed(jittered) if self.defers else jittered

    def due_ats(self, occurrences: Sequence[datetime], free_for: timedelta) -> tuple[datetime, ...]:
        """Return when occurrences that follow one another are due, up to the first one that a window may move or drop.

        That is, within this time after it is due a window covers some instant.
        """
        if not occurrences:
            return ()
        found: list[datetime] = []
        stretch = None if self.windows is None else next(self.windows.stretches(occurrences[0]), None)
        opens_at = None if stretch is None else stretch[0]
        for occurrence, following in zip_longest(occurrences, occurrences[1:]):
            due_at = self.with_jitter(occurrence, following)
            if opens_at is not None and due_at + free_for >= opens_at:
                return (*found, self.due_at(occurrence))
            found.append(due_at)
        return tuple(found)

    def together(self, occurrence: datetime, allowed_at: datetime) -> Skipped:
        """Return the occurrences that a window moves to this instant, or drops until then, of which this is the first.

        One exactly at the end of the window is due with those that it moves, and is not dropped.
        """
        last = self.last_due_before(occurrence, allowed_at + MICROSECOND if self.defers else allowed_at)
        return Skipped(occurrence, last, 1 + self.count(occurrence, last), "blackout")

    def first_due_from(self, oldest: datetime, instant: datetime) -> datetime | None:
        """Return the first occurrence from `oldest` on that is due at an instant or later."""
        return oldest if self.due_at(oldest) >= instant else self.following(self.last_due_before(oldest, instant))

    def last_due_before(self, oldest: datetime, boundary: datetime) -> datetime:
        """Return the last occurrence from `oldest` on that is due before the boundary; `oldest` itself if none is."""
        newest = self.last_until(boundary - MICROSECOND)
        if newest is None or newest <= oldest:
            return oldest
        if self.due_at(newest) < boundary:
            return newest
        return self.bisect(oldest, newest, lambda occurrence: self.due_at(occurrence) < boundary)[0]

    def bisect(self, low: datetime, high: datetime, is_low: Callable[[datetime], bool]) -> tuple[datetime, datetime]:
        """Return the two neighbouring occurrences of which the condition is true for the first and false for the other.

        It is true for `low`, false for `high`, and changes once between them. Bisection finds the place without a walk
        through millions of occurrences.
        """
        while (middle := self.last_until(low + (high - low) / 2)) is not None:
            if middle <= low:
                step = self.following(low)
                if step is None or step >= high:
                    break
                middle = step
            if is_low(middle):
                low = middle
            else:
                high = middle
        return low, high

    def pickup_after(self, occurrence: datetime | None, rules: Rules) -> timedelta:
        """Return how long a sent message may wait for a worker: twice the time to the next occurrence, in bounds."""
        if rules.pickup_deadline is not None:
            return rules.pickup_deadline
        following = None if occurrence is None else self.next_ignoring_bounds(occurrence)
        if occurrence is None or following is None:
            return LONGEST_PICKUP
        wait = 2 * (following - occurrence)
        if wait <= SHORTEST_PICKUP:
            return SHORTEST_PICKUP
        return wait if wait < LONGEST_PICKUP else LONGEST_PICKUP


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


def windows_of(
    blackout: Sequence[str] | None, windows: Mapping[str, tuple[Sequence[str], str | None]], zone: str
) -> Windows | None:
    """Compile a row's windows and the named ones that they refer to; None for a row without windows.

    Raises:
        InvalidSchedule: a text is wrong, or refers to a window that does not exist.
    """
    if not blackout:
        return None
    named = {name: parse_windows(list(texts), own or zone) for name, (texts, own) in windows.items()}
    return parse_windows(list(blackout), zone, named=named)
