"""Computes when rows without a schedule are expected to run: their occurrences follow those of their upstream tasks.

The next occurrence of such a row is the latest among the next ones of its upstream tasks after its last one, the one
after that the latest among their next ones after this one, and so on. An upstream task may have no schedule either. Of
occurrences that have a job already the times are known, see `due_after` in `internal/after.sql`; of the others a
schedule says them. Nothing here is a promise: an upstream task may fail or take long, and each may be edited or paused.

Pure: no database. No function calls itself, because a chain of tasks may be longer than Python's stack.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from celery_pgbeat.api.graph import in_order

MOST_STEPS = 100_000  # occurrences that are computed one after the other before a search ends: some seconds


class Expected(NamedTuple):
    """An occurrence that is expected, and when it is due."""

    occurrence: datetime
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Follower:
    """A row without a schedule that runs after others.

    Attributes:
        name: of the row.
        after: its upstream tasks.
        since: only what is later than this counts.
        firsts: of each upstream task the first occurrence since then that has a job or had one; None for none.
        lasts: of each the last one.
        is_on: whether it runs at all.
        planned: its next run, if it is due or SQL has set it.
        end_at: it has no occurrence later than this.
        most: it has no more occurrences than this, without the planned one.
    """

    name: str
    after: Sequence[str]
    since: datetime
    firsts: Sequence[datetime | None]
    lasts: Sequence[datetime | None]
    is_on: bool = True
    planned: Expected | None = None
    end_at: datetime | None = None
    most: int | None = None

    @property
    def is_simple(self) -> bool:
        """Whether all occurrences of its only upstream task are its own."""
        return len(self.after) == 1 and self.end_at is None and self.most is None


# Returns the first occurrence of a row with a schedule that is later than an instant and due later than another one.
Scheduled = Callable[[str, datetime, datetime | None], Expected | None]


@dataclass(slots=True)
class _Line:
    """The occurrences of a row with several upstream tasks or with bounds, as far as they are known."""

    reached: datetime
    found: list[Expected] = field(default_factory=list)
    has_ended: bool = False

    def following(self, instant: datetime, due_after: datetime | None) -> Expected | None:
        """Return the first occurrence that is later than an instant and due later than another one, if it is known."""
        place = bisect_right(self.found, instant, key=lambda one: one.occurrence)
        if due_after is not None:  # of two occurrences the later one is never due earlier
            place = max(place, bisect_right(self.found, due_after, key=lambda one: one.due_at))
        return self.found[place] if place < len(self.found) else None


class _Unknown(NamedTuple):
    """What has to be known first: the occurrence after an instant of a row that has a line."""

    name: str
    instant: datetime
    due_after: datetime | None


class Outlook:
    """The expected occurrences of rows without a schedule.

    Args:
        followers: these rows, and all such rows on which they depend.
        scheduled: of rows with a schedule.
        now: when an occurrence is due of which each upstream task has a job already.
    """

    def __init__(self, followers: Iterable[Follower], scheduled: Scheduled, now: datetime) -> None:
        known = {follower.name: follower for follower in followers}
        self.names: Sequence[str] = in_order({name: follower.after for name, follower in known.items()})
        self._followers = {name: known[name] for name in self.names}  # a row that comes after itself never runs
        self._scheduled = scheduled
        self._now = now
        self._lines = {name: _Line(_start(one)) for name, one in self._followers.items() if not one.is_simple}
        self._firsts: dict[str, Expected | None] = {}
        self._steps = 0

    def firsts(self) -> Mapping[str, Expected]:
        """Return the next occurrence of each row that has one."""
        for name in self.names:  # in this order what comes before a row is known already
            self._firsts[name] = self.following(name, _start(self._followers[name]))
        return {name: first for name, first in self._firsts.items() if first is not None}

    def coming(self, name: str, due_after: datetime | None = None) -> Iterator[Expected]:
        """Iterate over the coming occurrences of a row, those that are due after an instant."""
        following = self.following(name, _start(self._followers[name]), due_after) if name in self._followers else None
        while following is not None:
            yield following
            following = self.following(name, following.occurrence, due_after)

    def following(self, name: str, instant: datetime, due_after: datetime | None = None) -> Expected | None:
        """Return the first occurrence of a row that is later than an instant, and due later than another one."""
        while isinstance(found := self._look(name, instant, due_after), _Unknown):
            self._extend(found)
        return found

    def _look(self, name: str, instant: datetime, due_after: datetime | None) -> Expected | _Unknown | None:
        """Return the first occurrence of a row after an instant, or what has to be known first.

        A row with one upstream task and no bounds has its occurrences: the search goes on there.
        """
        while (follower := self._followers.get(name)) is not None:
            if not follower.is_on:
                return None
            for known in (follower.planned, self._firsts.get(name)):
                if known is not None and known.occurrence > instant and _is_after(known, due_after):
                    return known
            instant = max(instant, _start(follower))
            if not follower.is_simple:
                line = self._lines[name]
                found = line.following(instant, due_after)
                return found if found is not None or line.has_ended else _Unknown(name, instant, due_after)
            (name,), (last,) = follower.after, follower.lasts
            if last is not None and last > instant and _is_after(known := Expected(last, self._now), due_after):
                return known
        return self._scheduled(name, instant, due_after)

    def _extend(self, wanted: _Unknown) -> None:
        """Add occurrences to the line of a row until it has the wanted one or ends, and to those that it needs."""
        waiting = [wanted]
        while waiting:
            name, instant, due_after = waiting[-1]
            line = self._lines[name]
            if line.has_ended or line.following(instant, due_after) is not None:
                waiting.pop()
                continue
            waiting.extend(self._add(self._followers[name], line))

    def _add(self, follower: Follower, line: _Line) -> Sequence[_Unknown]:
        """Add the next occurrence of a row to its line; return what has to be known first, if something has."""
        known = [last for last in follower.lasts if last is not None and last > line.reached]
        firsts = [first for first in follower.firsts if first is not None and first > line.reached]
        coming = [
            self._look(name, line.reached, None)
            for name, last in zip(follower.after, follower.lasts, strict=True)
            if last is None or last <= line.reached
        ]
        unknown = [one for one in coming if isinstance(one, _Unknown)]
        if unknown:
            return unknown
        self._steps += 1
        found = [one for one in coming if isinstance(one, Expected)]
        is_over = follower.most is not None and len(line.found) >= follower.most
        if is_over or len(found) < len(coming) or self._steps > MOST_STEPS:
            line.has_ended = True
            return ()
        # As in due_after: what all have reached, and of an upstream task that was not due by then its first.
        occurrence = max([*firsts, *(one.occurrence for one in found), *([] if found else [min(known)])])
        if follower.end_at is not None and occurrence > follower.end_at:
            line.has_ended = True
            return ()
        line.found.append(Expected(occurrence, max([self._now, occurrence, *(one.due_at for one in found)])))
        line.reached = occurrence
        return ()


def _start(follower: Follower) -> datetime:
    """Return the instant after which the expected occurrences of a row begin."""
    return follower.since if follower.planned is None else max(follower.since, follower.planned.occurrence)


def _is_after(expected: Expected, due_after: datetime | None) -> bool:
    return due_after is None or expected.due_at > due_after
