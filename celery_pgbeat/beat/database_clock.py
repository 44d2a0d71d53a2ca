"""This beat's own clock, and what it may conclude from the database's.

The database's clock decides what is due. The beat's own clock, which nobody can set and which goes on while the
machine sleeps, only limits what the beat still believes.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

STEP = timedelta(seconds=2)  # the two clocks may part by this between two looks before it counts as a step
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Return seconds since boot; the time asleep or stopped is included."""
    return time.clock_gettime(_BOOT)


class DatabaseClock:
    """How long this beat has seen the database without a break, and what time it is there.

    Silence of a worker is only counted while it was listened to: after an outage of the database, or a step of
    its clock, every worker looks dead, so judging starts anew.
    """

    def __init__(self, dead_after: timedelta) -> None:
        self._dead_after = dead_after
        self._longest_gap = dead_after / 3
        self._since: float | None = None
        self._last: tuple[float, datetime] | None = None

    def saw(self, now: datetime) -> bool:
        """Note that the database answered and that this was its time; tell whether its clock was set back."""
        mine = boottime()
        set_back = False
        if self._last is not None:
            gap = timedelta(seconds=mine - self._last[0])
            set_back = gap - (now - self._last[1]) > STEP
            if gap > self._longest_gap or abs((now - self._last[1]) - gap) > STEP:
                self._since = None
        if self._since is None:
            self._since = mine
        self._last = (mine, now)
        return set_back

    def lost(self) -> None:
        """Note that the database did not answer; its time goes on, as far as this beat can tell."""
        self._since = None

    @property
    def may_judge(self) -> bool:
        """Whether silence can be held against a node now."""
        since = self._since  # read once: another thread may be asking while this one notes an outage
        return since is not None and boottime() - since >= self._dead_after.total_seconds()

    @property
    def database_time(self) -> datetime:
        """The database's time as this beat can tell it; the node's own clock before the first answer."""
        last = self._last
        if last is None:
            return datetime.now(timezone.utc)
        mine, now = last
        return now + timedelta(seconds=boottime() - mine)
