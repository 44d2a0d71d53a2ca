"""The state of the demo at one moment, as a table and as a line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

COLOURS = {"killed": "red", "frozen": "yellow"}
BEAT = "{:<8} pid {:<8} {:<8} {:>6} sent"
TICK = "{:<16} {:<7} {:<31} {:<14} {:<8} {:<10} {:>9}"


@dataclass(frozen=True, slots=True)
class Beat:
    """A beat, and how many of the counted jobs it has sent, restarts included."""

    name: str
    pid: int
    state: str
    sent: int


@dataclass(frozen=True, slots=True)
class Tick:
    """A periodic task and its latest job: the beat that sent it, its state, and how late it started."""

    name: str
    made_by: str
    schedule: str
    scheduled_for: datetime | None
    sent_by: str
    state: str
    late: timedelta | None


@dataclass(frozen=True, slots=True)
class View:
    """Everything that is shown."""

    now: datetime
    passed: timedelta
    due: int
    started: int
    skipped: int
    beats: Sequence[Beat]
    ticks: Sequence[Tick]

    def line(self) -> str:
        """Return it as one line."""
        sent = ", ".join(
            f"{beat.name} {beat.sent}{'' if beat.state == 'running' else f' ({beat.state})'}" for beat in self.beats
        )
        return f"{stamp(self.now, self.passed)}  {self._counts()}; sent by {sent}"

    def table(self, width: int) -> list[tuple[str, str | None]]:  # noqa: ARG002  the screen cuts its lines
        """Return it as lines, each with its colour."""
        beats = [
            (BEAT.format(beat.name, beat.pid, beat.state, beat.sent), COLOURS.get(beat.state)) for beat in self.beats
        ]
        ticks = [(_tick(tick), None) for tick in self.ticks]
        heading = TICK.format("PERIODIC TASK", "MADE BY", "SCHEDULE", "LATEST TICK", "SENT BY", "STATE", "STARTED")
        return [("", None), *beats, (self._counts(), None), ("", None), (heading, None), *ticks]

    def _counts(self) -> str:
        return f"due {self.due}, started {self.started}, skipped {self.skipped}"


def stamp(now: datetime, passed: timedelta) -> str:
    """Return the beginning of a line: the database's time, and the seconds since the counting began."""
    return f"{now:%H:%M:%S}Z  {passed.total_seconds():4.1f} s"


def _tick(tick: Tick) -> str:
    instant = "" if tick.scheduled_for is None else f"{tick.scheduled_for:%H:%M:%S.%f}"[:12] + "Z"
    late = "" if tick.late is None else f"+{tick.late.total_seconds():.2f} s"
    return TICK.format(
        tick.name[:16], tick.made_by, tick.schedule[:31], instant, tick.sent_by, tick.state, late
    ).rstrip()
