"""One frame of `top`. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.cli.output.job_columns import node_in_short
from celery_pgbeat.cli.output.table import Column, lay_out
from celery_pgbeat.cli.output.terminal import EMPTY
from celery_pgbeat.cli.output.times import from_now, instant, rounded
from celery_pgbeat.cli.output.values import number, text

Row = Mapping[str, Any]
Line = tuple[str, str | None]

MOST_COUNTED = 1_000  # what is overdue is counted up to here
ORDER = ("pending", "sent", "running", "retrying", "buffered", "waiting", "error", "created")


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything that is shown.

    Attributes:
        where: the database and the schema.
        seconds: the time over which the rates are computed.
        activity: the counts and rates.
        nodes: the beats and workers.
        overdue: the rows that have been overdue longest.
        running: the jobs that have been running longest.
        problems: rows that cannot be planned.
        hint: how to leave, if it is on a screen.
    """

    where: str
    seconds: float
    activity: Row
    nodes: Sequence[Row]
    overdue: Sequence[Row]
    running: Sequence[Row]
    problems: Sequence[Row]
    hint: str = ""

    @property
    def now(self) -> datetime:
        """The database's time."""
        now: datetime = self.activity["now"]
        return now

    @property
    def under_way(self) -> dict[str, int]:
        """The number of jobs in each state that is not final."""
        found: dict[str, int] = json.loads(self.activity["under_way"])
        return {state: found[state] for state in ORDER if state in found}

    def line(self) -> str:
        """Return it as one line."""
        return f"{instant(self.now)}  {self._alive()}; {self._rates()}; of them {self._ends()}; {self._lateness()}"

    def table(self, width: int | None) -> list[Line]:
        """Return it as lines, each with its colour, for a terminal of this width; None for a pipe."""
        activity = self.activity
        return [
            (f"{instant(self.now)}{f'   {self.hint}' if self.hint else ''}", None),
            (self.where, None),
            (self._alive(), None if self._living("beat") else "red"),
            (f"jobs: {', '.join(f'{number} {state}' for state, number in self.under_way.items()) or 'none'}", None),
            (f"last {self.seconds:g} s: {self._rates()}{self._waits()}", None),
            (f"of them {self._ends()}", "red" if activity["failed"] else None),
            (self._lateness(), "red" if activity["late"] else None),
            *self._section("", self._node_columns(), self.nodes, width),
            *self._section("OVERDUE", self._overdue_columns(), self.overdue, width, "red"),
            *self._section("RUNNING LONGEST", self._running_columns(), self.running, width),
            *self._section("PROBLEMS", PROBLEM_COLUMNS, self.problems, width, "red"),
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        activity = self.activity
        return {
            "now": self.now,
            "seconds": self.seconds,
            "beats": self._living("beat"),
            "workers": self._living("worker"),
            "jobs": self.under_way,
            **{f"{what}_per_second": activity[what] / self.seconds for what in ("made", "started")},
            **{what: activity[what] for what in ("succeeded", "failed", "skipped", "start_median", "start_worst")},
            "late": activity["late"],
            "late_since": activity["late_since"],
            "next_run_at": activity["next_run_at"],
            "overdue": [dict(row) for row in self.overdue],
            "running": [dict(row) for row in self.running],
            "problems": [dict(row) for row in self.problems],
        }

    def _living(self, role: str) -> int:
        return sum(1 for node in self.nodes if node["role"] == role and node["alive"])

    def _alive(self) -> str:
        dead = sum(1 for node in self.nodes if not node["alive"])
        blind = sum(1 for node in self.nodes if node["role"] == "worker" and node["alive"] and not node["tracking"])
        return (
            f"{number(self._living('beat'), 'beat')}, {number(self._living('worker'), 'worker')}"
            f"{f', {dead} silent' if dead else ''}{f', {blind} without tracker' if blind else ''}"
        )

    def _rates(self) -> str:
        made, started = (self.activity[what] / self.seconds for what in ("made", "started"))
        return f"{made:.1f} jobs/s made, {started:.1f}/s started"

    def _waits(self) -> str:
        median, worst = self.activity["start_median"], self.activity["start_worst"]
        if median is None:
            return ""
        return f": after {median.total_seconds():.2f} s, 95 % after {worst.total_seconds():.2f} s"

    def _ends(self) -> str:
        return ", ".join(f"{self.activity[end]} {end}" for end in ("succeeded", "failed", "skipped"))

    def _lateness(self) -> str:
        since, coming = self.activity["late_since"], self.activity["next_run_at"]
        many = self.activity["late"]
        counted = f"{many:,}{'+' if many >= MOST_COUNTED else ''}"
        late = "nothing is overdue" if since is None else f"{counted} overdue, the first for {self._since(since)}"
        distance = "" if coming is None else f" ({from_now(coming, self.now)})"
        return f"{late}; next run {instant(coming)}{distance}"

    def _since(self, at: datetime | None) -> str:
        return rounded(None if at is None else max(self.now - at, timedelta(0)))

    def _node_columns(self) -> Sequence[Column]:
        return (
            Column("NODE", "role", lambda node: str(node["role"])),
            Column("HOST", "hostname", lambda node: text(node["hostname"]), whole=True),
            Column("PID", "pid", lambda node: str(node["pid"])),
            Column("STATE", "alive", lambda node: "alive" if node["alive"] else "silent"),
            Column("LAST SEEN", "last_seen_at", lambda node: f"{self._since(node['last_seen_at'])} ago"),
            Column("TRACKING", "tracking", _tracking, rank=1),
            Column("JOBS", "jobs", lambda node: str(node["jobs"])),
        )

    def _overdue_columns(self) -> Sequence[Column]:
        return (
            Column("NAME", "name", lambda row: text(row["name"]), whole=True),
            Column("LATE BY", "due_at", lambda row: self._since(row["due_at"])),
        )

    def _running_columns(self) -> Sequence[Column]:
        return (
            Column("NAME", "periodic_task", lambda row: text(row["periodic_task"]), whole=True),
            Column("FOR", "started_at", lambda row: self._since(row["started_at"])),
            Column(
                "WORKER",
                "worker",
                lambda row: text(row["worker"]),
                short=lambda row: node_in_short(row["worker"]),
                rank=1,
            ),
        )

    @staticmethod
    def _section(
        title: str, columns: Sequence[Column], rows: Sequence[Row], width: int | None, colour: str | None = None
    ) -> list[Line]:
        if not rows:
            return []
        table = lay_out(columns, rows, width)
        lines = [
            (line.plain, colour or _colour_of(row))
            for row, of_row in zip(rows, table.rows, strict=True)
            for line in of_row
        ]
        heading: list[Line] = [(title, None)] if title else []
        return [("", None), *heading, (table.heading.plain, None), *lines]


PROBLEM_COLUMNS = (
    Column("NAME", "name", lambda row: text(row["name"]), whole=True),
    Column("PROBLEM", "problem", lambda row: text(row["problem"]), beneath=True),
)


def _tracking(node: Row) -> str:
    return EMPTY if node["role"] == "beat" else "tracking" if node["tracking"] else "blind"


def _colour_of(row: Row) -> str | None:
    return None if row.get("alive", True) else "red"
