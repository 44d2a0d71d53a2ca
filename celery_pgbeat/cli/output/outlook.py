"""The next occurrences of a schedule, and the next blackout windows: as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

import click

from celery_pgbeat.cli.output.instant_table import print_instants
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.times import both_as_dict, in_utc, on_the_clock
from celery_pgbeat.cli.output.values import print_pairs
from celery_pgbeat.schedules import Schedule, Windows, dst_note, dst_skips
from celery_pgbeat.schedules.cron.croniter_comparison import Difference


@dataclass(frozen=True, slots=True)
class Outlook:
    """The next occurrences of a schedule."""

    schedule: Schedule
    grid: str  # where the grid of its interval begins, in words
    begin: datetime
    instants: list[datetime]
    notes: list[str | None]
    skipped: list[str]
    finished: bool
    difference: Difference | None  # from the reading of croniter

    @classmethod
    def of(
        cls, schedule: Schedule, grid: str, begin: datetime, count: int, difference: Difference | None = None
    ) -> Outlook:
        """Compute it from an instant on."""
        instants = list(schedule.occurrences(begin, limit=count))
        notes = [dst_note(schedule, instant) for instant in instants]
        finished = len(instants) < count
        skipped = list(dst_skips(schedule, begin, None if finished else instants[-1]))
        return cls(schedule, grid, begin, instants, notes, skipped, finished, difference)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        schedule = self.schedule
        return {
            "kind": schedule.kind,
            "text": schedule.text,
            "description": schedule.describe(),
            "timezone": schedule.timezone,
            "dst": schedule.dst,
            "anchor": schedule.anchor,
            "occurrences": [
                {**both_as_dict(instant, schedule.timezone), "note": note}
                for instant, note in zip(self.instants, self.notes, strict=True)
            ],
            "skipped": self.skipped,
            "finished": self.finished,
            "croniter": self._croniter_as_dict(),
        }

    def print(self) -> None:
        """Print it for people."""
        schedule = self.schedule
        meaning = [
            ("kind", schedule.kind),
            ("text", schedule.text.replace("\n", " ")),  # a recurrence set takes spaces as well
            ("description", schedule.describe()),
            ("timezone", schedule.timezone),
        ]
        if schedule.anchor is not None:
            of_a_row = "for a row: at its anchor, else at its start_at, else when its schedule was set"
            meaning.append(("grid", f"begins {self.grid}; {of_a_row}"))
        print_pairs(meaning)
        if self.instants:
            click.echo()
            print_instants(self.instants, schedule.timezone, None, self.notes)
        end = [self._end()] if self.finished else []
        _print_remarks([*self.skipped, *self._croniter_remarks(), *end])

    def _croniter_as_dict(self) -> dict[str, Any] | None:
        """Return how croniter reads the text; None if it is not cron."""
        if self.schedule.kind != "cron":
            return None
        difference, zone = self.difference, self.schedule.timezone
        if difference is None:
            return {"agrees": True}
        return {
            "agrees": False,
            "error": difference.error,
            "here": None if difference.ours is None else both_as_dict(difference.ours, zone),
            "there": None if difference.theirs is None else both_as_dict(difference.theirs, zone),
        }

    def _croniter_remarks(self) -> list[str]:
        difference = self.difference
        if difference is None:
            return []
        if difference.error is not None:
            return [f"croniter cannot read this text: {difference.error}"]
        here, there = (
            "no further run" if instant is None else on_the_clock(instant, self.schedule.timezone)
            for instant in (difference.ours, difference.theirs)
        )
        why = "docs/schedule-reference.md has the reasons"
        return [f"croniter would run at other instants, first {there} instead of {here}: {why}"]

    def _end(self) -> str:
        if self.instants:
            return "then it is finished: it never occurs again"
        last = self.schedule.previous(self.begin)
        if last is None:
            return "it never occurs"
        return f"finished: it never occurs again; the last time was {on_the_clock(last, self.schedule.timezone)}"


@dataclass(frozen=True, slots=True)
class WindowsOutlook:
    """The next blackout windows."""

    windows: Windows
    timezone: str
    stretches: list[tuple[datetime, datetime | None]]
    finished: bool

    @classmethod
    def of(cls, windows: Windows, timezone: str, begin: datetime, count: int) -> WindowsOutlook:
        """Compute it from an instant on."""
        stretches = list(islice(windows.stretches(begin), count))
        return cls(windows, timezone, stretches, finished=len(stretches) < count)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        occurrences = [
            {
                "opens": both_as_dict(opening, self.timezone),
                "closes": None if closing is None else both_as_dict(closing, self.timezone),
            }
            for opening, closing in self.stretches
        ]
        return {**self._meaning(), "occurrences": occurrences, "finished": self.finished}

    def print(self) -> None:
        """Print it for people."""
        print_pairs(list(self._meaning().items()))
        if self.stretches:
            click.echo()
            print_table(self._columns(), self.stretches)
        then = "then they are finished" if self.stretches else "finished"
        _print_remarks([f"{then}: they never open again"] if self.finished else [])

    def _columns(self) -> list[Column]:
        clocks: dict[str, Callable[[datetime], str]] = {self.timezone: partial(on_the_clock, zone=self.timezone)}
        if self.timezone != "UTC":
            clocks["UTC"] = in_utc
        columns = []
        for rank, (zone, clock) in enumerate(clocks.items()):
            columns += [
                Column(f"OPENS, {zone}", "opens", partial(_edge, clock, 0), rank=rank),
                Column(f"CLOSES, {zone}", "closes", partial(_edge, clock, 1), rank=rank),
            ]
        return columns

    def _meaning(self) -> dict[str, str]:
        return {
            "kind": "blackout windows",
            "text": self.windows.text,
            "description": self.windows.describe(),
            "timezone": self.timezone,
        }


def _edge(clock: Callable[[datetime], str], which: int, stretch: tuple[datetime, datetime | None]) -> str:
    edge = stretch[which]
    return "never" if edge is None else clock(edge)


def _print_remarks(remarks: list[str]) -> None:
    if remarks:
        click.echo()
    for remark in remarks:
        click.echo(f"{remark[0].upper()}{remark[1:]}.")
