"""Declarations of `@beat.periodic_task`: kept on the app until a beat reads them, and not evaluated before."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from celery_pgbeat.errors import InvalidPeriodicTask

ATTRIBUTE = "pgbeat_declarations"


@dataclass(frozen=True, slots=True)
class Declaration:
    """One decorated task. It may be a proxy that Celery has not evaluated yet; only `task_in` evaluates it."""

    target: Any
    schedule: Any
    name: str | None
    columns: Mapping[str, Any]
    run_on_start: bool

    def task_in(self, app: Any) -> str:
        """Return the task's name; the app must be finalised.

        Raises:
            InvalidPeriodicTask: it is a plain function that is no task.
        """
        if type(self.target) is not FunctionType:
            return str(self.target.name)
        for name, task in app.tasks.items():
            wrapped = getattr(task, "__wrapped__", None)
            if _made_of(getattr(wrapped, "__func__", wrapped), self.target):
                return str(name)
        raise InvalidPeriodicTask(
            f"{self.target.__module__}.{self.target.__qualname__} is a plain function: put @beat.periodic_task above "
            f"@app.task"
        )


def declarations_of(app: Any) -> list[Declaration]:
    """Return the app's list of declarations, to read it or to append to it."""
    declarations: list[Declaration] = vars(app).setdefault(ATTRIBUTE, [])
    return declarations


def _made_of(run: Any, function: FunctionType) -> bool:
    return inspect.unwrap(run, stop=lambda wrapper: wrapper is function) is function
