"""The text of a recurrence set (RFC 5545): DTSTART, RRULE, RDATE and EXDATE, one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ..moments import Moment
from ..source_text import SourceText, Word
from ..wallclock.days import month_length, never_occurs
from ..wallclock.instants import UTC
from ..wallclock.zones import zone_named

FREQUENCIES = ("SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
MOST = 1_000_000_000  # for INTERVAL and COUNT

# Parts that hold numbers: the largest that is allowed, and whether negative ones count from the end.
NUMBERS = {
    "BYSECOND": (0, 59, False),
    "BYMINUTE": (0, 59, False),
    "BYHOUR": (0, 23, False),
    "BYMONTHDAY": (1, 31, True),
    "BYYEARDAY": (1, 366, True),
    "BYWEEKNO": (1, 53, True),
    "BYMONTH": (1, 12, False),
    "BYSETPOS": (1, 366, True),
}
NUMBER = re.compile(r"[+-]?\d{1,10}", re.ASCII)
BYDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
PROPERTY = re.compile(r"(DTSTART|RRULE|RDATE|EXDATE)((?:;[^:;]+)*):(\S+)", re.ASCII | re.IGNORECASE)
SET = re.compile(r"(rrule|dtstart|exdate|rdate|exrule)\s*[:;]", re.ASCII | re.IGNORECASE)
DATE = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z)?)?", re.ASCII | re.IGNORECASE)
PREFIX = re.compile(r"rrule\s*:(?=\s|FREQ=|DTSTART|RRULE|RDATE|EXDATE)", re.ASCII | re.IGNORECASE)


def is_recurrence_set(text: str) -> bool:
    """Return whether a text begins with the name of a property. Such a text may be longer than others and hold `;`."""
    return bool(SET.match(text.lstrip()))


def is_rrule(body: str) -> bool:
    """Return whether a text is a recurrence set, or the bare value of an RRULE."""
    return is_recurrence_set(body) or body[:5].upper() == "FREQ="


@dataclass(frozen=True, slots=True)
class Rule:
    """An RRULE: its parts by name. Numbers are sorted; `weekdays` holds (n or 0, weekday from Monday)."""

    frequency: str
    interval: int = 1
    count: int | None = None
    until: Moment | None = None
    until_is_date: bool = False
    week_start: int = 0
    weekdays: tuple[tuple[int, int], ...] = ()
    numbers: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def by(self, part: str) -> tuple[int, ...]:
        """Return the numbers of a BY part; empty if it is not there."""
        return dict(self.numbers).get(part, ())

    def text(self) -> str:
        """Return the canonical text."""
        parts = [f"FREQ={self.frequency}"]
        if self.interval != 1:
            parts.append(f"INTERVAL={self.interval}")
        if self.count is not None:
            parts.append(f"COUNT={self.count}")
        if self.until is not None:
            parts.append(f"UNTIL={date_text(self.until, only_date=self.until_is_date)}")
        parts += [f"{part}={','.join(map(str, values))}" for part, values in self.numbers]
        if self.weekdays:
            parts.append("BYDAY=" + ",".join(f"{nth or ''}{WEEKDAYS[weekday]}" for nth, weekday in self.weekdays))
        if self.week_start:
            parts.append(f"WKST={WEEKDAYS[self.week_start]}")
        return "RRULE:" + ";".join(parts)


@dataclass(frozen=True, slots=True)
class RecurrenceSet:
    """A whole text, taken apart."""

    start: Moment | None = None
    rule: Rule | None = None
    added: tuple[Moment, ...] = ()
    removed: tuple[Moment, ...] = ()
    zone: str | None = None  # named by DTSTART

    def text(self) -> str:
        """Return the canonical text, one property a line."""
        lines = []
        if self.start is not None:
            named = f";TZID={self.zone}" if self.zone and self.start.offset is None else ""
            lines.append(f"DTSTART{named}:{date_text(self.start)}")
        if self.rule is not None:
            lines.append(self.rule.text())
        for name, moments in (("RDATE", self.added), ("EXDATE", self.removed)):
            if moments:
                lines.append(f"{name}:{','.join(map(date_text, moments))}")
        return "\n".join(lines)


def date_text(moment: Moment, *, only_date: bool = False) -> str:
    """Return a moment as RFC 5545 writes it; one with an offset in UTC."""
    if only_date:
        return f"{moment.reading:%Y%m%d}"
    if moment.offset is None:
        return f"{moment.reading:%Y%m%dT%H%M%S}"
    return f"{moment.reading - moment.offset:%Y%m%dT%H%M%S}Z"


def read_set(source: SourceText) -> RecurrenceSet:
    """Take a recurrence set apart.

    Raises:
        InvalidSchedule: a property or a part of it is wrong.
    """
    if match := PREFIX.match(source.body):
        source = source.skip(match.end())
    found = RecurrenceSet()
    for word in source.words():
        found = _with_property(source, found, word)
    if found.rule is None and not found.added:
        raise source.refuse("RRULE", "there is neither an RRULE nor an RDATE", source.at)
    return found


def _with_property(source: SourceText, found: RecurrenceSet, word: Word) -> RecurrenceSet:
    if word.text[:5].upper() == "FREQ=":
        word = Word(f"RRULE:{word.text}", word.at - len("RRULE:"))
    match = PROPERTY.fullmatch(word.text)
    if match is None:
        raise source.refuse(
            "property", f"{word.text[:40]!r} is not DTSTART:..., RRULE:..., RDATE:... or EXDATE:...", word.at
        )
    name, parameters, value = match.group(1).upper(), match.group(2), match.group(3)
    at = word.at + match.start(3)
    if name == "RRULE":
        if found.rule is not None:
            raise source.refuse("RRULE", "a schedule has one RRULE; make two periodic tasks, or use RDATE", word.at)
        return replace(found, rule=read_rule(source, value.upper(), at))
    zone = _zone_of(source, parameters, word.at)
    moments = [_date(source, name, text, begin) for text, begin in _split(value, ",", at)]
    if zone and name != "DTSTART":
        moments = [_in_utc(moment, zone) for moment in moments]
    if name == "RDATE":
        return replace(found, added=(*found.added, *moments))
    if name == "EXDATE":
        return replace(found, removed=(*found.removed, *moments))
    if found.start is not None or len(moments) != 1:
        raise source.refuse("DTSTART", "a schedule has one DTSTART", word.at)
    in_force = "UTC" if moments[0].offset is not None else zone
    return replace(found, start=moments[0], zone=in_force)


def read_rule(source: SourceText, value: str, at: int) -> Rule:
    """Read the value of an RRULE, in upper case."""
    rule, seen = Rule(""), set()
    for text, begin in _split(value, ";", at):
        name, _, given = text.partition("=")
        if name in seen:
            raise source.refuse(name, f"{name} is given twice", begin)
        seen.add(name)
        rule = _with_part(source, rule, name, given, begin)
    if not rule.frequency:
        raise source.refuse("FREQ", f"an RRULE needs FREQ={'|'.join(FREQUENCIES)}", at)
    if rule.count is not None and rule.until is not None:
        raise source.refuse("COUNT", "COUNT and UNTIL exclude each other", at)
    if any(nth for nth, _ in rule.weekdays) and rule.frequency not in ("MONTHLY", "YEARLY"):
        raise source.refuse("BYDAY", "BYDAY with a number needs FREQ=MONTHLY or FREQ=YEARLY", at)
    return replace(rule, numbers=tuple(sorted(rule.numbers)))


def _with_part(source: SourceText, rule: Rule, name: str, given: str, at: int) -> Rule:
    if name in NUMBERS:
        low, high, signed = NUMBERS[name]
        numbers = {_number(source, name, text, low, high, begin, signed) for text, begin in _split(given, ",", at)}
        return replace(rule, numbers=(*rule.numbers, (name, tuple(sorted(numbers)))))
    simple: dict[str, Callable[[], Rule]] = {
        "FREQ": lambda: replace(rule, frequency=_choice(source, name, given, FREQUENCIES, at)),
        "INTERVAL": lambda: replace(rule, interval=_number(source, name, given, 1, MOST, at)),
        "COUNT": lambda: replace(rule, count=_number(source, name, given, 1, MOST, at)),
        "UNTIL": lambda: replace(rule, until=_date(source, name, given, at), until_is_date="T" not in given),
        "WKST": lambda: replace(rule, week_start=WEEKDAYS.index(_choice(source, name, given, WEEKDAYS, at))),
        "BYDAY": lambda: replace(rule, weekdays=_weekdays(source, given, at)),
    }
    if name not in simple:
        raise source.refuse(name or "RRULE", f"{name!r} is not a part of an RRULE", at)
    return simple[name]()


def _number(source: SourceText, name: str, text: str, low: int, high: int, at: int, signed: bool = False) -> int:
    if not NUMBER.fullmatch(text):
        raise source.refuse(name, f"{name} {text!r} is not a number", at)
    number = int(text)
    if not low <= (abs(number) if signed else number) <= high:
        bounds = f"{low}-{high}" + (f" or -{high}..-{low}" if signed else "")
        raise source.refuse(name, f"{name} {number} is not in {bounds}", at)
    return number


def _choice(source: SourceText, name: str, text: str, choices: tuple[str, ...], at: int) -> str:
    if text not in choices:
        raise source.refuse(name, f"{name} {text!r} is not one of {', '.join(choices)}", at)
    return text


def _weekdays(source: SourceText, given: str, at: int) -> tuple[tuple[int, int], ...]:
    found = set()
    for text, begin in _split(given, ",", at):
        match = BYDAY.fullmatch(text)
        if match is None:
            raise source.refuse("BYDAY", f"BYDAY {text!r} is not a weekday such as MO or -1FR", begin)
        nth = 0 if match.group(1) is None else _number(source, "BYDAY", match.group(1), 1, 53, begin, signed=True)
        found.add((nth, WEEKDAYS.index(match.group(2))))
    return tuple(sorted(found))


def _zone_of(source: SourceText, parameters: str, at: int) -> str | None:
    """Return the TZID among a property's parameters."""
    zone = None
    for parameter in parameters.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.upper() == "TZID":
            zone = zone_named(value).name
        elif (name.upper(), value.upper()) not in (("VALUE", "DATE"), ("VALUE", "DATE-TIME")):
            raise source.refuse(name.upper(), f"{parameter!r} is not TZID=..., VALUE=DATE or VALUE=DATE-TIME", at)
    return zone


def _date(source: SourceText, name: str, text: str, at: int) -> Moment:
    match = DATE.fullmatch(text)
    if match is None:
        raise source.refuse(name, f"{name} {text!r} is not a date such as 20261209 or 20261209T090000Z", at)
    year, month, day, hour, minute, second = (int(group or 0) for group in match.groups()[:6])
    if not (1000 <= year <= 9997 and 1 <= month <= 12 and day >= 1 and hour < 24 and minute < 60 and second < 60):
        raise source.refuse(name, f"{name} {text!r} is not a date such as 20261209 or 20261209T090000Z", at)
    if day > month_length(year, month):
        raise source.refuse(name, f"{name}: {never_occurs(str(day), 1 << month)} of {year}", at)
    reading = datetime(year, month, day, hour, minute, second, 0, UTC)
    if match.group(7):
        return Moment(reading, timedelta(0))
    return Moment(reading, None)


def _in_utc(moment: Moment, zone: str) -> Moment:
    return Moment(moment.instant(zone_named(zone)), timedelta(0))


def _split(value: str, separator: str, at: int) -> list[tuple[str, int]]:
    """Return the pieces of a list, each with where it begins."""
    pieces = []
    for piece in value.split(separator):
        pieces.append((piece, at))
        at += len(piece) + 1
    return pieces
