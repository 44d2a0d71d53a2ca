"""A change of some columns of a row, checked as the definition that it makes of the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from celery_pgbeat.columns import PeriodicTask
from celery_pgbeat.declare.call import task_of
from celery_pgbeat.declare.columns import DEFAULTS, GIVEN
from celery_pgbeat.declare.definition import define
from celery_pgbeat.declare.timing import Timing
from celery_pgbeat.declare.when import own_timing
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.texts.safe_text import in_short
from celery_pgbeat.texts.suggestions import did_you_mean

if TYPE_CHECKING:
    from celery_pgbeat.settings import Settings

CHANGEABLE = ("task", "schedule", *GIVEN)


def changes_of(
    row: PeriodicTask, given: Mapping[str, Any], settings: Settings, app_timezone: str | None = None
) -> dict[str, Any]:
    """Return the columns that a change names as JSON values, checked together with those that stay.

    Args:
        row: as it is now.
        given: by column, what `Columns` takes, or `task` and `schedule`. None is the column's default. A schedule
            brings its zone and its anchor along, if it has any.
        settings: for the allowed tasks and the shortest interval.
        app_timezone: the zone that a row without one will get, for its naive instants; None if it is not known.

    Raises:
        InvalidPeriodicTask: there is no such column, or its value is wrong; names both.
        InvalidSchedule: the schedule, a blackout window or the zone is wrong; names the field and the value.
    """
    for column in given:
        if column not in CHANGEABLE:
            raise InvalidPeriodicTask(
                f"there is no column {in_short(column)} to change{did_you_mean(column, CHANGEABLE)}"
            )
    timing = own_timing(given["schedule"]) if given.get("schedule") is not None else Timing("")
    brought = {name for name in ("timezone", "anchor") if getattr(timing, name) is not None and name not in given}
    kept = {name: getattr(row, name) for name in GIVEN if name not in given and name not in brought}
    columns = {name: value for name, value in {**kept, **given}.items() if name in GIVEN}
    definition = define(
        row.name,
        _task_of(given["task"]) if "task" in given else row.task,
        given.get("schedule", row.schedule),
        {name: value for name, value in columns.items() if value is not None or name not in DEFAULTS},
        settings,
        app_timezone,
        row.managed_by,
    )
    record = definition.record()
    return {name: record[name] for name in CHANGEABLE if name in given or name in brought}


def _task_of(task: Any) -> Any:
    if task is not None and any(task_of(task)[1:]):
        raise InvalidPeriodicTask(
            "task is a signature with arguments or options: give them as args, kwargs and options"
        )
    return task
