"""Whether a call matches its task, by Celery's own check, where the task is known.

Celery makes the check when it makes the message: a call that fails it is never sent. Here the check is made when
the call is declared. A task with `typing=False`, and one with an `apply_async` of its own (which may add arguments),
are not checked.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from celery_pgbeat.declare.definition import Definition
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.texts.redaction import MASK


def task_in(app: Any, name: str) -> Any:
    """Return the app's task of this name, None if it knows none; an app that is not finalised yet stays so."""
    if app is None:
        return None
    return (app.tasks if app.finalized else app._tasks).get(name)


def check_call(definition: Definition, app: Any) -> None:
    """Check the call of a definition, if the app knows its task.

    Raises:
        InvalidPeriodicTask: the task does not take these arguments; names what is wrong.
    """
    task = None if definition.kind == "human" else task_in(app, definition.task)
    if task is None:
        return
    args, kwargs = json.loads(definition.args), json.loads(definition.kwargs)
    wrong = mismatch(task, len(args), kwargs)
    if wrong is not None:
        raise InvalidPeriodicTask(
            f"the call does not match the task {definition.task!r}: {MASK if definition.sensitive else wrong}. Correct "
            f"args and kwargs; a task with typing=False is not checked"
        )


def mismatch(task: Any, positions: int, names: Collection[str]) -> str | None:
    """Return why a task does not take this number of arguments and keywords of these names; None if it does."""
    from celery import Task

    header = getattr(task, "__header__", None)
    has_own_send = type(task).apply_async is not Task.apply_async or "apply_async" in vars(task)
    if header is None or not task.typing or has_own_send:
        return None
    try:
        header(*[None] * positions, **dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return None
