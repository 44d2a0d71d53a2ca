"""Entries as the text of a `beat_schedule`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from celery_pgbeat.moving.answers import Refused
from celery_pgbeat.moving.back.entry import Clocked, Crontab, Entry, Interval

IMPORTS = ("from datetime import timedelta", "", "from celery.schedules import crontab, solar", "")


def refusal(entry: Entry, app_timezone: str) -> Refused | None:
    """Return why code cannot declare an entry; None if it can."""
    zone = entry.times.timezone if isinstance(entry.times, Crontab) else app_timezone
    reasons = (
        (not entry.enabled, "it is paused, and an entry in code cannot be"),
        (bool(entry.bounds), f"it has {', '.join(entry.bounds)}, and an entry in code cannot"),
        (isinstance(entry.times, Clocked), "it runs once, and an entry in code cannot"),
        (zone != app_timezone, f"its zone is {zone}, and crontabs in code have the app's, {app_timezone}"),
    )
    return next((Refused(entry.name, reason) for applies, reason in reasons if applies), None)


def lines(entries: Sequence[Entry]) -> Iterator[str]:
    """Iterate over the lines of a module with these entries."""
    yield from IMPORTS
    yield "beat_schedule = {"
    for entry in entries:
        yield f"    {entry.name!r}: {{"
        yield f"        'task': {entry.task!r},"
        yield f"        'schedule': {_schedule(entry)},"
        given: dict[str, Any] = {"args": tuple(entry.args), "kwargs": entry.kwargs, "options": entry.options}
        yield from (f"        {key!r}: {value!r}," for key, value in given.items() if value)
        yield "    },"
    yield "}"


def _schedule(entry: Entry) -> str:
    if isinstance(entry.times, Crontab):
        return f"crontab({', '.join(f'{field}={text!r}' for field, text in entry.times.fields.items())})"
    if isinstance(entry.times, Interval):
        return f"timedelta(seconds={entry.times.length.total_seconds():.15g})"
    assert not isinstance(entry.times, Clocked)
    return f"solar({entry.times.event!r}, {entry.times.latitude}, {entry.times.longitude})"
