"""The fields of a cron expression as Celery's `crontab` takes them: numbers, texts, or several numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

NAME = re.compile(r"[a-z]+")

CronField = int | str | Collection[int]


def crontab_text(
    minute: CronField,
    hour: CronField = "*",
    day_of_week: CronField = "*",
    day_of_month: CronField = "*",
    month_of_year: CronField = "*",
) -> str:
    """Return Celery's crontab as the text of a schedule; the fields are in Celery's order, those of the text in cron's.

    The prefix keeps Celery's rule: a day must match both day fields.

    Example:
        >>> crontab_text(0, "8-17", "monday", (1, 2, 3))
        'crontab: 0 8-17 1-3 * mon'
    """
    fields = (_field(minute), _field(hour), _field(day_of_month), _named(month_of_year), _named(day_of_week))
    return f"crontab: {' '.join(fields)}"


def is_field(value: Any) -> bool:
    """Return whether a value has the form of a field: a number, text, or several numbers.

    Example:
        >>> is_field({0, 30}), is_field(0.5), is_field(True)
        (True, False, False)
    """
    if isinstance(value, (str, int)):
        return not isinstance(value, bool)
    many = isinstance(value, Collection) and not isinstance(value, (bytes, Mapping)) and bool(value)
    return many and all(isinstance(one, int) and not isinstance(one, bool) for one in value)


def _field(given: CronField) -> str:
    if isinstance(given, str):
        return "".join(given.split())
    return ",".join(_ranges(sorted({given} if isinstance(given, int) else set(given))))


def _ranges(numbers: list[int]) -> Iterator[str]:
    """Join neighbours, so that a set of all minutes is as short as `0-59`."""
    start = 0
    for end, number in enumerate(numbers):
        if end + 1 < len(numbers) and numbers[end + 1] == number + 1:
            continue
        yield str(number) if start == end else f"{numbers[start]}-{number}"
        start = end + 1


def _named(given: CronField) -> str:
    """Cut names to their first three letters, which is all that Celery reads of `monday` or `january`."""
    return NAME.sub(lambda name: name.group()[:3], _field(given).lower())
