"""Entries as commands for `redis-cli`, which write RedBeat's keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

from celery_pgbeat.moving.answers import Refused
from celery_pgbeat.moving.back.entry import Clocked, Crontab, Entry, Interval, Solar

PREFIX = "redbeat:"


def refusal(entry: Entry, app_timezone: str) -> Refused | None:
    """Return why RedBeat cannot have an entry; None if it can."""
    zone = entry.times.timezone if isinstance(entry.times, Crontab) else app_timezone
    typed = sorted(set(_types([entry.args, entry.kwargs])) - {"datetime"})
    reasons = (
        (bool(typed), f"its arguments have a {', '.join(map(repr, typed))}, which RedBeat cannot store"),
        (bool(entry.bounds), f"it has {', '.join(entry.bounds)}, and RedBeat does not"),
        (isinstance(entry.times, Clocked), "it runs once, and RedBeat has no such schedule"),
        (isinstance(entry.times, Solar), "it follows the sun, and RedBeat cannot store that"),
        (
            zone not in (None, app_timezone),
            f"its zone is {zone}, and RedBeat's crontabs have the app's, {app_timezone}",
        ),
    )
    return next((Refused(entry.name, reason) for applies, reason in reasons if applies), None)


def lines(entries: Sequence[Entry]) -> Iterator[str]:
    """Iterate over the commands."""
    for entry in entries:
        key = f"{PREFIX}{entry.name}"
        definition = {
            "name": entry.name,
            "task": entry.task,
            "args": _value(entry.args),
            "kwargs": _value(entry.kwargs),
            "options": entry.options,
            "schedule": _schedule(entry),
            "enabled": entry.enabled,
        }
        last = {"last_run_at": _instant(entry.last_run_at)}
        yield _command("HSET", key, "definition", json.dumps(definition), "meta", json.dumps(last))
        yield _command("ZADD", f"{PREFIX}:schedule", f"{entry.next_run_at.timestamp():.0f}", key)


def _schedule(entry: Entry) -> dict[str, Any]:
    if isinstance(entry.times, Interval):
        return {"__type__": "interval", "every": entry.times.length.total_seconds(), "relative": False}
    assert isinstance(entry.times, Crontab)
    return {"__type__": "crontab", **entry.times.fields}


def _types(value: Any) -> Iterator[str]:
    """Iterate over the types that Celery's JSON writes for values that JSON lacks, such as `datetime`."""
    if isinstance(value, dict):
        if "__type__" in value:
            yield str(value["__type__"])
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        yield from _types(one)


def _value(value: Any) -> Any:
    """Return an argument with its instants as RedBeat writes them."""
    if isinstance(value, list):
        return [_value(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("__type__") == "datetime":
        return _instant(datetime.fromisoformat(value["__value__"]))
    return {name: _value(one) for name, one in value.items()}


def _instant(at: datetime) -> dict[str, Any]:
    names = ("year", "month", "day", "hour", "minute", "second", "microsecond")
    utc = at.astimezone(timezone.utc)
    return {"__type__": "datetime", **{name: getattr(utc, name) for name in names}, "timezone": "UTC"}


def _command(*words: str) -> str:
    """Return a command as redis-cli reads it: each word in quotes, with the escapes of JSON's ASCII form."""
    return " ".join(f'"{_escaped(word)}"' for word in words)


def _escaped(word: str) -> str:
    quoted = word.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(character if " " <= character <= "~" else _bytes(character) for character in quoted)


def _bytes(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode())
