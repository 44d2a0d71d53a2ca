"""The state of the demo at one moment, as a table and as a line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from celery_pgbeat.cli.output.table import Column, lay_out
from celery_pgbeat.cli.output.terminal import EMPTY

COLOURS = {"killed": "red", "frozen": "yellow"}
BEAT = "{:<8} pid {:<8} {:<8} {:>6} sent"


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

    def table(self, width: int) -> list[tuple[str, str | None]]:
        """Return it as lines, each with its colour, for a terminal of this width."""
        beats = [
            (BEAT.format(beat.name, beat.pid, beat.state, beat.sent), COLOURS.get(beat.state)) for beat in self.beats
        ]
        table = lay_out(TICKS, self.ticks, width)
        ticks = [(line.plain, None) for lines in table.rows for line in lines]
        return [("", None), *beats, (self._counts(), None), ("", None), (table.heading.plain, None), *ticks]

    def _counts(self) -> str:
        return f"due {self.due}, started {self.started}, skipped {self.skipped}"


def stamp(now: datetime, passed: timedelta) -> str:
    """Return the beginning of a line: the database's time, and the seconds since the counting began."""
    return f"{now:%H:%M:%S}Z  {passed.total_seconds():4.1f} s"


def _instant(tick: Tick) -> str:
    return EMPTY if tick.scheduled_for is None else f"{tick.scheduled_for:%H:%M:%S.%f}"[:12] + "Z"


def _started(tick: Tick) -> str:
    return EMPTY if tick.late is None else f"+{tick.late.total_seconds():.2f} s"


TICKS = (
    Column("PERIODIC TASK", "name", whole=True),
    Column("MADE BY", "made_by"),
    Column("SCHEDULE", "schedule", lambda tick: tick.schedule or EMPTY, rank=3, least=14),
    Column("LATEST TICK", "scheduled_for", _instant),
    Column("SENT BY", "sent_by", lambda tick: tick.sent_by or EMPTY),
    Column("STATE", "state", lambda tick: tick.state or EMPTY, least=9),
    Column("STARTED", "late", _started),
)
