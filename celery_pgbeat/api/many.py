"""What the API does with many periodic tasks in one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any
from uuid import UUID

from celery_pgbeat.declare.call import json_text
from celery_pgbeat.declare.columns import read_end
from celery_pgbeat.declare.definition import read_arguments
from celery_pgbeat.errors import InvalidPeriodicTask, UnknownPeriodicTask
from celery_pgbeat.postgres.api_queries import ApiQueries, Row
from celery_pgbeat.texts.redaction import MASK
from celery_pgbeat.texts.safe_text import type_of
from celery_pgbeat.texts.suggestions import question

KEYS_OF_A_JOB = ("name", "args", "kwargs")


def run_for(
    queries: ApiQueries, statement: str, names: Iterable[str], missing_ok: bool, connection: Any, **parameters: Any
) -> list[Row]:
    """Run a statement for these periodic tasks; return its rows by name.

    Raises:
        UnknownPeriodicTask: one does not exist, and `missing_ok` is not set; nothing was done.
        TypeError: `names` is one text.
    """
    meant = wanted(queries, names, missing_ok, connection)
    return sorted(queries.run(statement, connection, names=meant, **parameters), key=itemgetter("name"))


def trigger(
    queries: ApiQueries, names: Iterable[str], force: bool, missing_ok: bool, connection: Any
) -> dict[str, UUID | None]:
    """Start a job of each of these periodic tasks; return its id by the name, None where a job is in the way."""
    rows = queries.trigger_many(wanted(queries, names, missing_ok, connection), force, connection)
    return {row["name"]: None if row["job"] is None else UUID(str(row["job"])) for row in rows}


def trigger_jobs(
    queries: ApiQueries,
    jobs: Iterable[Mapping[str, Any]],
    force: bool,
    is_sensitive: Callable[[str], bool],
    connection: Any,
) -> list[UUID]:
    """Start these jobs, each with arguments of its own; return their ids, in their order.

    Args:
        is_sensitive: whether a row is; asked only if the arguments of one of its jobs are wrong.

    Raises:
        InvalidPeriodicTask: a job is wrong; names it by its index.
        TypeError: `jobs` is no list of them.
    """
    if isinstance(jobs, (str, bytes, Mapping)):
        raise TypeError(f"jobs is {type_of(jobs)}: give a list of dicts, each with name, args and kwargs")
    texts = [_job_text(f"jobs[{index}]", job, is_sensitive) for index, job in enumerate(jobs)]
    rows = queries.run("trigger_jobs", connection, jobs=f"[{', '.join(texts)}]", force=force)
    return [UUID(str(row["job"])) for row in rows]


def _job_text(place: str, job: Mapping[str, Any], is_sensitive: Callable[[str], bool]) -> str:
    """Return a job as a JSON object; errors call it by its place, and quote nothing of a sensitive row."""
    if not isinstance(job, Mapping):
        raise InvalidPeriodicTask(f"{place} is {type_of(job)}, not a dict with name, args and kwargs")
    name, args, kwargs = job.get("name"), job.get("args"), job.get("kwargs")
    if not isinstance(name, str):
        raise InvalidPeriodicTask(f"{place} has no name of a periodic task: give name, and args and kwargs if need be")
    unknown = [key for key in job if key not in KEYS_OF_A_JOB]
    if unknown:
        shown = MASK if is_sensitive(name) else repr(unknown[0])
        raise InvalidPeriodicTask(f"{place}: has {shown}, which is none of name, args and kwargs")
    parts = [f'"name": {json_text(name, f"{place}: name")}']
    if args is not None or kwargs is not None:
        given = args if args is not None else (), kwargs if kwargs is not None else {}
        try:
            positional, keywords = read_arguments(*given, sensitive=True)
        except InvalidPeriodicTask:
            try:
                read_arguments(*given, sensitive=is_sensitive(name))
            except InvalidPeriodicTask as error:
                raise InvalidPeriodicTask(f"{place}: {error}") from None
            raise
        parts += [] if args is None else [f'"args": {positional}']
        parts += [] if kwargs is None else [f'"kwargs": {keywords}']
    return f"{{{', '.join(parts)}}}"


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


def wanted(queries: ApiQueries, names: Iterable[str], missing_ok: bool, connection: Any) -> list[str]:
    """Return each name once; all have to exist, unless `missing_ok` is set."""
    if isinstance(names, str):
        raise TypeError(f"names is {names!r}: give a list of names")
    given = list(names)
    for one in given:
        if isinstance(one, Mapping):
            raise TypeError(f"names has {type_of(one)}: jobs with arguments of their own are jobs=[…] of trigger_many")
    meant = list(dict.fromkeys(given))
    if not missing_ok:
        known = {row["name"] for row in queries.run("names_meant", connection, names=meant, patterns=[])}
        refuse_unknown(
            [name for name in meant if name not in known], lambda name: queries.similar_name(name, connection)
        )
    return meant


def refuse_unknown(unknown: Sequence[str], similar_name: Callable[[str], str | None]) -> None:
    """Raise UnknownPeriodicTask for the first of these names, with a suggestion; nothing if there is none."""
    if unknown:
        meant = similar_name(unknown[0])
        more = f" {len(unknown) - 1} more names are unknown." if len(unknown) > 1 else ""
        raise UnknownPeriodicTask(f"No periodic task is named {unknown[0]!r}{question(meant) if meant else '.'}{more}")
