"""Fields of times and days in plain English: for cron, and for calendar events, whose fields are written as cron's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .words import MONTHS, WEEKDAYS, joined

PLACES = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth"}
NUMBERS = re.compile(r"\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)*", re.ASCII)
PLACES_FROM_END = {"1": "1st", "2": "2nd", "3": "3rd", "21": "21st", "22": "22nd", "23": "23rd"}
LISTED_TIMES = 6  # more times than that are described field by field


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields in cron's notation; `both` is whether a day must satisfy both day fields."""

    second: str
    minute: str
    hour: str
    day: str
    month: str
    weekday: str
    year: str
    both: bool


def fields_in_words(fields: Fields) -> str:
    """Return the fields in words: `at 09:00 on Monday to Friday`."""
    phrases = [_times(fields), _days(fields)]
    if fields.month != "*":
        phrases.append("in " + _list(fields.month, "month"))
    if fields.year != "*":
        phrases.append("in " + _list(fields.year, "year"))
    return " ".join(filter(None, phrases))


def _times(fields: Fields) -> str:
    numbers = [fields.hour, fields.minute, fields.second]
    if all(NUMBERS.fullmatch(text) for text in numbers):
        hours, minutes, seconds = (text.split(",") for text in numbers)
        if len(hours) * len(minutes) * len(seconds) <= LISTED_TIMES:
            return "at " + joined([_clock(h, m, s) for h in hours for m in minutes for s in seconds])
    phrases = [_list(fields.second, "second")] if fields.second != "0" else []
    if fields.minute != "*" or fields.second == "0":
        phrases.append(_list(fields.minute, "minute"))
    whole = phrases[-1].startswith("every") and " from " not in phrases[-1]
    if fields.hour != "*" or not whole:
        phrases.append(_list(fields.hour, "hour"))
    return ("" if phrases[0].startswith("every") else "at ") + " of ".join(phrases)


def _clock(hour: str, minute: str, second: str) -> str:
    text = f"{int(hour):02}:{int(minute):02}"
    whole, _, fraction = second.partition(".")
    return text if second == "0" else f"{text}:{int(whole):02}" + (f".{fraction}" if fraction else "")


def _days(fields: Fields) -> str:
    phrases = []
    if fields.day != "*":
        phrases.append("on " + joined([_day(part) for part in fields.day.split(",")]) + " of the month")
    if fields.weekday != "*":
        phrases.append("on " + joined([_weekday(part) for part in fields.weekday.split(",")]))
    if len(phrases) > 1:
        return (" if it is " if fields.both else " or ").join(phrases).replace("if it is on", "if that is")
    return "".join(phrases)


def _day(part: str) -> str:
    if part in ("L", "L-0"):
        return "the last day"
    if part.startswith("~"):
        return _from_the_end(part[1:])
    if part == "LW":
        return "the last workday"
    if part.startswith("L-"):
        return f"the day {part[2:]} before the last"
    if part.endswith("W"):
        return f"the workday nearest to day {part[:-1]}"
    return _list(part, "day")


def _from_the_end(part: str) -> str:
    """Return systemd's `~7/1`: days counted from the month's end."""
    bounds, _, step = part.partition("/")
    names = [PLACES_FROM_END.get(number, f"{number}th") + " last" for number in bounds.split("-")]
    names[0] = "last" if names[0] == "1st last" else names[0]
    words = "the " + " to ".join(names) + " day"
    every = "every day" if step == "1" else f"every {step} days"
    return f"{every} from {words}" if step else words


def _weekday(part: str) -> str:
    if part.endswith("L"):
        return f"the last {WEEKDAYS[int(part[:-1]) % 7]} of the month"
    if "#" in part:
        weekday, place = part.split("#")
        return f"the {PLACES[place]} {WEEKDAYS[int(weekday) % 7]} of the month"
    return _list(part, "weekday")


NAMES: dict[str, Callable[[str], str]] = {
    "month": lambda number: MONTHS[int(number) - 1],
    "weekday": lambda number: WEEKDAYS[int(number) % 7],
    "year": str,
}
FIRST = {"day": "1", "month": "1"}  # of the other units it is 0


def _list(text: str, unit: str) -> str:
    """Return numbers, ranges and steps in words: `minute 15 and 45`, `every 5 minutes`, `Monday to Friday`."""
    words = joined([_range(part, unit) for part in text.split(",")])
    return words if unit in NAMES or words.startswith("every") else f"{unit} {words}"


def _range(part: str, unit: str) -> str:
    name = NAMES.get(unit, str)
    bounds, _, step = part.partition("/")
    first, _, last = bounds.partition("-")
    words = f"{name(first)} to {name(last)}" if last else "" if bounds == "*" else name(first)
    if bounds != "*" and not step:
        return words
    every = f"every {step} {unit}s" if step not in ("", "1") else f"every {unit}"
    if bounds == "*" or bounds == FIRST.get(unit, "0"):
        return every
    return f"{every} from {words}" + ("" if last else " on")
