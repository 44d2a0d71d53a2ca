"""Recurrence sets in plain English."""

from __future__ import annotations

from ..moments import Moment
from ..source_text import SourceText
from ..words import MONTHS, WEEKDAYS, joined
from .text import Rule, read_set

NOUNS = {
    "SECONDLY": "second",
    "MINUTELY": "minute",
    "HOURLY": "hour",
    "DAILY": "day",
    "WEEKLY": "week",
    "MONTHLY": "month",
    "YEARLY": "year",
}
ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", -1: "last"}
PARTS = {  # in this order
    "BYMONTHDAY": "on day {} of the month",
    "BYYEARDAY": "on day {} of the year",
    "BYWEEKNO": "in week {}",
    "BYMONTH": "in {}",
    "BYHOUR": "at hour {}",
    "BYMINUTE": "at minute {}",
    "BYSECOND": "at second {}",
    "BYSETPOS": "of those number {}",
}


def describe_rrule(text: str) -> str:
    """Return a canonical recurrence set in words."""
    parts = read_set(SourceText(text, text))
    phrases = [] if parts.rule is None else [_rule(parts.rule)]
    if parts.rule is not None and parts.start is not None:
        phrases.append(f"from {_moment(parts.start)}")
    if parts.added:
        phrases.append(f"{'also ' if phrases else ''}at {joined([_moment(moment) for moment in parts.added])}")
    if parts.removed:
        phrases.append(f"except at {joined([_moment(moment) for moment in parts.removed])}")
    return ", ".join(phrases)


def _rule(rule: Rule) -> str:
    noun = NOUNS[rule.frequency]
    words = [f"every {noun}" if rule.interval == 1 else f"every {rule.interval} {noun}s"]
    if rule.weekdays:
        words.append("on " + joined([_weekday(*each) for each in rule.weekdays]))
    for part, phrase in PARTS.items():
        numbers = rule.by(part)
        if numbers:
            names = [MONTHS[number - 1] if part == "BYMONTH" else str(number) for number in numbers]
            words.append(phrase.format(joined(names)))
    if rule.count is not None:
        words.append(f", {rule.count} times" if rule.count > 1 else ", once")
    if rule.until is not None:
        words.append(f", until {_moment(rule.until, only_date=rule.until_is_date)}")
    return " ".join(words).replace(" ,", ",")


def _weekday(nth: int, weekday: int) -> str:
    if not nth:
        return WEEKDAYS[(weekday + 1) % 7]
    place = ORDINALS.get(nth) or (f"{nth}th" if nth > 0 else f"{-nth}th last")
    return f"the {place} {WEEKDAYS[(weekday + 1) % 7]}"


def _moment(moment: Moment, *, only_date: bool = False) -> str:
    text = moment.text().replace("T", " ").replace("Z", " UTC")
    return text[:10] if only_date else text
