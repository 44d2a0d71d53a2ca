"""What the API does with many periodic tasks in one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any
from uuid import UUID

from celery_pgbeat.declare.columns import read_end
from celery_pgbeat.errors import InvalidPeriodicTask, UnknownPeriodicTask
from celery_pgbeat.postgres.api_queries import ApiQueries, Row
from celery_pgbeat.suggestions import question


def run_for(
    queries: ApiQueries, statement: str, names: Iterable[str], missing_ok: bool, connection: Any, **parameters: Any
) -> list[Row]:
    """Run a statement for these periodic tasks; return its rows by name.

    Raises:
        UnknownPeriodicTask: one does not exist, and `missing_ok` is not set; nothing was done.
        TypeError: `names` is one text.
    """
    wanted = _wanted(queries, names, missing_ok, connection)
    return sorted(queries.run(statement, connection, names=wanted, **parameters), key=itemgetter("name"))


def trigger(
    queries: ApiQueries, names: Iterable[str], force: bool, missing_ok: bool, connection: Any
) -> dict[str, UUID | None]:
    """Start a job of each of these periodic tasks; return its id by the name, None where a job is in the way."""
    rows = queries.trigger_many(_wanted(queries, names, missing_ok, connection), force, connection)
    return {row["name"]: None if row["job"] is None else UUID(str(row["job"])) for row in rows}


def pause(
    queries: ApiQueries,
    names: Iterable[str],
    reason: str | None,
    until: datetime | timedelta | None,
    zone: str,
    missing_ok: bool,
    connection: Any,
) -> list[str]:
    """Pause these periodic tasks; return the names of those that existed.

    Args:
        zone: in which a naive `until` is read.

    Raises:
        InvalidPeriodicTask: `until` is in the past, by the clock of the database.
    """
    end = read_end("until", until, zone)
    at, seconds = end["until"], end["seconds"]
    if (seconds is not None and seconds <= 0) or (at is not None and at <= queries.run("clock", connection)[0]["now"]):
        given = until if at is None else at.isoformat()
        raise InvalidPeriodicTask(
            f"until is {given}, which is in the past. Give a later time, or none: then the pause lasts until it is "
            "resumed."
        )
    rows = run_for(queries, "pause_many", names, missing_ok, connection, reason=reason, **end)
    return [row["name"] for row in rows]


def _wanted(queries: ApiQueries, names: Iterable[str], missing_ok: bool, connection: Any) -> list[str]:
    """Return each name once; all have to exist, unless `missing_ok` is set."""
    if isinstance(names, str):
        raise TypeError(f"names is {names!r}: give a list of names")
    wanted = list(dict.fromkeys(names))
    if not missing_ok:
        known = {row["name"] for row in queries.run("names_meant", connection, names=wanted, patterns=[])}
        refuse_unknown(
            [name for name in wanted if name not in known], lambda name: queries.similar_name(name, connection)
        )
    return wanted


def refuse_unknown(unknown: Sequence[str], similar_name: Callable[[str], str | None]) -> None:
    """Raise UnknownPeriodicTask for the first of these names, with a suggestion; nothing if there is none."""
    if unknown:
        meant = similar_name(unknown[0])
        more = f" {len(unknown) - 1} more names are unknown." if len(unknown) > 1 else ""
        raise UnknownPeriodicTask(f"No periodic task is named {unknown[0]!r}{question(meant) if meant else '.'}{more}")
