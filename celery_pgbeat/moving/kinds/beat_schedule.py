"""`beat_schedule`, and `add_periodic_task`: the entries in an app's code become rows that people own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from celery_pgbeat.declare.entry import entry_of
from celery_pgbeat.declare.lazy import has_lazy
from celery_pgbeat.declare.when import own_timing
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.moving.answers import Answer, Refused, Taken
from celery_pgbeat.moving.kind import NIGHTS, Kind, Request

STILL_IN_CODE = "Remove the entries from the code afterwards: until then beats warn that both declare the row."


def read(request: Request) -> Iterator[Answer]:
    """Iterate over the entries of the app's code."""
    if request.app is None:
        raise InvalidPeriodicTask("beat-schedule is read from an app: name it, with -A")
    request.app.loader.import_default_modules()
    request.app.finalize()
    deadline = request.app.conf.beat_cron_starting_deadline
    for name, given in (request.app.conf.beat_schedule or {}).items():
        yield answer_of(name, given, deadline)


def answer_of(name: str, given: Any, deadline: float | None = None) -> Answer:
    """Return what becomes of an entry.

    Args:
        name: its key in `beat_schedule`.
        given: the entry.
        deadline: Celery's setting `beat_cron_starting_deadline`, in seconds.
    """
    try:
        entry = entry_of(name, given)
        columns = dict(entry.columns)
        timing = None if entry.schedule is None else own_timing(entry.schedule)
    except (InvalidPeriodicTask, InvalidSchedule) as error:
        return Refused(str(name), str(error))
    if has_lazy(columns.get("args") or (), columns.get("kwargs") or {}):
        return Refused(name, "a BeatLazyFunc makes its arguments for each message, and a row cannot: leave it in code")
    if deadline is not None and timing is not None and timing.text.startswith("crontab:"):
        columns.setdefault("catchup_window", timedelta(seconds=deadline))
    changes = ("run_on_start has no effect: the row is not new at the next start",) if entry.run_on_start else ()
    return Taken(name, entry.task, timing, columns, changes)


BEAT_SCHEDULE = Kind("beat-schedule", "none: the entries of the app of -A", read, (STILL_IN_CODE, NIGHTS))
