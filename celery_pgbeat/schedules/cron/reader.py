"""Cron expressions of five, six (seconds first) and seven fields (year last), and Celery's crontab.

The two differ in one thing: when both day fields are restricted, cron runs on days that match one of them, Celery on
days that match both. A field that starts with `*` is not restricted.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from celery_pgbeat.errors import InvalidSchedule

from ..kind import Parsed
from ..source_text import PartError, SourceText, Word
from ..wallclock.bitset import lowest
from ..wallclock.days import EVERY_WEEKDAY, FIRST_YEAR, DayRule, listed, never_occurs
from ..wallclock.dst import FIXED, REAL_TIME
from ..wallclock.pattern import Pattern
from ..wallclock.times_of_day import Clock
from ..wallclock.wall_times import WallTimes
from ..wallclock.zones import zone_named
from . import fields
from .fields import Field, Values
from .hashed import expand

FIVE = (fields.MINUTE, fields.HOUR, fields.DAY, fields.MONTH, fields.WEEKDAY)
SIX = (fields.SECOND, *FIVE)
SEVEN = (*SIX, fields.YEAR)
LAYOUTS = {5: FIVE, 6: SIX, 7: SEVEN}

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
NUMBERED_WEEKDAY = re.compile(r"(?<![#/\d])\d", re.ASCII)  # not the n of mon#n, nor a step
ZONE = re.compile(r"(?:CRON_)?TZ=(\S*)")
ZONE_NAME = re.compile(r"[A-Za-z_]{3,}/[A-Za-z][A-Za-z_/+-]*\d*|UTC|GMT", re.ASCII)
FIELD = re.compile(r"[\d*/,?LWH-]+", re.ASCII)


def is_cron(body: str) -> bool:
    """Return whether a text has as many words as cron has fields, or begins as only cron does."""
    words = body.split()
    named = body.startswith(("@", "CRON_TZ=", "TZ="))
    return named or len(words) in LAYOUTS or all(map(FIELD.fullmatch, words))


def read_cron(source: SourceText) -> Parsed:
    """Read a cron expression."""
    return _read(source, "cron")


def read_crontab(source: SourceText) -> Parsed:
    """Read the fields of a Celery crontab."""
    return _read(source, "crontab")


def _read(source: SourceText, kind: Literal["cron", "crontab"]) -> Parsed:
    zone_text = ""
    if match := ZONE.match(source.body):
        source = replace(source.skip(match.end()), timezone=match.group(1))
        zone_text = f"CRON_TZ={zone_named(source.timezone).name} "
    words = _words(source)
    if len(words) > 1 and ZONE_NAME.fullmatch(last := words[-1].text):
        reason = f"a zone is no field: set timezone to {last!r}, or write CRON_TZ={last} in front"
        raise source.refuse("timezone", reason, words[-1].at)
    layout = LAYOUTS.get(len(words))
    if len(words) == 1 and words[0].text.isdigit() and words[0].text.strip("0"):
        raise source.refuse("schedule", f"not a schedule: did you mean 'every {words[0].text}s'?", source.at)
    if layout is None:
        raise source.refuse("fields", f"cron has 5, 6 or 7 fields, not {len(words)}", source.at)
    values = [_field(source, field, word) for field, word in zip(layout, words, strict=True)]
    by_name = dict(zip((field.name for field in layout), values, strict=True))
    if len(words) > 5:
        _refuse_quartz(source, words[3], words[5])
    days = _days(by_name, always_both=kind == "crontab")
    if not days.ever():
        raise _impossible(source, by_name, dict(zip((field.name for field in layout), words, strict=True)))
    minute, hour, second = by_name["minute"], by_name["hour"], by_name.get("second")
    pattern = Pattern(Clock(hour.numbers, minute.numbers, 1 if second is None else second.numbers), days)
    zone = source.zone()
    table = REAL_TIME if minute.starred or hour.starred else FIXED
    text = zone_text + " ".join(value.text for value in values)
    text = text if kind == "cron" else f"crontab: {text}"
    return Parsed(kind, text, zone, WallTimes(pattern, zone, table[source.dst]))


def _words(source: SourceText) -> list[Word]:
    nickname = source.body.lower()
    if not nickname.startswith("@"):
        return source.words()
    if nickname == "@reboot":
        raise source.refuse(
            "nickname", "@reboot has no meaning here, beats come and go; use @hourly, or trigger the task", source.at
        )
    if nickname not in NICKNAMES:
        raise source.refuse(
            "nickname", f"{source.body!r} is not one of {', '.join(NICKNAMES)}, @every <duration>", source.at
        )
    return [Word(text, source.at) for text in NICKNAMES[nickname].split()]


def _field(source: SourceText, field: Field, word: Word) -> Values:
    try:
        text = expand(field, word.text, source.name) if "H" in word.text else word.text
        return fields.read_field(field, text)
    except PartError as error:
        raise source.refuse(error.field, error.reason, word.at + error.at) from None


def _days(values: dict[str, Values], *, always_both: bool) -> DayRule:
    day, weekday = values["day"], values["weekday"]
    return DayRule(
        values["month"].numbers,
        day.numbers,
        # cron counts from Sunday, Python from Monday
        weekday.numbers >> 1 | (weekday.numbers & 1) << 6,
        special_days=day.special,
        special_weekdays=weekday.special,
        both=always_both or day.starred or weekday.starred,
        years=_years(values),
    )


def _years(values: dict[str, Values]) -> int | None:
    year = values.get("year")
    return None if year is None or year.text == "*" else year.numbers >> FIRST_YEAR


def _refuse_quartz(source: SourceText, day: Word, weekday: Word) -> None:
    """Refuse what Quartz reads differently: it writes `?` in a day field and counts weekdays from 1 = Sunday."""
    if day.text == "?" and (digit := NUMBERED_WEEKDAY.search(weekday.text)):
        raise source.refuse(
            "weekday",
            f"weekday {digit.group()} beside '?' looks like Quartz, where 1 is Sunday: write names (MON-FRI) instead",
            weekday.at + digit.start(),
        )


def _impossible(source: SourceText, values: dict[str, Values], words: dict[str, Word]) -> InvalidSchedule:
    day, weekday = values["day"], values["weekday"]
    years = _years(values)
    months = values["month"].numbers
    dates = DayRule(months, day.numbers, EVERY_WEEKDAY, special_days=day.special, years=years)
    if dates.ever():
        reason = f"day {day.text} and weekday {weekday.text} never meet in month {listed(months)}"
    else:
        reason = never_occurs(str(lowest(day.numbers)) if day.numbers else day.text, months, years)
    return source.refuse("day", reason, words["day"].at)
