"""The components of systemd's calendar events: `9..18/3`, `10,20,50`, `~7/1`, `0/0.25`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial

from ..source_text import PartError
from ..wallclock.bitset import number_range
from ..wallclock.days import FIRST_YEAR, LAST_YEAR, SpecialDays, whole_month

SECOND = 1_000_000  # microseconds
MOST_FRACTIONS = 6_000  # of a minute: one every 0.01 s

NUMBER = re.compile(r"\d+", re.ASCII)
SECONDS = re.compile(r"(\d+)(?:\.(?!\.)(\d*))?", re.ASCII)  # one dot is a decimal point, two are a range


@dataclass(frozen=True, slots=True)
class Part:
    """`start`, `start..stop`, either with `/repeat`. Seconds are counted in microseconds."""

    start: int
    stop: int | None = None
    repeat: int = 0

    def values(self, end: int) -> range:
        """Return the numbers it stands for, in a field that ends at `end`."""
        if not self.repeat:
            return range(self.start, self.start + 1)
        return range(self.start, (end if self.stop is None else self.stop) + 1, self.repeat)


@dataclass(frozen=True, eq=False, slots=True)
class Unit:
    """The place of a component: its name in messages, its range, and how wide it is written."""

    name: str
    low: int
    high: int
    width: int = 2
    fine: bool = False  # whether it counts microseconds

    @property
    def one(self) -> int:
        """What a range counts by when it names no step."""
        return SECOND if self.fine else 1

    def show(self, number: int) -> str:
        """Return a number of this unit as it is written."""
        whole, fraction = divmod(number, self.one)
        return f"{whole:0{self.width}}" + (f".{fraction:06}".rstrip("0") if fraction else "")


YEAR = Unit("year", FIRST_YEAR, LAST_YEAR, width=4)
MONTH = Unit("month", 1, 12)
DAY = Unit("day", 1, 31)
HOUR = Unit("hour", 0, 23)
MINUTE = Unit("minute", 0, 59)
SECONDS_OF_MINUTE = Unit("second", 0, 60 * SECOND - 1, fine=True)

Chain = tuple[Part, ...] | None  # None is `*`


def read_chain(unit: Unit, text: str, at: int) -> Chain:
    """Read one component; numbers are not checked against the unit's range yet (a year may have two digits).

    Raises:
        PartError: it is not understood.
    """
    if text == "*":
        return None
    parts = []
    for piece in text.split(","):
        parts.append(_part(unit, piece, at))
        at += len(piece) + 1
    return tuple(parts)


def _part(unit: Unit, text: str, at: int) -> Part:
    start, end = _number(unit, text, 0, at)
    stop, repeat = None, 0
    if text.startswith("..", end):
        stop, end = _number(unit, text, end + 2, at)
        repeat = unit.one
    if text.startswith("/", end):
        repeat, end = _number(unit, text, end + 1, at)
        if repeat == 0:
            raise PartError(unit.name, f"a step of 0 in {unit.name}", at)
    elif unit.fine and stop is not None and start + repeat > stop:
        raise PartError(unit.name, f"second {text!r} is a range of less than a second", at)
    if end < len(text):
        raise PartError(unit.name, _not_understood(unit, text), at)
    return Part(start, stop, repeat)


def _number(unit: Unit, text: str, begin: int, at: int) -> tuple[int, int]:
    match = (SECONDS if unit.fine else NUMBER).match(text, begin)
    if match is None or (unit.fine and match.group(2) == "") or match.end() - begin > 9 + 7:
        raise PartError(unit.name, _not_understood(unit, text), at)
    if not unit.fine:
        return int(match.group()), match.end()
    whole, fraction = match.groups(default="")
    rounded_up = fraction[6:7] >= "5"
    return int(whole) * SECOND + int(fraction[:6].ljust(6, "0")) + rounded_up, match.end()


def _not_understood(unit: Unit, text: str) -> str:
    return f"{unit.name} {text!r} is not *, a number, a range (a..b), a step (a/s) or a list"


def checked(unit: Unit, chain: Chain, at: int, *, from_end: bool = False) -> Chain:
    """Return the chain in canonical form.

    Raises:
        PartError: a number is out of range, a range runs backwards, or a step leads out of the range at once.
    """
    if chain is None:
        return None
    # Dates further than 28 days from a month's end do not exist in every month.
    high = unit.high - 3 if from_end else unit.high
    parts = {_checked_part(unit, part, high, at, from_end=from_end) for part in chain}
    if unit.fine and Part(0, None, SECOND) in parts:
        return None  # as systemd: `0/1` is `*`, whatever else is in the list
    return tuple(sorted(parts, key=lambda part: (part.start, part.stop or -1, part.repeat)))


def _checked_part(unit: Unit, part: Part, high: int, at: int, *, from_end: bool) -> Part:
    for number in (part.start, part.start if part.stop is None else part.stop):
        if not unit.low <= number <= high:
            bounds = f"{unit.low}-{high // unit.one}"
            raise PartError(unit.name, f"{unit.name} {_plain(unit, number)} is not in {bounds}", at)
    if part.stop is not None:
        if part.stop < part.start:
            shown = f"{_plain(unit, part.start)}..{_plain(unit, part.stop)}"
            raise PartError(unit.name, f"{unit.name} {shown} runs backwards", at)
        stop = part.stop - (part.stop - part.start) % part.repeat
        return Part(part.start) if stop == part.start else replace(part, stop=stop)
    leaves = part.start - part.repeat < unit.low if from_end else part.start + part.repeat > high
    if part.repeat and leaves:
        step = f"{_plain(unit, part.start)}/{_plain(unit, part.repeat)}"
        raise PartError(unit.name, f"{unit.name} {step}: the step leads out of {unit.name} at once", at)
    return part


def _plain(unit: Unit, number: int) -> str:
    return replace(unit, width=1).show(number)


def shown(unit: Unit, chain: Chain) -> str:
    """Return the component's canonical text."""
    if chain is None:
        return "*"
    texts = []
    for part in chain:
        text = unit.show(part.start)
        if part.stop is not None:
            text += f"..{unit.show(part.stop)}"
        if part.repeat and not (part.stop is not None and part.repeat == unit.one):
            text += f"/{_plain(unit, part.repeat)}"
        texts.append(text)
    return ",".join(texts)


def numbers_of(unit: Unit, chain: Chain) -> int:
    """Return the component's numbers as a set."""
    if chain is None:
        return number_range(unit.low, unit.high)
    return sum({1 << number for part in chain for number in part.values(unit.high)})


def seconds_of(chain: Chain) -> int | tuple[int, ...]:
    """Return the seconds as a set if they are whole, else the microseconds of the minute in ascending order.

    Raises:
        PartError: they are more than MOST_FRACTIONS.
    """
    parts = (Part(0, None, SECOND),) if chain is None else chain
    if all(part.start % SECOND == 0 and part.repeat % SECOND == 0 for part in parts):
        return sum({1 << value // SECOND for part in parts for value in part.values(SECONDS_OF_MINUTE.high)})
    if sum(len(part.values(SECONDS_OF_MINUTE.high)) for part in parts) > MOST_FRACTIONS:
        raise PartError("second", "a step under 0.01 s in second", 0)
    return tuple(sorted({value for part in parts for value in part.values(SECONDS_OF_MINUTE.high)}))


def special_days_of(chain: Chain) -> tuple[SpecialDays, ...]:
    """Return the rules for days that are counted from the month's end."""
    return tuple(partial(_from_end, part) for part in chain or ())


def _from_end(part: Part, first: int, length: int) -> int:  # noqa: ARG001  (a SpecialDays has both)
    """Return the days of `~start..stop/repeat`: the earlier day is where counting begins, onwards to the end."""
    start = length + 1 - (part.start if part.stop is None else part.stop)
    last = length + 1 - part.start if part.stop is not None else length
    if not part.repeat:
        last = start
    return number_range(start, last, part.repeat or 1) & whole_month(length)
