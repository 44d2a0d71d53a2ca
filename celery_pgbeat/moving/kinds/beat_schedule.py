"""`beat_schedule`, and `add_periodic_task`: the entries in an app's code become rows that people own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from celery_pgbeat.declare.entry import entry_of
from celery_pgbeat.declare.lazy import has_lazy
from celery_pgbeat.declare.when import own_timing
from celery_pgbeat.errors import InvalidSource
from celery_pgbeat.moving.answers import Answer, Refused, Taken, answered
from celery_pgbeat.moving.kind import NIGHTS, Kind, Request
from celery_pgbeat.moving.readers.pickles import refuse_untrusted, shelf_entries

STILL_IN_CODE = "Remove the entries from the code afterwards: until then beats warn that both declare the row."


def read(request: Request) -> Iterator[Answer]:
    """Iterate over the entries of the app's code, with their last runs from beat's schedule file if one is named."""
    if request.app is None:
        raise InvalidSource("beat-schedule is read from an app: name it, with -A")
    last_runs = {} if request.source is None else _last_runs(request.source, request.trust_pickle)
    request.app.loader.import_default_modules()
    request.app.finalize()
    deadline = request.app.conf.beat_cron_starting_deadline
    for name, given in (request.app.conf.beat_schedule or {}).items():
        yield answered(str(name), partial(answer_of, name, given, deadline, last_runs.get(name)))


def _last_runs(path: str, trusted: bool) -> dict[str, datetime]:
    refuse_untrusted(trusted, "the schedule file of Celery's beat")
    found = {name: getattr(entry, "last_run_at", None) for name, entry in shelf_entries(path).items()}
    return {name: last for name, last in found.items() if isinstance(last, datetime) and last.tzinfo is not None}


def answer_of(name: str, given: Any, deadline: float | None = None, last_run: datetime | None = None) -> Answer:
    """Return what becomes of an entry.

    Args:
        name: its key in `beat_schedule`.
        given: the entry.
        deadline: Celery's setting `beat_cron_starting_deadline`, in seconds.
        last_run: from which an interval is counted; None for the import.
    """
    entry = entry_of(name, given)
    columns = dict(entry.columns)
    timing = None if entry.schedule is None else own_timing(entry.schedule)
    if has_lazy(columns.get("args") or (), columns.get("kwargs") or {}):
        return Refused(name, "a BeatLazyFunc makes its arguments for each message, and a row cannot: leave it in code")
    if deadline is not None and timing is not None and timing.text.startswith("crontab:"):
        columns.setdefault("catchup_window", timedelta(seconds=deadline))
    if last_run is not None and timing is not None and timing.text.startswith("every") and timing.anchor is None:
        columns.setdefault("anchor", last_run)
    changes = ("run_on_start has no effect: the row is not new at the next start",) if entry.run_on_start else ()
    return Taken(name, entry.task, timing, columns, changes, last_run_at=last_run)


BEAT_SCHEDULE = Kind(
    "beat-schedule",
    read,
    (STILL_IN_CODE, NIGHTS),
)
