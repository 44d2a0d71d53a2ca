"""Now: is anything wrong, what runs, what is late, what comes next. It is updated while it is open."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from celery_pgbeat.api.rows import Upcoming, read_row
from celery_pgbeat.columns_of_job import Job
from celery_pgbeat.postgres.dashboard_queries import DashboardQueries
from celery_pgbeat.web.pages.hour import MINUTES, SAMPLE, Chart, charts_of
from celery_pgbeat.web.pages.overdue import read_overdue
from celery_pgbeat.web.pages.verdict import Verdict, verdict_of
from celery_pgbeat.web.reading import Reader

ROWS = 6  # of each list
RECENT = 10.0  # seconds over which the present rates are computed
FINAL = ["succeeded", "failed", "revoked", "expired", "lost", "untracked"]  # what "just ended" shows: not the skipped
JUST_NOW = timedelta(hours=1)
WAITING = ("pending", "sent", "retrying", "buffered", "waiting")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Now:
    """What the page shows, of one moment."""

    now: datetime
    activity: Row
    under_way: Mapping[str, int]
    nodes: Sequence[Row]
    no_beat: str | None
    overdue: Sequence[Row]
    longest: Sequence[Row]
    upcoming: Sequence[Upcoming]
    ended: Sequence[Job]
    minutes: Sequence[Row] = ()
    problems: Sequence[Row] = ()
    alerts: Sequence[Row] = ()
    has_tasks: bool = True

    @property
    def rows(self) -> int:
        """How many rows a list has at most."""
        return ROWS

    @property
    def running(self) -> int:
        """How many jobs workers have started; not what people have picked up."""
        return self.under_way.get("running", 0) - int(self.activity["picked_up"])

    @property
    def for_people(self) -> int:
        """How many jobs people have picked up, or may."""
        return self.under_way.get("created", 0) + int(self.activity["picked_up"])

    @property
    def waiting(self) -> int:
        """How many jobs wait for a worker, for their turn, or for other tasks."""
        return sum(self.under_way.get(state, 0) for state in WAITING)

    @property
    def beats(self) -> int:
        """How many beats are alive."""
        return self._alive("beat")

    @property
    def workers(self) -> int:
        """How many workers are alive."""
        return self._alive("worker")

    @property
    def silent_beats(self) -> int:
        """How many beats were seen within the last hour, have not signed off, and are silent."""
        return sum(1 for node in silent_beats(self.nodes) if self.now - node["last_seen_at"] < JUST_NOW)

    @property
    def in_shadow(self) -> bool:
        """Whether beats only record what they would send: while one lives, no other one sends."""
        return any(node["alive"] and node["mode"] == "shadow" for node in self.nodes)

    @property
    def blind(self) -> int:
        """How many of them do not report what becomes of jobs."""
        return sum(1 for node in self.nodes if node["role"] == "worker" and node["alive"] and not node["tracking"])

    def _alive(self, role: str) -> int:
        return sum(1 for node in self.nodes if node["role"] == role and node["alive"])

    @property
    def verdict(self) -> Verdict:
        """What matters most."""
        return verdict_of(self)

    @property
    def charts(self) -> Sequence[Chart]:
        """The charts of the last hour."""
        return charts_of(self.minutes)


def silent_beats(nodes: Sequence[Row]) -> list[Row]:
    """Return the beats that have not signed off and show no sign of life."""
    return [node for node in nodes if node["role"] == "beat" and not node["alive"]]


def read_now(reader: Reader) -> Now:
    """Read what may change at any moment."""
    with reader.database.reading():
        queries = reader.queries
        activity = queries.activity(RECENT)
        now, under_way = activity["now"], json.loads(activity["under_way"])
        return Now(
            now=now,
            activity=activity,
            under_way=under_way,
            nodes=queries.nodes(),
            no_beat=queries.no_beat(),
            overdue=read_overdue(queries, activity["late"], now, ROWS),
            longest=queries.longest_running(ROWS) if under_way.get("running") else (),
            upcoming=[read_row(Upcoming, row) for row in queries.soonest(now, ROWS)],
            ended=_just_ended(queries, now),
        )


def _just_ended(queries: DashboardQueries, now: datetime) -> list[Job]:
    found = queries.page_of_jobs(limit=ROWS, states=FINAL, since=now - JUST_NOW)
    return [read_row(Job, row) for row in found]


class Slow(NamedTuple):
    """What the page shows that changes slowly.

    Attributes:
        minutes: the last hour.
        problems: rows that cannot be planned.
        alerts: those that are not over.
        has_tasks: whether there is any periodic task.
    """

    minutes: Sequence[Row]
    problems: Sequence[Row]
    alerts: Sequence[Row]
    has_tasks: bool


def read_slow(reader: Reader) -> Slow:
    """Read what changes slowly."""
    with reader.database.reading():
        queries = reader.queries
        return Slow(
            minutes=queries.recent_minutes(MINUTES, SAMPLE),
            problems=queries.problems(ROWS),
            alerts=queries.alerts(ROWS),
            has_tasks=bool(queries.look_through(limit=1, most=1)),
        )
