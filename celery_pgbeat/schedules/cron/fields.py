"""One field of a cron expression: `*/5`, `mon-fri`, `22-2`, `1#2,5`, `L-3` become a set and rules for days.

A field does not know the whole text: it raises a `PartError`, which `reader.py` turns into an `InvalidSchedule` that
points into the whole text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from ..source_text import PartError
from ..wallclock.bitset import number_range
from ..wallclock.days import (
    FIRST_YEAR,
    LAST_YEAR,
    SpecialDays,
    from_the_end,
    last_workday,
    nearest_workday,
    nth_weekday,
)

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

SIMPLE = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?", re.ASCII)
DAY_FROM_END = re.compile(r"L(?:-(\d+))?", re.ASCII | re.IGNORECASE)
WORKDAY = re.compile(r"(?:(\d+)|(L))W", re.ASCII | re.IGNORECASE)
NTH = re.compile(r"(\w+)#(?:(\d+)|(L))", re.ASCII | re.IGNORECASE)
LAST_WEEKDAY = re.compile(r"(?:(\d|[a-z]{3})L|L(\d))", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """The place of a field: its name in messages, its range, and the words that stand for numbers.

    `high` is where `*` and `n/s` end; `limit` is the largest number one may write (weekday 7 is Sunday again).
    """

    name: str
    low: int
    high: int
    limit: int
    words: tuple[str, ...] = ()

    def number(self, text: str, at: int) -> int:
        """Return the number that a digit string or a name stands for."""
        if text.isdigit():
            number = int(text)
            if not self.low <= number <= self.limit:
                raise PartError(self.name, f"{self.name} {number} is not in {self.low}-{self.limit}", at)
            return number
        if text.lower() in self.words:
            return self.words.index(text.lower()) + self.low
        raise self.not_understood(text, at)

    def not_understood(self, text: str, at: int) -> PartError:
        """Return the error for what is neither a number nor anything else that the field takes."""
        hint = ", a name" if self.words else ""
        return PartError(self.name, f"{self.name} {text!r} is not a number{hint}, a range, a list or a step", at)


SECOND = Field("second", 0, 59, 59)
MINUTE = Field("minute", 0, 59, 59)
HOUR = Field("hour", 0, 23, 23)
DAY = Field("day", 1, 31, 31)
MONTH = Field("month", 1, 12, 12, MONTHS)
WEEKDAY = Field("weekday", 0, 6, 7, WEEKDAYS)
YEAR = Field("year", FIRST_YEAR, LAST_YEAR, LAST_YEAR)


class Values(NamedTuple):
    """What a field means.

    Attributes:
        numbers: the numbers, as a set; weekday 0 is Sunday.
        special: rules for days that no set can hold (`L`, `15W`, `1#2`).
        starred: whether the text starts with `*` (or is `?`), which has a meaning of its own in cron.
        text: the same in canonical form.
    """

    numbers: int
    special: tuple[SpecialDays, ...]
    starred: bool
    text: str


Element = tuple[int, tuple[SpecialDays, ...], str]


@lru_cache(maxsize=4096)
def read_field(field: Field, text: str) -> Values:
    """Read one field.

    Raises:
        PartError: it is not understood, or a number is out of range.
    """
    if text == "*" or (text == "?" and field in (DAY, WEEKDAY)):
        return Values(number_range(field.low, field.high), (), True, "*")
    if text.isdigit():
        number = field.number(text, 0)
        return Values(_sunday(field, 1 << number), (), False, str(number))
    bits, at = 0, 0
    special: list[SpecialDays] = []
    parts = []
    elements = text.split(",")
    for element in elements:
        if not element:
            raise PartError(field.name, f"{field.name} {text!r} has an empty element in its list", at)
        numbers, rules, canonical = _element(field, element, at, alone=len(elements) == 1)
        bits |= numbers
        special.extend(rules)
        parts.append(canonical)
        at += len(element) + 1
    return Values(bits, tuple(special), text.startswith("*"), ",".join(parts))


def _element(field: Field, text: str, at: int, *, alone: bool) -> Element:
    special = None
    if field is DAY:
        special = _special_day(text, at, alone=alone)
    elif field is WEEKDAY:
        special = _special_weekday(text, at)
    return special or _plain(field, text, at)


def _plain(field: Field, text: str, at: int) -> Element:
    """Read `*`, `n`, `a-b`, each with or without a step."""
    match = SIMPLE.fullmatch(text)
    if match is None:
        raise field.not_understood(text, at)
    star, first, last, step_text = match.groups()
    step = int(step_text) if step_text else 1
    if step == 0:
        raise PartError(field.name, f"a step of 0 in {field.name}", at)
    suffix = f"/{step}" if step_text else ""
    if star:
        return number_range(field.low, field.high, step), (), "*" + suffix
    low = field.number(first, at)
    if last is None:
        numbers = number_range(low, max(low, field.high), step) if step_text else 1 << low
        return _sunday(field, numbers), (), f"{low}{suffix}"
    high = field.number(last, at + match.start(3))
    return _sunday(field, _range(field, low, high, step, at)), (), f"{low}-{high}{suffix}"


def _range(field: Field, low: int, high: int, step: int, at: int) -> int:
    """Return the set `low-high/step`, which may run over the field's end: `22-2`, `fri-mon`."""
    if low <= high:
        return number_range(low, high, step)
    if field is YEAR:
        raise PartError("year", f"year {low}-{high} runs backwards", at)
    size = field.high - field.low + 1
    low %= size if field is WEEKDAY else size + field.low
    if low <= high:
        return number_range(low, high, step)
    return sum(1 << (number - field.low) % size + field.low for number in range(low, high + size + 1, step))


def _sunday(field: Field, numbers: int) -> int:
    """Move weekday 7 to 0."""
    return (numbers | numbers >> 7) & 127 if field is WEEKDAY else numbers


def _special_day(text: str, at: int, *, alone: bool) -> Element | None:
    """Read `L`, `L-3`, `15W`, `LW`."""
    if match := DAY_FROM_END.fullmatch(text):
        distance = int(match.group(1) or 0)
        if distance > 30:
            raise PartError("day", f"day L-{distance} is not in L-0 to L-30", at)
        return 0, (partial(from_the_end, distance),), f"L-{distance}" if distance else "L"
    if match := WORKDAY.fullmatch(text):
        if not alone:
            raise PartError("day", f"day {text!r}: W cannot stand in a list", at)
        if match.group(2):
            return 0, (last_workday,), "LW"
        day = DAY.number(match.group(1), at)
        return 0, (partial(nearest_workday, day),), f"{day}W"
    return None


def _special_weekday(text: str, at: int) -> Element | None:
    """Read `mon#2`, `5#L`, `5L`, `L5`."""
    if match := LAST_WEEKDAY.fullmatch(text):
        weekday, nth = match.group(1) or match.group(2), None
    elif match := NTH.fullmatch(text):
        weekday, nth = match.group(1), match.group(2)
    else:
        return None
    number = WEEKDAY.number(weekday, at) % 7
    place = -1 if nth is None else int(nth)
    if place not in (-1, 1, 2, 3, 4, 5):
        raise PartError("weekday", f"weekday #{place} is not in #1-#5", at)
    mark = partial(nth_weekday, (number - 1) % 7, place)
    return 0, (mark,), f"{number}L" if place == -1 else f"{number}#{place}"
