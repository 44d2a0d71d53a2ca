"""Groups with settings and named blackout windows, as lines of a file of definitions.

Periodic tasks refer to both by name. A line of either begins with the column that names it, where that of a periodic
task has `name`: `{"group": "exports", "max_active": 3}` or `{"window": "stocktaking", "windows": ["2026-12-31 P2D"]}`.
They have no manager. Whether a group is paused or finished is state, so it is in no line. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from celery_pgbeat.api.groups import read_group
from celery_pgbeat.declare.columns import read_group_name, read_windows
from celery_pgbeat.declare.texts import read_text
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.schedules import parse_windows
from celery_pgbeat.schedules.wallclock.zones import zone_named
from celery_pgbeat.texts.safe_text import in_short, json_lines
from celery_pgbeat.texts.suggestions import did_you_mean

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "group": ("max_active", "ordered", "waits_for", "pause_on_failure", "rate_limit"),
    "window": ("windows", "timezone"),
}


@dataclass(frozen=True, slots=True)
class Shared:
    """A group or a named window.

    Attributes:
        kind: `group` or `window`.
        name: unique among those of its kind.
        columns: its other columns, as JSON values.
    """

    kind: str
    name: str
    columns: Mapping[str, Any]

    @property
    def line(self) -> str:
        """It as one line of a file."""
        given = {column: value for column, value in self.columns.items() if value is not None}
        return json_lines({self.kind: self.name, **given})


def shared_of(row: Mapping[str, Any]) -> Shared:
    """Return what the statement `shared_rows` has read in one row."""
    return Shared(row["kind"], row["name"], {column: row[column] for column in COLUMNS[row["kind"]]})


def kind_of(given: Mapping[str, Any]) -> str | None:
    """Return `group` or `window` for an object that is a line of one; None for that of a periodic task."""
    return next((kind for kind in COLUMNS if kind in given and "name" not in given), None)


def read_shared(kind: str, given: Mapping[str, Any], timezone: str) -> Shared:
    """Check the object in a line, and return the group or the window that it defines.

    Args:
        kind: `group` or `window`.
        given: the object.
        timezone: the app's, in which the windows of a line without one are judged.

    Raises:
        InvalidPeriodicTask: a column is wrong or unknown; names it and its value.
        InvalidSchedule: a window or the zone is wrong; names the field and the value.

    Example:
        >>> read_shared("group", {"group": "exports", "max_active": 3}, "UTC").columns["max_active"]
        3
    """
    name = read_group_name(kind, given[kind])
    for column in given:
        if column != kind and column not in COLUMNS[kind]:
            known = did_you_mean(column, COLUMNS[kind])
            raise InvalidPeriodicTask(f"the {kind} {name!r} has no column {in_short(column)}{known}")
    if kind == "group":
        return Shared(kind, name, read_group(given))
    zone, texts = given.get("timezone"), given.get("windows")
    if zone is not None:
        zone_named(read_text("timezone", zone))
    if not isinstance(texts, list):
        raise InvalidPeriodicTask(f"windows is {in_short(texts)}, not a list of texts; [] never opens")
    parse_windows(read_windows("windows", texts), zone or timezone)
    return Shared(kind, name, {"windows": texts, "timezone": zone})
