"""The beat's own clock, and the database's clock as the beat knows it.

The database's clock decides what is due. The beat's own clock cannot be set and goes on while the machine sleeps; it
limits how long the beat may rely on a lease or on what it has read.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

STEP = timedelta(seconds=2)  # if one clock goes on by this much more than the other between two looks, one was set
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Return seconds since boot; the time asleep or stopped is included."""
    return time.clock_gettime(_BOOT)


class DatabaseClock:
    """The database's time, and how long this beat has been in contact with the database without a break.

    After an outage of the database, or a step of its clock, every worker looks dead. So the beat judges jobs, and finds
    nodes dead, only after it has been in contact for `dead_after`.
    """

    def __init__(self, dead_after: timedelta) -> None:
        self._dead_after = dead_after
        self._longest_silence = dead_after / 3
        self._since: float | None = None
        self._last: tuple[float, datetime] | None = None

    def saw(self, now: datetime) -> bool:
        """Note that the database answered with this time; return whether its clock was set back."""
        mine = boottime()
        set_back = False
        if self._last is not None:
            elapsed = timedelta(seconds=mine - self._last[0])
            set_back = elapsed - (now - self._last[1]) > STEP
            if elapsed > self._longest_silence or abs((now - self._last[1]) - elapsed) > STEP:
                self._since = None
        if self._since is None:
            self._since = mine
        self._last = (mine, now)
        return set_back

    def lost(self) -> None:
        """Note that the database did not answer. `database_time` goes on by the beat's own clock."""
        self._since = None

    @property
    def may_judge(self) -> bool:
        """Whether this beat has been in contact for long enough to judge silent jobs, and to find silent nodes dead."""
        since = self._since  # read once: another thread may note an outage meanwhile
        return since is not None and boottime() - since >= self._dead_after.total_seconds()

    @property
    def database_time(self) -> datetime:
        """The database's time, estimated from the last answer; the node's own clock before the first answer."""
        last = self._last
        if last is None:
            return datetime.now(timezone.utc)
        mine, now = last
        return now + timedelta(seconds=boottime() - mine)
