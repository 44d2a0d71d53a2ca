"""Instants: aware UTC datetimes, and how far a search goes.

Every datetime in `schedules/` has the tzinfo `UTC`, but there are two kinds of them:

* an *instant*, a point of real time;
* a *reading*, what a wall clock in some zone shows; its `UTC` means nothing.

`instant + offset == reading`. Python compares two datetimes of one ZoneInfo by their wall clock (both passes of
repeated time are "equal"), so no datetime with a real zone takes part in arithmetic here.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

UTC = timezone.utc
MICROSECOND = timedelta(microseconds=1)
HORIZON = timedelta(days=36_525)  # 100 years: what does not occur until then never occurs

# Where a search may begin and end. A year is left at both sides so that adding an offset never overflows.
EARLIEST = datetime(2, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_LAST = LATEST - MICROSECOND
_LAST_WITH_HORIZON = LATEST - HORIZON


def as_utc(instant: datetime) -> datetime:
    """Return the same instant as an aware UTC datetime.

    Raises:
        ValueError: `instant` is naive.
    """
    if instant.tzinfo is UTC:
        return instant
    if instant.utcoffset() is None:
        raise ValueError(f"{instant!r} has no time zone: pass an aware datetime, such as datetime.now(timezone.utc)")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        return LATEST if instant.year > EPOCH.year else EARLIEST


def within_reach(instant: datetime) -> datetime:
    """Return the instant moved to where a search may begin: from EARLIEST to just before LATEST."""
    return instant if EARLIEST <= instant <= _LAST else max(EARLIEST, min(instant, _LAST))


def horizon_after(instant: datetime) -> datetime:
    """Return the last instant that a search forwards from `instant` may return."""
    return instant + HORIZON if instant < _LAST_WITH_HORIZON else _LAST


def horizon_before(instant: datetime) -> datetime:
    """Return the first instant that a search backwards from `instant` may return."""
    return instant - HORIZON if instant > EARLIEST + HORIZON else EARLIEST
