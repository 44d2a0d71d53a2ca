"""systemd's calendar events: `Mon..Fri *-*-* 09:00`, `*-*~1`, `Sat *-*-1..7 18:00:00 Europe/Berlin`, `quarterly`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from ..kind import Parsed
from ..moments import MOMENT
from ..source_text import PartError, SourceText, Word
from ..wallclock.bitset import lowest
from ..wallclock.days import EVERY_WEEKDAY, FIRST_YEAR, DayRule, listed, never_occurs
from ..wallclock.dst import CALENDAR
from ..wallclock.instants import EPOCH
from ..wallclock.pattern import Pattern
from ..wallclock.times_of_day import Clock, FineClock
from ..wallclock.wall_times import WallTimes
from ..wallclock.zones import zone_named
from . import fields
from .fields import Chain, Part, Unit

NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SHORT = tuple(name[:3].title() for name in NAMES)
SHORTHANDS = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    **dict.fromkeys(("semiannually", "semi-annually", "biannually", "bi-annually"), "*-01,07-01 00:00:00"),
    **dict.fromkeys(("yearly", "annually", "anually"), "*-01-01 00:00:00"),
}
WEEKDAY = "(?:" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in NAMES) + ")"
WEEKDAYS = re.compile(rf"{WEEKDAY}(?:(?:\.\.|-){WEEKDAY})?(?:,{WEEKDAY}(?:(?:\.\.|-){WEEKDAY})?)*,?", re.IGNORECASE)
DATE = re.compile(r"(?:([^-~:]+)-)?([^-~:]+)([-~])([^-~:]+)")
TIME = re.compile(r"([^:]+):([^:]+)(?::([^:]+))?")
SECONDS_SINCE_EPOCH = re.compile(r"@(\d{1,10})", re.ASCII)
ZONE = re.compile(r"[A-Za-z][\w+/-]*", re.ASCII)
MOST_WORDS = 4  # weekdays, date, time, zone
LOOKS_LIKE_ONE = re.compile(r"[\d*]\s*[-~:]\s*[\d*]|@\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class Event:
    """A calendar event, taken apart; `weekdays` has bit 0 for Monday."""

    weekdays: int = EVERY_WEEKDAY
    year: Chain = None
    month: Chain = None
    day: Chain = None
    from_end: bool = False
    hour: Chain = (Part(0),)
    minute: Chain = (Part(0),)
    second: Chain = (Part(0),)

    def text(self) -> str:
        """Return the canonical text, without a zone."""
        date = "-".join([fields.shown(fields.YEAR, self.year), fields.shown(fields.MONTH, self.month)])
        day = fields.shown(fields.DAY, self.day)
        time = [(fields.HOUR, self.hour), (fields.MINUTE, self.minute), (fields.SECONDS_OF_MINUTE, self.second)]
        text = f"{date}{'~' if self.from_end else '-'}{day} {':'.join(fields.shown(*each) for each in time)}"
        return text if self.weekdays == EVERY_WEEKDAY else f"{weekdays_text(self.weekdays)} {text}"

    def days(self) -> DayRule:
        """Return the days on which it happens."""
        return DayRule(
            fields.numbers_of(fields.MONTH, self.month),
            0 if self.from_end else fields.numbers_of(fields.DAY, self.day),
            self.weekdays,
            special_days=fields.special_days_of(self.day) if self.from_end else (),
            years=None if self.year is None else fields.numbers_of(fields.YEAR, self.year) >> FIRST_YEAR,
        )


def is_calendar(body: str) -> bool:
    """Return whether a text can only be a calendar event."""
    words = body.split()
    if len(words) > MOST_WORDS:
        return False
    return bool(words[0].lower() in SHORTHANDS or WEEKDAYS.fullmatch(words[0]) or LOOKS_LIKE_ONE.search(body))


def read_calendar(source: SourceText) -> Parsed:
    """Read a calendar event."""
    words = source.words()
    zone_text = ""
    if len(words) > 1 and ZONE.fullmatch(words[-1].text) and not WEEKDAYS.fullmatch(words[-1].text):
        zone = zone_named(words.pop().text)
        source = replace(source, timezone=zone.name)
        zone_text = f" {zone.name}"
    try:
        event, utc = _event(source, words)
        clock = _clock(event)
    except PartError as error:
        raise source.refuse(error.field, error.reason, error.at or source.at) from None
    if utc:
        source, zone_text = replace(source, timezone="UTC"), " UTC"
    days = event.days()
    if not days.ever():
        raise _impossible(source, event)
    zone = source.zone()
    text = event.text() + zone_text
    if MOMENT.fullmatch(text):  # without a prefix it would be a single date-time
        text = f"calendar: {text}"
    return Parsed("calendar", text, zone, WallTimes(Pattern(clock, days), zone, CALENDAR[source.dst]))


def weekdays_text(weekdays: int) -> str:
    """Return a set of weekdays as `Mon..Fri,Sun`."""
    runs: list[list[int]] = []
    for day in range(7):
        if weekdays >> day & 1:
            if runs and runs[-1][-1] == day - 1:
                runs[-1].append(day)
            else:
                runs.append([day])
    return ",".join(
        f"{SHORT[run[0]]}..{SHORT[run[-1]]}" if len(run) > 2 else ",".join(SHORT[day] for day in run) for run in runs
    )


def _event(source: SourceText, words: list[Word]) -> tuple[Event, bool]:
    """Return the event, and whether it is in UTC by itself."""
    if len(words) == 1 and (match := SECONDS_SINCE_EPOCH.fullmatch(words[0].text)):
        return _at_epoch(int(match.group(1))), True
    if len(words) == 1 and words[0].text.lower() in SHORTHANDS:
        words = [Word(text, words[0].at) for text in SHORTHANDS[words[0].text.lower()].split()]
    event, rest = Event(), list(words)
    if rest and WEEKDAYS.fullmatch(rest[0].text):
        event = replace(event, weekdays=_weekdays(rest.pop(0)))
    if rest and (match := DATE.fullmatch(rest[0].text)):
        event = _with_date(event, match, rest.pop(0).at)
    if rest and (match := TIME.fullmatch(rest[0].text)):
        event = _with_time(event, match, rest.pop(0).at)
    if rest or not words:
        shown = rest[0].text if rest else source.body
        raise PartError(
            "calendar", f"{shown!r} is not a weekday, a date, a time or a zone", rest[0].at if rest else source.at
        )
    return event, False


def _at_epoch(seconds: int) -> Event:
    moment = EPOCH + timedelta(seconds=seconds)
    numbers = (moment.year, moment.month, moment.day)
    units = (fields.YEAR, fields.MONTH, fields.DAY)
    year, month, day = (fields.checked(unit, (Part(number),), 0) for unit, number in zip(units, numbers, strict=True))
    seconds_part = (Part(moment.second * fields.SECOND),)
    return Event(
        year=year, month=month, day=day, hour=(Part(moment.hour),), minute=(Part(moment.minute),), second=seconds_part
    )


def _weekdays(word: Word) -> int:
    bits, at = 0, word.at
    for piece in word.text.lower().split(","):
        names = [name[:3] for name in re.split(r"\.\.|-", piece) if name]
        numbers = [SHORT.index(name.title()) for name in names]
        if numbers and numbers[0] > numbers[-1]:
            raise PartError("weekday", f"weekday {piece} runs backwards: a week is Mon..Sun", at)
        for number in range(numbers[0], numbers[-1] + 1) if numbers else ():
            bits |= 1 << number
        at += len(piece) + 1
    return bits


def _with_date(event: Event, match: re.Match[str], at: int) -> Event:
    year_text, month_text, separator, day_text = match.groups()
    from_end = separator == "~"
    year = None if year_text is None else _full_years(fields.read_chain(fields.YEAR, year_text, at))
    day = fields.read_chain(fields.DAY, day_text, at + match.start(4))
    return replace(
        event,
        year=fields.checked(fields.YEAR, year, at),
        month=_component(fields.MONTH, month_text, at + match.start(2)),
        day=fields.checked(fields.DAY, day, at + match.start(4), from_end=from_end),
        from_end=from_end and day is not None,
    )


def _with_time(event: Event, match: re.Match[str], at: int) -> Event:
    hour, minute, second = match.groups(default="00")
    return replace(
        event,
        hour=_component(fields.HOUR, hour, at),
        minute=_component(fields.MINUTE, minute, at + match.start(2)),
        second=_component(fields.SECONDS_OF_MINUTE, second, at + max(match.start(3), 0)),
    )


def _component(unit: Unit, text: str, at: int) -> Chain:
    return fields.checked(unit, fields.read_chain(unit, text, at), at)


def _full_years(chain: Chain) -> Chain:
    """Turn years of two digits into 1970-2069."""

    def full(year: int) -> int:
        return year + 2000 if year < 70 else year + 1900 if year < 100 else year

    if chain is None:
        return None
    return tuple(
        replace(part, start=full(part.start), stop=None if part.stop is None else full(part.stop)) for part in chain
    )


def _clock(event: Event) -> Clock | FineClock:
    hours, minutes = fields.numbers_of(fields.HOUR, event.hour), fields.numbers_of(fields.MINUTE, event.minute)
    seconds = fields.seconds_of(event.second)
    if isinstance(seconds, int):
        return Clock(hours, minutes, seconds)
    return FineClock(hours, minutes, seconds)


def _impossible(source: SourceText, event: Event) -> Exception:
    months = fields.numbers_of(fields.MONTH, event.month)
    years = None if event.year is None else fields.numbers_of(fields.YEAR, event.year) >> FIRST_YEAR
    if replace(event, weekdays=EVERY_WEEKDAY).days().ever():
        reason = f"day {fields.shown(fields.DAY, event.day)} is never a {weekdays_text(event.weekdays)}"
        if years is not None:
            reason += f" in month {listed(months)} of {listed(years << FIRST_YEAR)}"
    else:
        reason = never_occurs(str(lowest(fields.numbers_of(fields.DAY, event.day))), months, years)
    return source.refuse("day", reason, source.at)
