"""One frame of `top`. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from celery_pgbeat.cli.output import instant, number, text

Row = Mapping[str, Any]
Line = tuple[str, str | None]

NODE = "{:<7} {:<24} {:>8} {:<6} {:>10} {:<9} {:>6}"
NODE_HEADINGS = ("NODE", "HOST", "PID", "STATE", "LAST SEEN", "TRACKING", "JOBS")
TASK = "{:<40} {:>12}  {}"
ORDER = ("pending", "sent", "running", "retrying", "buffered")


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything that is shown; `seconds` is the time over which the rates are computed."""

    where: str
    seconds: float
    activity: Row
    nodes: Sequence[Row]
    overdue: Sequence[Row]
    running: Sequence[Row]
    problems: Sequence[Row]

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
        return f"{instant(self.now)}  {self._alive()}; {self._rates()}; {self._lateness()}"

    def table(self) -> list[Line]:
        """Return it as lines, each with its colour."""
        activity = self.activity
        started = activity["start_median"]
        waits = (
            ""
            if started is None
            else f"; started after {started.total_seconds():.2f} s, 95 % after "
            f"{activity['start_worst'].total_seconds():.2f} s"
        )
        late = "red" if activity["late"] else None
        return [
            (f"{instant(self.now)}  {self.where}", None),
            (self._alive(), None if self._living("beat") else "red"),
            (f"jobs: {', '.join(f'{number} {state}' for state, number in self.under_way.items()) or 'none'}", None),
            (f"last {self.seconds:g} s: {self._rates()}{waits}", "red" if activity["failed"] else None),
            (self._lateness(), late),
            *self._section("NODES", NODE.format(*NODE_HEADINGS), [self._node(node) for node in self.nodes]),
            *self._section("OVERDUE", None, [(self._overdue(row), "red") for row in self.overdue]),
            *self._section("RUNNING LONGEST", None, [(self._running(row), None) for row in self.running]),
            *self._section("PROBLEMS", None, [(self._problem(row), "red") for row in self.problems]),
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
        ends = ", ".join(f"{self.activity[end]} {end}" for end in ("succeeded", "failed", "skipped"))
        return f"{made:.1f} jobs/s made, {started:.1f}/s started; of them {ends}"

    def _lateness(self) -> str:
        since, coming = self.activity["late_since"], self.activity["next_run_at"]
        late = (
            "nothing is late" if since is None else f"{self.activity['late']} late, the first for {self._since(since)}"
        )
        return f"{late}; next run {instant(coming)}"

    def _since(self, at: datetime | None) -> str:
        return "-" if at is None else f"{max((self.now - at).total_seconds(), 0):.0f} s"

    def _node(self, node: Row) -> Line:
        state = "alive" if node["alive"] else "silent"
        tracking = "" if node["role"] == "beat" else "tracking" if node["tracking"] else "blind"
        seen = self._since(node["last_seen_at"])
        cells = (node["role"], text(node["hostname"])[:24], node["pid"], state, f"{seen} ago", tracking, node["jobs"])
        return NODE.format(*cells), None if node["alive"] else "red"

    def _overdue(self, row: Row) -> str:
        return TASK.format(
            text(row["name"])[:40], self._since(row["next_run_at"]), f"marked by {text(row['marked_by'])}"
        )

    def _running(self, row: Row) -> str:
        return TASK.format(text(row["periodic_task"])[:40], self._since(row["started_at"]), text(row["worker"]))

    @staticmethod
    def _problem(row: Row) -> str:
        return TASK.format(text(row["name"])[:40], "", text(row["problem"]))

    @staticmethod
    def _section(title: str, heading: str | None, lines: Sequence[Line]) -> list[Line]:
        return [("", None), (title if heading is None else heading, None), *lines] if lines else []
