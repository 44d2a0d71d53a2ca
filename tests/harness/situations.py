"""Situations of periodic tasks: rows, jobs and nodes as beats and workers leave them, under a stopped clock.

It is noon of a day far ahead: the start of the server, which the views read, is long past.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from tests.harness.clock import Clock
from tests.harness.session import Session

NOON = datetime(2100, 3, 1, 12, tzinfo=timezone.utc)
JOB = uuid.UUID(int=1)
# The tables that have rows in a situation.
FILLED = (
    "periodic_task",
    "periodic_task_state",
    "active_job",
    "finished_job",
    "task_group",
    "group_failure",
    "group_to_check",
    "blackout",
    "backfill",
    "dependency",
    "dependency_to_check",
    "open_work",
    "lost_message",
    "node",
    "change",
)
BEAT = "web-1:m:4711:start:random"  # a node's id: host, machine, process, its start, random part
NO_BEAT = "no beat is running: none has ever been started"  # as overdue and explain() write it
WORKER = "web-2:m:815:start:random"


def ago(**duration: float) -> datetime:
    """Return an instant before noon."""
    return NOON - timedelta(**duration)


LATELY, AN_HOUR_AGO = ago(minutes=10), ago(hours=1)


class Situation:
    """One database whose clock is stopped at noon."""

    def __init__(self, url: str) -> None:
        self.clock = Clock(url)
        self.clock.stand_at(NOON)
        self.session = Session(url)

    def stopped_beat(self, stopped_at: datetime) -> None:
        """Have a beat that was stopped cleanly then."""
        self.session.rows("insert into pgbeat.stopped_beat values (%s, 'web-1', %s)", BEAT, stopped_at)

    def beat(self, seen_at: datetime = NOON, node: str = BEAT) -> None:
        """Have a beat that was last seen then."""
        self._node(node, "beat", seen_at, tracking=False)

    def worker(self, seen_at: datetime = NOON, tracking: bool = True) -> None:
        """Have a worker that was last seen then."""
        self._node(WORKER, "worker", seen_at, tracking=tracking)

    def _node(self, node: str, role: str, seen_at: datetime, *, tracking: bool) -> None:
        self._insert(
            "node",
            {"id": node, "role": role, "hostname": "web", "pid": 1, "version": "1", "last_seen_at": seen_at}
            | {"tracking": tracking},
        )

    def task(self, name: str = "nightly", schedule: str | None = "0 * * * *", **columns: Any) -> None:
        """Have a periodic task; `next_run_at`, marks and the like as beats write them."""
        theirs = ("next_run_at", "planned_for", "marked_by", "marked_at", "mark_lease", "run_count", "problem", "lazy")
        theirs += ("planned_ahead", "due_ahead")
        written = {column: columns.pop(column) for column in theirs if column in columns}
        self.session.insert(name, schedule=schedule, **columns)
        if written:
            places = ", ".join(f"{column} = %s" for column in written)
            self.session.rows(
                f"update pgbeat.periodic_task set planned_revision = revision, {places} where name = %s",
                *written.values(),
                name,
            )

    def plan(self, next_run_at: datetime | None = None, **columns: Any) -> None:
        """Have a periodic task that is planned: by default its next run is in an hour."""
        self.task(next_run_at=next_run_at or NOON + timedelta(hours=1), **columns)

    def job(self, state: str, since: datetime = LATELY, **columns: Any) -> None:
        """Have a job that is not final, in this state since then; a running one had a heartbeat a moment ago."""
        waiting = {"busy_until": since + timedelta(hours=1), "pickup_deadline": timedelta(hours=1)}
        silent_at = NOON + timedelta(seconds=25)
        running = {"started_at": since, "attempt_at": since, "worker": WORKER, "busy_until": silent_at}
        values = {
            "id": str(JOB),
            "periodic_task": "nightly",
            "scheduled_for": since,
            "origin": "schedule",
            "state": state,
            "exclusive": state != "buffered",
            "wait_reason": "predecessor" if state == "buffered" else None,
            "task": "app.probe",
            "message": "{}",
            "on_lost": "give_up",
            "tracking": "full",
            "created_at": since,
            **waiting,
            **(running if state == "running" else {}),
            **columns,
        }
        self._insert("active_job", values)

    def final(self, state: str, at: datetime = AN_HOUR_AGO, **columns: Any) -> None:
        """Have a final job of that instant."""
        values = {
            "id": str(uuid.uuid4()),
            "periodic_task": "nightly",
            "scheduled_for": at,
            "origin": "schedule",
            "state": state,
            "task": "app.probe",
            "created_at": at,
            "finished_at": at,
            **columns,
        }
        self._insert("finished_job", values)

    def explain(self, name: str = "nightly") -> str:
        """Return the sentence about a row, in short."""
        sentence = str(self.session.value("select pgbeat.explain(%s)", name))
        assert sentence.startswith(f"'{name}' is ")
        return in_short(sentence.removeprefix(f"'{name}' is "))

    def overdue(self) -> list[tuple[datetime, timedelta, str]]:
        """Return what is overdue, the longest first, with the reason in short."""
        rows = self.session.rows("select * from pgbeat.overdue order by due_at")
        assert {row["name"] for row in rows} <= {"nightly"}
        return [(row["due_at"], row["late_by"], in_short(row["reason"])) for row in rows]

    def status(self, name: str = "nightly") -> dict[str, Any]:
        """Return the status of a row."""
        return self.session.row("select * from pgbeat.status where name = %s", name)

    def _insert(self, table: str, values: Mapping[str, Any]) -> None:
        places = ", ".join(["%s"] * len(values))
        self.session.rows(f"insert into pgbeat.{table} ({', '.join(values)}) values ({places})", *values.values())


def in_short(text: str) -> str:
    """Return a text without the day of the situation, and with 1 for the id of its job."""
    return text.replace(f"{NOON:%Y-%m-%d} ", "").replace(str(JOB), "1")
