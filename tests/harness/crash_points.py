"""Where a process may be killed: before and after each step of a tick, and of a job's life in a worker."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.harness.faults import Fault

When = Literal["before", "after"]

_STORE = "celery_pgbeat.postgres.beat_queries:BeatQueries"
_REPORTS = "celery_pgbeat.postgres.worker_queries:WorkerQueries"

# What a beat does, in the words of the house.
TICK = {
    "mark_or_submit": f"{_STORE}.mark_or_submit",
    "submit": f"{_STORE}.submit",
    "publish": "celery_pgbeat.beat.send.publisher:Publisher.publish",
    "confirm": f"{_STORE}.confirm",
}
PLANNING = {
    "plan": f"{_STORE}.plan",
    "postpone": f"{_STORE}.postpone",
    "resume_due": f"{_STORE}.resume_due",
    "promote_buffered": f"{_STORE}.promote_buffered",
}
MENDING = {"recover": f"{_STORE}.recover", "judge": f"{_STORE}.judge", "give_back": f"{_STORE}.give_back"}
# What a worker reports about a job.
WORKER = {step: f"{_REPORTS}.{step}" for step in ("start", "finish_many", "retry")}

_ALL = {**TICK, **PLANNING, **MENDING, **WORKER}
# Of two beats that do the same at once, one may find nothing left to do: that is no place to die.
_MAY_DO_NOTHING = {*TICK, "plan", "postpone", "resume_due", "recover", "judge"} - {"publish"}


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """One instant of a step. It kills the process only once its trap is set."""

    when: When
    step: str

    def __str__(self) -> str:
        return f"{self.when} {self.step}"

    def fault(self, folder: Path) -> Fault:
        """Return the fault to build into a process; its trap lies in the folder."""
        answered = self.when == "after" and self.step in _MAY_DO_NOTHING
        return Fault(_ALL[self.step], "kill", self.when, call=0, trap=str(self._trap(folder)), answered=answered)

    def set_trap(self, folder: Path) -> None:
        """Let the next process die that comes here."""
        self._trap(folder).touch()

    def has_struck(self, folder: Path) -> bool:
        """Tell whether a process has died here since the trap was set."""
        return not self._trap(folder).exists()

    def _trap(self, folder: Path) -> Path:
        return folder / f"{self.when}-{self.step}.trap"


def around(steps: Iterable[str]) -> list[CrashPoint]:
    """List the instants before and after each of these steps."""
    sides: tuple[When, ...] = ("before", "after")
    return [CrashPoint(when, step) for step, when in itertools.product(steps, sides)]
