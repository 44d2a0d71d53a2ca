"""The processes of a cluster and how the beats are doing, as Python sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class Node:
    """One beat or worker that was seen within the last day.

    Attributes:
        id: of the process; never used again.
        role: `beat` or `worker`.
        hostname: of its host.
        pid: its process id there.
        version: of celery-pgbeat.
        started_at: when it started.
        last_seen_at: its last heartbeat.
        silent_for: how long ago that is.
        alive: whether that is at most the `pgbeat_dead_after` of the beats.
        tracking: of a worker: whether it guards and tracks jobs. One that does not may start a job twice.
        mode: of a beat: `sends`; `shadow` (`pgbeat_shadow`: it records what it would send); or `waits`, while it is to
            send and beats in shadow live. None for a worker.
        jobs: how many jobs a worker runs, or a beat is sending.
    """

    id: str
    role: Literal["beat", "worker"]
    hostname: str
    pid: int
    version: str
    started_at: datetime
    last_seen_at: datetime
    silent_for: timedelta
    alive: bool
    tracking: bool
    mode: Literal["sends", "waits", "shadow"] | None
    jobs: int


@dataclass(frozen=True, slots=True)
class Health:
    """How the beats are doing.

    Attributes:
        healthy: whether a beat is alive, and nothing is overdue by more than allowed.
        beats: how many beats are alive.
        last_seen_at: the last heartbeat of any beat; None if none is known.
        lag: by how much the latest is overdue that people have neither to do nor to decide nor to end; 0 if nothing is.
        max_lag: what is allowed.
    """

    healthy: bool
    beats: int
    last_seen_at: datetime | None
    lag: timedelta
    max_lag: timedelta


def read_node(row: Mapping[str, Any]) -> Node:
    """Return a node of a row that `nodes.sql` has read."""
    known = {column: row[column] for column in ("id", "role", "hostname", "pid", "version", "alive", "mode", "jobs")}
    return Node(
        **known,
        started_at=row["started_at"].astimezone(timezone.utc),
        last_seen_at=row["last_seen_at"].astimezone(timezone.utc),
        silent_for=max(row["now"] - row["last_seen_at"], ZERO),
        tracking=bool(row["tracking"]),
    )


def read_health(row: Mapping[str, Any], max_lag: timedelta) -> Health:
    """Return the health of a row that `health.sql` has read."""
    lag = ZERO if row["late_since"] is None else row["now"] - row["late_since"]
    seen = row["last_seen_at"]
    return Health(
        healthy=row["beats"] > 0 and lag <= max_lag,
        beats=row["beats"],
        last_seen_at=None if seen is None else seen.astimezone(timezone.utc),
        lag=lag,
        max_lag=max_lag,
    )
