"""A recurrence rule as RedBeat stores it (the arguments of dateutil's `rrule`) as a text of RFC 5545."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
HOUR = 60  # minutes
PARTS = {
    "bysetpos": "BYSETPOS",
    "bymonth": "BYMONTH",
    "bymonthday": "BYMONTHDAY",
    "byyearday": "BYYEARDAY",
    "byweekno": "BYWEEKNO",
    "byhour": "BYHOUR",
    "byminute": "BYMINUTE",
    "bysecond": "BYSECOND",
}


def recurrence_text(stored: Mapping[str, Any]) -> str:
    """Return the text of a rule; it counts by the fixed offset of its start, as RedBeat does.

    Raises:
        ValueError: a text cannot say it.

    Example:
        >>> recurrence_text({"freq": 3, "interval": 2, "dtstart": 0, "dtstart_tz": 60, "byhour": [9, 17]})
        'DTSTART;TZID=Etc/GMT-1:19700101T010000 RRULE:FREQ=DAILY;INTERVAL=2;BYHOUR=9,17'
    """
    if stored.get("byeaster") is not None:
        raise ValueError("its rule has byeaster, which no kind of schedule here has: list the days as RDATE")
    return f"{_start(stored)} RRULE:{';'.join(_parts(stored))}"


def _start(stored: Mapping[str, Any]) -> str:
    minutes = stored.get("dtstart_tz") or 0
    at = datetime.fromtimestamp(stored["dtstart"], timezone(timedelta(minutes=minutes)))
    if not minutes:
        return f"DTSTART:{at:%Y%m%dT%H%M%S}Z"
    if minutes % HOUR:
        raise ValueError(f"its rule starts at an offset of {minutes:g} minutes, and no time zone has that for good")
    hours = -int(minutes // HOUR)  # POSIX counts these zones westward
    return f"DTSTART;TZID=Etc/GMT{hours:+d}:{at:%Y%m%dT%H%M%S}"


def _parts(stored: Mapping[str, Any]) -> Iterator[str]:
    yield f"FREQ={FREQUENCIES[stored['freq']]}"
    if stored.get("interval", 1) != 1:
        yield f"INTERVAL={stored['interval']}"
    if stored.get("count") is not None:
        yield f"COUNT={stored['count']}"
    if stored.get("until") is not None:
        yield f"UNTIL={datetime.fromtimestamp(stored['until'], timezone.utc):%Y%m%dT%H%M%S}Z"
    for field, part in PARTS.items():
        if stored.get(field) is not None:
            yield f"{part}={','.join(map(str, _several(stored[field])))}"
    if stored.get("byweekday") is not None:
        yield f"BYDAY={','.join(map(_weekday, _several(stored['byweekday'])))}"
    if stored.get("wkst") is not None:
        yield f"WKST={_weekday(stored['wkst'])}"


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _weekday(value: Any) -> str:
    """Return a weekday; RedBeat drops which one of the month it was (`MO(+1)`), and so runs on each."""
    return WEEKDAYS[value["wkday"] if isinstance(value, Mapping) else value]
