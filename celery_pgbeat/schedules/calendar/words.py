"""Calendar events in plain English."""

from __future__ import annotations

import re

from ..field_words import Fields, fields_in_words
from ..words import WEEKDAYS

SHORT = tuple(name[:3] for name in WEEKDAYS)
ZONE = re.compile(r"[A-Za-z][\w+/-]*", re.ASCII)


def describe_calendar(text: str) -> str:
    """Return a canonical calendar event in words: take it apart and write its fields as cron does."""
    bare = text.removeprefix("calendar:")
    words = [word for word in bare.split() if not ZONE.fullmatch(word) or word[:3] in SHORT]
    weekdays = words.pop(0) if words[0][:3] in SHORT else "*"
    for number, name in enumerate(SHORT):
        weekdays = weekdays.replace(name, str(number))
    date, time = words
    separator = "~" if "~" in date else "-"
    months, day = date.replace("~", "-").rsplit("-", 1)
    year, month = months.rsplit("-", 1)
    if separator == "~":
        day = ",".join(f"~{part}" for part in day.split(","))
    parts = (*reversed(time.split(":")), day, month, weekdays, year)
    second, minute, hour, day, month, weekday, year = (_unpadded(part.replace("..", "-")) for part in parts)
    return fields_in_words(Fields(second, minute, hour, day, month, weekday, year, both=True))


def _unpadded(text: str) -> str:
    """Return the numbers without leading zeros, but those of a fraction."""
    return re.sub(r"(?<![\d.])0+(?=\d)", "", text)
