"""The words and ranges that SQL checks, made from the Python that reads the same texts.

A definition has them as tokens, so that SQL refuses nothing that Python takes:

    {lowest_of_field}, {highest_of_field}, {names_of_field}
                                    of the field of cron whose name is in the variable `field`: expressions for the
                                    range of its numbers, and for the array of its names
    {cron_fields}                   the names of all seven fields
    {month_names}, {weekday_names}  jan, feb, ...; sun, mon, ...
    {nicknames}                     of cron: @yearly, ...; {nicknames_as_text} with commas between them
    {schedule_prefixes}             what may be before the colon of a schedule, to name its kind
    {units_of_time}                 s, sec, secs, ...
    {known_options}                 the options of `apply_async` that a row may carry
    {reserved_headers}              Celery's own headers
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from textwrap import fill

WIDTH = 110  # characters of a line
TOKEN = re.compile(
    r"\{(?:(?:lowest|highest|names)_of_field|cron_fields|(?:month|weekday)_names|nicknames(?:_as_text)?"
    r"|schedule_prefixes|units_of_time|known_options|reserved_headers)\}"
)


def with_known_words(text: str) -> str:
    """Return the text with its tokens replaced.

    Example:
        >>> with_known_words("array[{weekday_names}]")
        "array['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']"
    """
    return TOKEN.sub(lambda found: _words()[found[0]], text)


@cache
def _words() -> dict[str, str]:
    # Only what installs the definitions needs them; a command that sends statements starts without.
    from celery_pgbeat.declare.options import CELERY_HEADERS, KNOWN_OPTIONS
    from celery_pgbeat.schedules.cron.fields import MONTHS, WEEKDAYS
    from celery_pgbeat.schedules.cron.reader import NICKNAMES, SEVEN
    from celery_pgbeat.schedules.durations import UNITS
    from celery_pgbeat.schedules.registry import KINDS

    return {
        "{lowest_of_field}": _by_field((field.name, str(field.low)) for field in SEVEN),
        "{highest_of_field}": _by_field((field.name, str(field.limit)) for field in SEVEN),
        "{names_of_field}": _by_field((field.name, f"array[{_texts(field.words)}]") for field in SEVEN if field.words),
        "{cron_fields}": _texts(field.name for field in SEVEN),
        "{month_names}": _texts(MONTHS),
        "{weekday_names}": _texts(WEEKDAYS),
        "{nicknames}": _texts(NICKNAMES),
        "{nicknames_as_text}": ", ".join(NICKNAMES),
        "{schedule_prefixes}": _texts(["rrule", *(prefix for kind in KINDS.all for prefix in kind.prefixes)]),
        "{units_of_time}": _texts(UNITS),
        "{known_options}": _texts(sorted(KNOWN_OPTIONS)),
        "{reserved_headers}": _texts(sorted(CELERY_HEADERS)),
    }


def _by_field(values: Iterable[tuple[str, str]]) -> str:
    return _wrapped("case field " + " ".join(f"when '{name}' then {value}" for name, value in values) + " end")


def _texts(values: Iterable[str]) -> str:
    return _wrapped(", ".join(f"'{value}'" for value in values))


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
