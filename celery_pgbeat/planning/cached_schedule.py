"""A schedule that is compiled once for all rows that share it, and remembers its last answers.

Many rows fall due together and ask the same few schedules for the same next occurrence, one after the other.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import lru_cache

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import Schedule, cache_key_parts, gap_below, parse

from .types import PlanningRow, Rules

KEPT = 16_384  # schedules, with their answers 0.8 kB (intervals) to 2 kB (RRULEs) each: some 20 MB when full
UTC = timezone.utc


class CachedSchedule:
    """A schedule that is not too fast, and its last two answers: with jitter a row needs two occurrences in turn."""

    __slots__ = ("_answers", "_following", "schedule")

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._answers: tuple[tuple[datetime | None, datetime | None], ...] = ((None, None),)
        # Asked after this instant, these follow, and then this one, None if it was not asked for.
        self._following: tuple[datetime | None, tuple[datetime, ...], datetime | None] = (None, (), None)

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence strictly later than an instant, or None."""
        for asked, answer in self._answers:
            if asked == after:
                return answer
        answer = self.schedule.next(after)
        if after.tzinfo is UTC:  # in a zone with DST, two instants an hour apart may compare as equal
            self._answers = ((after, answer), self._answers[0])
        return answer

    def following(self, after: datetime, until: datetime, most: int) -> tuple[datetime, ...]:
        """Return up to `most` occurrences later than `after` and not later than `until`. All instants are in UTC.

        The last one beyond `until` is calculated, and none after it: of a rare schedule each may take long.
        """
        asked, known, beyond = self._following
        if asked != after or (len(known) < most and (beyond is None or beyond <= until)):
            found: list[datetime] = []
            last, beyond = after, None
            while len(found) < most and beyond is None and (following := self.schedule.next(last)) is not None:
                if following > until:
                    beyond = following
                else:
                    found.append(following)
                    last = following
            known = tuple(found)
            self._following = (after, known, beyond)
        if len(known) <= most and (not known or known[-1] <= until):
            return known  # the same object for many rows, whose text is then made once
        return tuple(one for one in known[:most] if one <= until)


def cached_schedule_of(row: PlanningRow, rules: Rules) -> CachedSchedule | None:
    """Return the schedule of a row, None for a row without one.

    Raises:
        InvalidSchedule: the text is wrong, or the schedule is faster than `pgbeat_min_interval`.
    """
    text = row.schedule
    if text is None:
        return None
    name, anchor = cache_key_parts(text, row.name, row.anchor)
    return _remembered(text, row.timezone or rules.timezone, name, row.dst, anchor, rules.min_interval)


@lru_cache(maxsize=KEPT)
def _remembered(
    text: str, zone: str, name: str, dst: str, anchor: datetime | None, min_interval: timedelta
) -> CachedSchedule:
    """Compile and check. A refusal is not remembered: the next row is checked again."""
    schedule = parse(text, zone, name=name, dst=dst, anchor=anchor)
    gap = gap_below(schedule, min_interval)
    if gap is not None:
        raise InvalidSchedule(
            text,
            "interval",
            f"a run every {gap.total_seconds():g} s is faster than pgbeat_min_interval, "
            f"{min_interval.total_seconds():g} s: make it slower, or lower that setting",
        )
    return CachedSchedule(schedule)
