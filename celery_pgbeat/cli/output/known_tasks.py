"""The tasks that the app of the command line knows, and a warning of those that it does not."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from celery_pgbeat.cli.output.warning import warn
from celery_pgbeat.texts.suggestions import did_you_mean

MOST_NAMED = 10  # unknown tasks that are named; the others are counted


def tasks_of(app: Any) -> Collection[str]:
    """Return the names of the tasks that an app knows when all its modules are imported; none without an app."""
    if app is None:
        return ()
    try:
        app.loader.import_default_modules()
        return list(app.tasks)
    except Exception as error:  # noqa: BLE001  a user's module may raise anything; the row does not need it
        warn(f"The tasks of the app cannot be imported, so the call is not checked: {type(error).__name__}: {error}")
        return ()


def warn_of_unknown(tasks: Iterable[str], known: Collection[str]) -> None:
    """Print a warning for each task that is not among the known ones; nothing if none is known."""
    unknown = sorted(set(tasks) - set(known)) if known else []
    for task in unknown[:MOST_NAMED]:
        guess = did_you_mean(task, known) or "."
        warn(f"The app knows no task {task!r}, and a worker that does not either drops the job{guess}")
    if len(unknown) > MOST_NAMED:
        warn(f"The app knows {len(unknown) - MOST_NAMED:,} more of the tasks not: `celery-pgbeat doctor` names them.")
