"""Checks many definitions before any is stored, and names every wrong one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from celery_pgbeat.declare import Definition
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule


class Batch:
    """Collects the definitions of `schedule_many`: their records, their options, and the errors."""

    def __init__(self, define: Callable[..., Definition]) -> None:
        self._define = define
        self._wrong: list[str] = []
        self._defined: dict[str, dict[str, Any]] = {}
        self.keeping_next_run: list[str] = []
        self.running_first: list[str] = []
        self.taking_over: list[str] = []

    @property
    def records(self) -> list[dict[str, Any]]:
        """The definitions as records."""
        return list(self._defined.values())

    def add(self, given: Mapping[str, Any]) -> None:
        """Check one definition, a dict of what `schedule` takes."""
        rest = dict(given)
        name, task, schedule = rest.pop("name", None), rest.pop("task", None), rest.pop("schedule", None)
        managed_by = rest.pop("managed_by", "api")
        keep_next_run, run_on_start = rest.pop("keep_next_run", False), rest.pop("run_on_start", False)
        take_over = rest.pop("take_over", False)
        try:
            definition = self._define(name, task, schedule, rest, managed_by)
            if definition.name in self._defined:
                raise InvalidPeriodicTask("declared twice in this batch")
        except (InvalidPeriodicTask, InvalidSchedule) as error:
            self._wrong.append(f"{name!r}: {error}")
            return
        self._defined[definition.name] = definition.record()
        if keep_next_run:
            self.keeping_next_run.append(definition.name)
        if run_on_start:
            self.running_first.append(definition.name)
        if take_over:
            self.taking_over.append(definition.name)

    def refuse_if_wrong(self) -> None:
        """If a definition is wrong, raise InvalidPeriodicTask, which names each wrong one and why."""
        if self._wrong:
            total = len(self._defined) + len(self._wrong)
            raise InvalidPeriodicTask(
                "\n  ".join([f"{len(self._wrong)} of {total} periodic tasks are wrong, none was stored:", *self._wrong])
            )
