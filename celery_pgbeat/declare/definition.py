"""A definition: all declared columns of a row, checked before any SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from celery_pgbeat.columns import DECLARED, JSON_COLUMNS
from celery_pgbeat.declare.call import Call, arguments_text, json_text, keywords_text, task_of
from celery_pgbeat.declare.columns import (
    DEFAULTS,
    READERS,
    read_columns,
    read_duration_of,
    read_instant,
    read_name,
)
from celery_pgbeat.declare.options import IN_COLUMNS, read_options
from celery_pgbeat.declare.texts import read_one_line
from celery_pgbeat.declare.timing import Timing
from celery_pgbeat.declare.when import own_timing
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.schedules import Schedule, Windows, gap_below, parse, parse_windows, shortest_gap
from celery_pgbeat.schedules.wallclock.zones import zone_named
from celery_pgbeat.schedules.windows import names_in
from celery_pgbeat.texts.plain_json import Unreadable, check_json, read_json

if TYPE_CHECKING:
    from celery_pgbeat.settings import Settings

LARGEST_ARGUMENTS = 65_536  # bytes of JSON; a beat reads the whole row when it is due
LARGEST_OPTIONS = 65_536  # likewise
NOTHING_CALLED = Call("", (), {}, {})
# What is about a message, its worker or its end there: nothing of a task for people.
# The same as in SQL (`tests/interfaces/test_line_schema.py`).
OF_MESSAGES = ("queue", "priority", "options", "min_gap", "max_run_time", "on_lost", "on_error", "tracking")


@dataclass(frozen=True, slots=True, repr=False)
class Definition:
    """One row's definition: a checked value for each declared column, also read as an attribute; JSON as text."""

    values: Mapping[str, Any]

    def __getattr__(self, column: str) -> Any:
        if column in DECLARED:
            return self.values[column]
        raise AttributeError(column)

    def __repr__(self) -> str:
        return f"Definition({self.name!r})"

    def record(self) -> dict[str, Any]:
        """Return the columns as JSON values: instants in ISO 8601, UTC; durations in seconds."""
        return record_of(self.values)


def record_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declared columns of a row as JSON values: instants in ISO 8601, UTC; durations in seconds.

    JSON may be text or what a driver has made of it.
    """
    return {column: _json_value(column, row[column]) for column in DECLARED}


def define(
    name: Any,
    task: Any,
    schedule: Any,
    columns: Mapping[str, Any],
    settings: Settings,
    app_timezone: str | None = None,
    managed_by: str = "api",
) -> Definition:
    """Check a declaration and return it as a definition.

    Its zone is the one that the row or its schedule was given. Without one it stays NULL, and the first beat that plans
    the row writes its app's zone there.

    Args:
        name: the row's name.
        task: a task, its name, or a signature, whose arguments and options are used if `columns` has none.
        schedule: what `own_timing` takes, or None for a row without times of its own.
        columns: see `Columns`.
        settings: for the allowed tasks and the shortest interval.
        app_timezone: the zone that a row without one will get, for its naive instants; None if it is not known.
        managed_by: who declares this.

    Raises:
        InvalidPeriodicTask: a column, an argument or an option is wrong; names it and its value.
        InvalidSchedule: the schedule, a blackout window or the zone is wrong; names the field and the value.
    """
    row = read_name(name)
    values = read_columns(columns)
    call = _call(task, values["kind"], settings)
    _complete(values, call)
    _refuse_other_kind(values)
    given, timing = _zone_and_timing(schedule, values["timezone"])
    _settle_instants(values, given or app_timezone, timing)
    zone = given or app_timezone or "UTC"
    _refuse_wrong_windows(values["blackout"], zone)
    parsed = _parsed(row, timing, zone, values)
    if parsed is not None:
        _refuse_too_fast(parsed, settings)
    args, kwargs = read_arguments(values["args"], values["kwargs"], values["sensitive"])
    options = _options(values["options"])
    refusal = settings.refusal(call.task, values["queue"], options)
    if refusal is not None and values["kind"] != "human":
        raise InvalidPeriodicTask(f"{refusal}; allowed are {', '.join(settings.allowed_queues)}")
    values.update(
        name=row,
        task=call.task or None,
        args=args,
        kwargs=kwargs,
        options=options,
        schedule=timing.text if timing else None,
        timezone=given,
        max_run_time=_max_run_time(values["max_run_time"], parsed),
        managed_by=managed_by,
    )
    return Definition(values)


def _call(task: Any, kind: str, settings: Settings) -> Call:
    if kind == "human":
        call = NOTHING_CALLED if task is None else task_of(task)
        if call.task:
            read_one_line("task", call.task)
        return call
    if task is None:
        raise InvalidPeriodicTask("task is missing: give a Celery task, the name of one, or a signature")
    call = task_of(task)
    if not call.task:
        raise InvalidPeriodicTask("task is empty: give the name by which workers know the Celery task")
    if not settings.allows(read_one_line("task", call.task)):
        raise InvalidPeriodicTask(
            f"task {call.task!r} is not in pgbeat_allowed_tasks ({', '.join(settings.allowed_tasks)}): "
            f"add a pattern that matches it"
        )
    return call


def _complete(values: dict[str, Any], call: Call) -> None:
    """Complete the columns from a signature; the row's options win over the signature's."""
    values["args"] = call.args if values["args"] is None else values["args"]
    values["kwargs"] = call.kwargs if values["kwargs"] is None else values["kwargs"]
    options = {**read_options("options", call.options), **(values["options"] or {})}
    for column in IN_COLUMNS:
        moved = options.pop(column, None)
        if values[column] is None and moved is not None:
            values[column] = READERS[column](column, moved)
    values["options"] = dict(sorted(options.items()))


def _refuse_other_kind(values: Mapping[str, Any]) -> None:
    """Refuse what contradicts the kind of the row: no message is sent of a task for people."""
    if values["kind"] != "human":
        if values["target"] is not None:
            raise InvalidPeriodicTask("target is set, but kind is 'task': only a task for people has a target")
        if values["due_in"] is not None:
            raise InvalidPeriodicTask("due_in is set, but kind is 'task': only a task for people has one")
        return
    for name in OF_MESSAGES:
        if values[name] not in (None, {}, DEFAULTS.get(name)):
            raise InvalidPeriodicTask(
                f"{name} is set, but kind is 'human': no message is sent of a task for people, leave it out"
            )
    if values["overlap"] == "terminate_other":
        raise InvalidPeriodicTask(
            "overlap is 'terminate_other', but kind is 'human': nothing terminates a person, use cancel_other"
        )


def read_arguments(args: Any, kwargs: Any, sensitive: bool) -> tuple[str, str]:
    """Return the arguments of a call as JSON; errors quote nothing of sensitive ones.

    Raises:
        InvalidPeriodicTask: an argument cannot be written as JSON, or both are too large together.
    """
    positional = arguments_text(args, sensitive)
    keywords = keywords_text(kwargs, sensitive)
    check_json("args", positional)
    check_json("kwargs", keywords)
    size = len(positional.encode()) + len(keywords.encode())
    if size > LARGEST_ARGUMENTS:
        raise InvalidPeriodicTask(
            f"args and kwargs have {size} bytes together, more than {LARGEST_ARGUMENTS}: store the data elsewhere and "
            f"pass its key"
        )
    return positional, keywords


def _options(options: Mapping[str, Any]) -> str:
    text = json_text(options, "options")
    check_json("options", text)
    size = len(text.encode())
    if size > LARGEST_OPTIONS:
        raise InvalidPeriodicTask(
            f"options has {size} bytes, more than {LARGEST_OPTIONS}: store the data elsewhere and pass its key"
        )
    return text


def _zone_and_timing(schedule: Any, column: str | None) -> tuple[str | None, Timing | None]:
    """Return the zone that was given, None if none was, and the schedule."""
    timing = None if schedule is None else own_timing(schedule)
    zone = timing.timezone if timing and timing.timezone else column
    if zone is not None:
        zone_named(zone)
    if column is not None and zone != column:
        raise InvalidPeriodicTask(f"timezone is {column!r}, but the schedule says {zone!r}: give it once")
    return zone, timing


def _settle_instants(values: dict[str, Any], zone: str | None, timing: Timing | None) -> None:
    """Make the instants of the columns aware; naive ones are read in the row's zone."""
    if values["anchor"] is None and timing is not None and timing.anchor is not None:
        values["anchor"] = read_instant("anchor", timing.anchor)
    for column in ("anchor", "start_at", "end_at"):
        given = values[column]
        if given is not None and given.tzinfo is None:
            if zone is None:
                raise InvalidPeriodicTask(
                    f"{column} is {given.isoformat()}, without an offset, and the row has no timezone: it gets that of "
                    f"its app, which is not known here. Give it an offset, such as {given.isoformat()}Z, or the row a "
                    f"timezone"
                )
            values[column] = read_instant(column, given.replace(tzinfo=ZoneInfo(zone)))
    start, end = values["start_at"], values["end_at"]
    if start is not None and end is not None and end < start:
        raise InvalidPeriodicTask(f"end_at {end.isoformat()} is before start_at {start.isoformat()}")


def _refuse_wrong_windows(texts: tuple[str, ...] | None, zone: str) -> None:
    """Check the windows that are written out. Named windows are in the database, and can change at any time."""
    if texts:
        parse_windows(texts, zone, named=dict.fromkeys(names_in(texts), Windows(())))


def _parsed(name: str, timing: Timing | None, zone: str, values: Mapping[str, Any]) -> Schedule | None:
    if timing is None:
        return None
    return parse(timing.text, zone, name=name, dst=values["dst"], anchor=values["anchor"] or values["start_at"])


def _refuse_too_fast(schedule: Schedule, settings: Settings) -> None:
    gap = gap_below(schedule, settings.min_interval)
    if gap is not None:
        raise InvalidPeriodicTask(
            f"schedule {schedule.text!r} runs every {gap.total_seconds():g} s, and pgbeat_min_interval is "
            f"{settings.min_interval.total_seconds():g} s: make it slower, or lower that setting"
        )


def _max_run_time(given: timedelta | float | None, schedule: Schedule | None) -> timedelta | None:
    """Turn a share of the interval into a duration."""
    if given is None or isinstance(given, timedelta):
        return given
    gap = None if schedule is None else shortest_gap(schedule)
    if gap is None:
        raise InvalidPeriodicTask(
            f"max_run_time is {given * 100:g}%, and the schedule has no interval: give a duration"
        )
    return read_duration_of("max_run_time", gap * given)


def _json_value(column: str, value: Any) -> Any:
    if column in JSON_COLUMNS and isinstance(value, str) and not isinstance(value, Unreadable):
        return read_json(value)
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return list(value) if isinstance(value, tuple) else value
