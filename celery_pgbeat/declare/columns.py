"""What each column of a definition may be given as, and what it is stored as.

The columns are those of the table in `celery_pgbeat/columns.py`, for `PgBeat.schedule`, `@beat.periodic_task`,
`beat_schedule`, `add` and `import` alike. Python refuses at least what Postgres would refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from functools import partial
from typing import Any, TypedDict
from zoneinfo import ZoneInfo

from celery_pgbeat.choices import AfterCondition, BlackoutAction, Catchup, Dst, Kind, OnError, OnLost, Overlap, Tracking
from celery_pgbeat.columns import DECLARED, PUBLIC, YEAR, Column
from celery_pgbeat.declare.duration import read_duration
from celery_pgbeat.declare.options import read_options
from celery_pgbeat.declare.texts import printable, read_one_line, read_queue, read_text, storable
from celery_pgbeat.declare.timing import zone_name
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.schedules.windows import too_much
from celery_pgbeat.texts.safe_text import in_short
from celery_pgbeat.texts.suggestions import did_you_mean

EARLIEST = datetime(1, 1, 2, tzinfo=timezone.utc)
LATEST = datetime(9999, 12, 30, tzinfo=timezone.utc)  # a driver cannot carry later instants
LONGEST_WAIT = 1_000 * YEAR  # until a pause ends; a driver could carry a later end
LONGEST_NAME = 200  # characters
MOST_UPSTREAM = 100  # periodic tasks after which one runs
MOST_TARGETS = 100  # users and roles that may pick up one task for people
LARGEST_INT = 2**31 - 1  # Postgres's int
# A pause is state: were it declared, each deployment would set it again.
PAUSE = ": leave it out. To pause the periodic task, call pause(), or celery-pgbeat pause NAME; no deployment ends that"
PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


class Columns(TypedDict, total=False):
    """The columns of a periodic task beside its name, its task and its schedule; omitted is the default.

    The table in docs/python.md describes each of them. Durations are a timedelta, a number of seconds, or
    text such as `30m` or `1h30m`. Instants are aware datetimes; a naive one is read in the row's time zone, which is
    the app's if it has none.

    This class is for type checkers: annotate with it what you pass on as `**columns`.

    Example:
        >>> careful: Columns = {"overlap": "skip", "max_run_time": "30m"}
    """

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    queue: str | None
    priority: int | None
    options: Mapping[str, Any]
    sensitive: bool
    timezone: str | tzinfo | None
    anchor: datetime | None
    dst: Dst
    start_at: datetime | None
    end_at: datetime | None
    max_runs: int | None
    jitter: str | timedelta | float | None
    overlap: Overlap
    catchup: Catchup
    catchup_window: str | timedelta | float | None
    catchup_limit: int | None
    min_gap: str | timedelta | float | None
    max_run_time: str | timedelta | float | None
    blackout: str | Sequence[str] | None
    blackout_action: BlackoutAction
    group_name: str | None
    submitter: str | None
    subject: str | None
    pause_after_failures: int | None
    on_lost: OnLost
    on_error: OnError
    tracking: Tracking
    kind: Kind
    target: str | Sequence[str] | None
    due_in: str | timedelta | float | None
    after: str | Sequence[str] | None
    after_condition: AfterCondition


class Changes(Columns, total=False):
    """What `PgBeat.update` may change: the columns, the task and the schedule. None is the column's default."""

    task: Any
    schedule: Any


def read_name(name: Any) -> str:
    """Return the name of a row if it can be one.

    Raises:
        InvalidPeriodicTask: it is not a text of 1 to 200 characters, or has a control character.
    """
    return read_group_name("name", name)


def read_group_name(field: str, name: Any) -> str:
    """Return the name of a group if it can be one.

    Raises:
        InvalidPeriodicTask: it is not a text of 1 to 200 characters, or has a control character.
    """
    text = printable(field, read_text(field, name))
    if len(text) > LONGEST_NAME:
        raise InvalidPeriodicTask(f"{field} has {len(text)} characters, not 1 to {LONGEST_NAME}")
    return text


def _priority(field: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}, not a whole number")
    if not 0 <= value <= 255:
        raise InvalidPeriodicTask(f"{field} {in_short(value)} is not in 0-255")
    return value


def read_count(field: str, value: Any) -> int:
    """Return a number from 1 to the largest of Postgres's int.

    Raises:
        InvalidPeriodicTask: it is not such a number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value > LARGEST_INT:
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}, not a whole number up to {LARGEST_INT}")
    if value < 1:
        raise InvalidPeriodicTask(f"{field} is {value}, not at least 1")
    return value


def read_switch(field: str, value: Any) -> bool:
    """Return a boolean.

    Raises:
        InvalidPeriodicTask: it is none.
    """
    if not isinstance(value, bool):
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}, not true or false")
    return value


def _timezone(field: str, value: Any) -> str:
    return zone_name(value) if isinstance(value, tzinfo) else read_text(field, value)


def read_choice(field: str, value: Any, choices: Collection[str]) -> str:
    """Return a text that is one of few.

    Raises:
        InvalidPeriodicTask: it is another one; names them, and the one that was probably meant.

    Example:
        >>> read_choice("on_lost", "rerun", ("give_up", "rerun"))
        'rerun'
    """
    if value not in choices:
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}, not one of {', '.join(choices)}{hint}")
    return str(value)


def read_instant(field: str, value: Any) -> datetime:
    """Return an instant that Postgres and its drivers can carry; a naive one is checked once its zone is known.

    Raises:
        InvalidPeriodicTask: it is not a datetime, or too far away.
    """
    if not isinstance(value, datetime):
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}, not a datetime")
    if value.tzinfo is not None and not EARLIEST <= value <= LATEST:
        raise InvalidPeriodicTask(f"{field} is {value.isoformat()}, outside the years 1 to 9999")
    return value


def read_end(field: str, value: Any, zone: str) -> dict[str, Any]:
    """Return when something ends, as `until`, or how many `seconds` from now; both are None if it does not.

    The database adds the seconds to its own clock. A naive datetime is read in the zone.

    Raises:
        InvalidPeriodicTask: it is neither a datetime nor a timedelta, or too far away.
    """
    if value is None:
        return {"until": None, "seconds": None}
    if isinstance(value, timedelta):
        if value > LONGEST_WAIT:
            raise InvalidPeriodicTask(f"{field} is {value} from now; it must be at most {LONGEST_WAIT.days} days")
        return {"until": None, "seconds": value.total_seconds()}
    if not isinstance(value, datetime):
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}, neither a datetime nor a timedelta")
    instant = read_instant(field, value)
    return {"until": instant.replace(tzinfo=instant.tzinfo or ZoneInfo(zone)), "seconds": None}


def _as_given(_field: str, value: Any) -> Any:
    return value


def read_duration_of(field: str, value: Any) -> timedelta:
    """Return the duration of a column.

    Raises:
        InvalidPeriodicTask: it is not a duration, or outside the column's range.
    """
    column, duration = PUBLIC[field], read_duration(field, value)
    if duration < timedelta(0) or not (duration or column.may_be_zero):
        least = "at least" if column.may_be_zero else "more than"
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}; it must be {least} 0")
    if duration > column.longest:
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}; it must be at most {column.longest.days} days")
    return duration


def _run_time(field: str, value: Any) -> timedelta | float:
    """Return a duration, or a share of the interval as a number."""
    share = PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if share is None:
        return read_duration_of(field, value)
    if not float(share.group(1)):
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}; it must be more than 0")
    return float(share.group(1)) / 100


def read_windows(field: str, value: Any) -> tuple[str, ...]:
    """Return the texts of blackout windows; whether they can be parsed is known once there is a zone.

    Raises:
        InvalidPeriodicTask: they are no texts, too many or too long.
    """
    texts = (value,) if isinstance(value, str) else value
    if isinstance(texts, bytes) or not isinstance(texts, Sequence):
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}, neither text nor a list of texts")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidPeriodicTask(f"{field}[{position}] is {in_short(text)}, not text")
        storable(field, text)
    reason = too_much(texts)
    if reason is not None:
        raise InvalidPeriodicTask(reason)
    return tuple(texts)


def read_targets(field: str, value: Any, most: int = MOST_TARGETS) -> tuple[str, ...]:
    """Return the names of users or roles; a text is one of them.

    Raises:
        InvalidPeriodicTask: they are no names of 1 to 200 characters, none or too many.
    """
    names = _names(field, value, most)
    if not names:
        raise InvalidPeriodicTask(f"{field} is empty: name a user or a role, or leave it out for any person")
    return names


def _upstream(field: str, value: Any) -> tuple[str, ...] | None:
    return _names(field, value, MOST_UPSTREAM) or None


def _names(field: str, value: Any, most: int) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if isinstance(names, bytes) or not isinstance(names, Sequence):
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}, neither text nor a list of texts")
    if len(names) > most:
        raise InvalidPeriodicTask(f"{field} has {len(names)} names, more than {most}")
    return tuple(read_group_name(f"{field}[{position}]", name) for position, name in enumerate(names))


# Columns whose type does not decide what they may be.
SPECIAL: dict[str, Callable[[str, Any], Any]] = {
    "args": _as_given,  # checked one by one in call.py
    "kwargs": _as_given,
    "queue": read_queue,
    "priority": _priority,
    "options": read_options,
    "timezone": _timezone,
    "max_run_time": _run_time,
    "blackout": read_windows,
    "group_name": read_group_name,
    "target": read_targets,
    "after": _upstream,
}
BY_TYPE: dict[Any, Callable[[str, Any], Any]] = {
    str: read_one_line,
    int: read_count,
    bool: read_switch,
    datetime: read_instant,
    timedelta: read_duration_of,
}


def _reader(column: Column) -> Callable[[str, Any], Any]:
    if column.choices:
        return partial(read_choice, choices=tuple(column.choices))
    return SPECIAL.get(column.name) or BY_TYPE[column.type]


GIVEN = {name: column for name, column in DECLARED.items() if name not in ("name", "task", "schedule", "managed_by")}
READERS = {name: _reader(column) for name, column in GIVEN.items()}
DEFAULTS = {name: column.default for name, column in GIVEN.items() if column.default is not None}


def read_columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every column with its value, the defaults included.

    Raises:
        InvalidPeriodicTask: there is no such column, or its value is wrong; names both.
    """
    for name in given:
        if name not in READERS:
            hint = PAUSE if name == "enabled" else did_you_mean(name, READERS)
            raise InvalidPeriodicTask(f"there is no column {in_short(name)}{hint}")
    values: dict[str, Any] = dict.fromkeys(READERS)
    values.update(DEFAULTS)
    for name, value in given.items():
        if value is not None:
            values[name] = READERS[name](name, value)
        elif name in DEFAULTS:
            raise InvalidPeriodicTask(f"{name} is None; leave it out for the default, {DEFAULTS[name]!r}")
    return values
