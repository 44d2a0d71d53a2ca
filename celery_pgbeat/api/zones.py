"""The zone of a row: that in the text of its schedule, else its own, else the one of the app.

A row whose author gave no zone has none until the first beat that plans it writes its app's there. Before that, only a
PgBeat with an app knows which one it will be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celery_pgbeat.errors import UnknownTimezone
from celery_pgbeat.schedules import needs_zone, own_zone


def zone_of(row: Mapping[str, Any], app_timezone: str | None) -> str:
    """Return the zone in whose days and on whose clocks the row runs.

    Raises:
        UnknownTimezone: no beat has planned the row yet, and there is no app.
        InvalidSchedule: the row cannot be planned.
    """
    zone = (row["schedule"] and own_zone(row["schedule"])) or row["timezone"] or app_timezone
    if zone is None:
        raise _unknown(row["name"])
    return str(zone)


def refuse_unknown_zone(row: Mapping[str, Any], app_timezone: str | None) -> None:
    """Refuse to compute the times of a row whose zone is not known, if they depend on it.

    Raises:
        UnknownTimezone: they do.
        InvalidSchedule: the row cannot be planned.
    """
    if row["timezone"] is not None or app_timezone is not None or row["schedule"] is None:
        return
    if needs_zone(row["schedule"]) or row["blackout"]:
        raise _unknown(row["name"])


def _unknown(name: str) -> UnknownTimezone:
    return UnknownTimezone(
        f"{name!r} has no timezone yet: the first beat that plans it writes its app's there. Name the app "
        f"(PgBeat(app), -A), or set the row's timezone"
    )
