"""The shortest time between two occurrences of a schedule."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from .schedule import Schedule
from .wallclock.instants import EPOCH, HORIZON, LATEST

LOOKED_AT = 60  # occurrences; the shortest gap of an uneven schedule is among them


def shortest_gap(schedule: Schedule, limit: int = LOOKED_AT) -> timedelta | None:
    """Return the shortest time between two occurrences, None if there are not two.

    It computes the first occurrences of the schedule since 1970, so that the result is the same at any time.

    Example:
        >>> from celery_pgbeat.schedules import parse
        >>> shortest_gap(parse("0 9,10 * * *", "UTC"))
        datetime.timedelta(seconds=3600)
    """
    begin = EPOCH
    while schedule.next(begin) is None and begin < LATEST - HORIZON:
        begin += HORIZON
    instants = schedule.occurrences(begin, limit=limit)
    return min((later - earlier for earlier, later in pairwise(instants)), default=None)


def gap_below(schedule: Schedule, minimum: timedelta) -> timedelta | None:
    """Return the shortest gap of a schedule that is faster than a minimum, None for one that is not.

    Example:
        >>> from celery_pgbeat.schedules import parse
        >>> gap_below(parse("*/10 * * * * *", "UTC"), timedelta(minutes=1))
        datetime.timedelta(seconds=10)
    """
    if schedule.kind_info.shortest_gap >= minimum:
        return None
    gap = shortest_gap(schedule, schedule.kind_info.gap_sample)
    return gap if gap is not None and gap < minimum else None
