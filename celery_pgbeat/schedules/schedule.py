"""A Schedule: a canonical text and its instants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from .kind import Kind
from .wallclock.instants import EARLIEST, LATEST, MICROSECOND, UTC, as_utc, within_reach
from .wallclock.protocols import Times


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something happens: a set of instants.

    Every method takes aware datetimes of any zone and returns aware UTC datetimes. Nothing further away than 100 years
    is found.

    Attributes:
        text: canonical text. Parsed with the same timezone, dst and anchor it gives an equal schedule.
        kind: which language the text is written in: cron, crontab, interval, iso, once, calendar, rrule or solar.
        timezone: IANA name of the zone in force.
        dst: `default`, `skip`, `once` or `all`.
        anchor: where the grid of an interval without a start of its own begins; None for other kinds.
        times: the instants, as the kind's reader computes them.
        kind_info: the registry's entry for the kind.

    Example:
        >>> from datetime import datetime, timezone
        >>> from celery_pgbeat.schedules import parse
        >>> nightly = parse("30 2 * * *", "Europe/Berlin")
        >>> nightly.next(datetime(2027, 3, 27, 12, tzinfo=timezone.utc)).isoformat()
        '2027-03-28T01:00:00+00:00'
    """

    text: str
    kind: str
    timezone: str
    dst: str
    anchor: datetime | None
    times: Times = field(compare=False, repr=False)
    kind_info: Kind = field(compare=False, repr=False)

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly later than `after`, or None.

        Raises:
            ValueError: `after` is naive.
        """
        if after.tzinfo is not UTC:
            after = as_utc(after)
        if after.year >= LATEST.year:
            return None
        return self.times.following(after if after.year >= EARLIEST.year else EARLIEST)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last occurrence strictly earlier than `before`, or None.

        Raises:
            ValueError: `before` is naive.
        """
        before = within_reach(as_utc(before))
        return self.times.preceding(before) if before > EARLIEST else None

    def occurrences(
        self, after: datetime, until: datetime | None = None, limit: int | None = None
    ) -> Iterator[datetime]:
        """Iterate over the occurrences strictly later than `after`, up to and including `until`.

        Args:
            after: where to begin.
            until: where to end; None for no end.
            limit: the largest number of occurrences; None for no limit.

        Raises:
            ValueError: `after` or `until` is naive.
        """
        last = None if until is None else as_utc(until)
        found = self.next(after)
        left = limit
        while found is not None and (last is None or found <= last) and left != 0:
            yield found
            left = None if left is None else left - 1
            found = self.next(found)

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many occurrences are in (after, until], by arithmetic.

        Raises:
            ValueError: an argument is naive.
        """
        first, last = within_reach(as_utc(after)), within_reach(as_utc(until))
        return self.times.count(first, last) if first < last else 0

    def matches(self, instant: datetime) -> bool:
        """Return whether the instant is an occurrence, to the microsecond.

        Raises:
            ValueError: `instant` is naive.
        """
        wanted = as_utc(instant)
        return self.next(max(wanted, EARLIEST + MICROSECOND) - MICROSECOND) == wanted

    def describe(self) -> str:
        """Return the schedule in plain English words."""
        words = self.kind_info.describe(self.text)
        return words if self.timezone == "UTC" else f"{words} ({self.timezone})"

    def with_anchor(self, anchor: datetime) -> Schedule | None:
        """Return the schedule with another anchor, without reading its text again; None if that is not possible."""
        moved = self.kind_info.with_anchor and self.kind_info.with_anchor(self.times, anchor)
        if moved is None:
            return None
        return Schedule(self.text, self.kind, self.timezone, self.dst, anchor, moved, self.kind_info)
