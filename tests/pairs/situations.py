"""The situations: how a periodic task stands, which jobs of it there are, and what else matters. It is noon.

Most are a way for the row to stand with a way for its job to stand; the rest have something of their own.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import Any

from tests.harness.situations import JOB, NOON, ago

NAME = "nightly"
A, B, C, DEAD = (f"web-{number}:m:4711:start:random" for number in range(1, 5))  # three beats, and one that died
TOKEN = uuid.UUID(int=100)
WORKER = "worker"
OTHER_JOB = uuid.UUID(int=2)
BACKFILL = uuid.UUID(int=50)
LEASE = timedelta(seconds=15)
JUST_NOW = ago(seconds=5)

Columns = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """How everything stands before two statements meet.

    Attributes:
        row: columns of the periodic task; None: there is none.
        jobs: columns of its jobs that are not final; `state` and `since` among them.
        finals: columns of its jobs that are final.
        others: other periodic tasks, by their columns.
        groups: groups, by their columns.
        failures: the count of failures, by its columns.
        backfill: the columns of a backfill.
        mark: beat A has marked the row, if it is due.
        astray: the row joined its group as that was paused, and does not know.
    """

    row: Columns | None = None
    jobs: Sequence[Columns] = ()
    finals: Sequence[Columns] = ()
    others: Sequence[Columns] = ()
    groups: Sequence[Columns] = ()
    failures: Columns | None = None
    backfill: Columns | None = None
    mark: bool = True
    astray: bool = False


# How the row stands.
ON_TIME: Columns = {"schedule": "0 * * * *", "next_run_at": NOON, "planned_for": NOON}
LATE: Columns = {"schedule": "30 * * * *", "next_run_at": ago(minutes=90), "planned_for": ago(minutes=90)}
LATER: Columns = {
    "schedule": "0 * * * *",
    "next_run_at": NOON + timedelta(hours=1),
    "planned_for": NOON + timedelta(hours=1),
}
AHEAD: Columns = ON_TIME | {  # a beat has planned the runs after the next one
    "planned_ahead": [NOON, NOON + timedelta(hours=1), NOON + timedelta(hours=2)],
}

# How a job stands.
_AT_LAST_TICK: Columns = {"since": ago(hours=1), "scheduled_for": ago(hours=1)}
_PENDING: Columns = {"state": "pending", "mark_lease": LEASE, "sends": 1, "busy_until": NOON + timedelta(hours=1)}
_SENT: Columns = {"state": "sent", "sends": 1, "sent_at": ago(minutes=50), "check_at": "epoch"}
_RUNNING: Columns = {
    "state": "running",
    "sends": 1,
    "since": ago(minutes=50),
    "token": str(TOKEN),
    "worker": WORKER,
    "check_at": "epoch",
}
_SILENT: Columns = {"busy_until": ago(seconds=1)}
JOBS: dict[str, Columns] = {
    "being sent": _PENDING | {"marked_by": A, "marked_at": JUST_NOW, "check_at": NOON + timedelta(seconds=10)},
    "left unsent": _PENDING | {"marked_by": DEAD, "marked_at": ago(minutes=10), "check_at": ago(minutes=9)},
    "given back": _PENDING | {"check_at": "-infinity"},
    "unsent since long": _PENDING | {"check_at": "-infinity", "since": ago(minutes=150)},
    "sent": _SENT,
    "sent in vain": _SENT | _SILENT,
    "sent in vain four times": _SENT | _SILENT | {"resends": 3, "sends": 4},
    "running": _RUNNING,
    "running in silence": _RUNNING | _SILENT,
    "silent, runs again": _RUNNING | _SILENT | {"on_lost": "rerun"},
    "running, asks": _RUNNING | {"on_error": "ask"},
    "waits for a decision": _RUNNING
    | {"state": "error", "on_error": "ask", "token": None, "run": 1, "check_at": "infinity"}
    | _SILENT,
    "asked to end": _RUNNING | {"stop_request": "cancel"},
    "retrying": _SENT | {"state": "retrying", "started_at": ago(minutes=50), "attempt": 1, "worker": WORKER},
    "retrying in silence": _SENT
    | _SILENT
    | {"state": "retrying", "started_at": ago(minutes=50), "attempt": 1, "worker": WORKER},
}
# Jobs for people, of rows for people alone; a trigger writes the rest.
_FOR_PEOPLE: Columns = {"kind": "human", "task": None, "since": ago(hours=1)}
PEOPLES_JOBS: dict[str, Columns] = {
    "open": _FOR_PEOPLE | {"state": "created"},
    "taken": _FOR_PEOPLE | {"state": "running", "owner": "ann", "worker": None},
}
_WAITING: Columns = {"id": str(OTHER_JOB), "state": "buffered", "busy_until": "infinity", "check_at": "infinity"}
WAITS: Columns = _WAITING | {"since": ago(minutes=30), "mark_lease": LEASE}
_LOST: Columns = {
    "id": str(JOB),
    "state": "lost",
    "at": ago(hours=2),
    "scheduled_for": ago(hours=2),
    "sends": 4,
    "sent_at": ago(hours=2),
}


def lost(exclusive: bool, **more: Any) -> Columns:
    """Return a job that was given up before it ever started; its message may turn up."""
    restart_data = {
        "exclusive": exclusive,
        "message": {"args": [], "kwargs": {}},
        "on_lost": "give_up",
        "on_error": "fail",
        "kind": "task",
        "task": "app.probe",
        "tracking": "full",
        "pickup_deadline": "1 hour",
        **more,
    }
    return _LOST | {"restart_data": json.dumps(restart_data)}


def job(kind: str, **more: Any) -> Columns:
    """Return a job that stands so, of the tick an hour ago."""
    return {**_AT_LAST_TICK, **{**JOBS, **PEOPLES_JOBS}[kind], **more}


def _matrix() -> dict[str, Setting]:
    """Return each way for a job beside a row that is due, under each policy that treats it in its own way."""
    found: dict[str, Setting] = {}
    policies = {
        "skip": [*JOBS],
        "cancel_other": [kind for kind in JOBS if kind != "left unsent"],
        "buffer_all": ["being sent", "given back", "sent in vain four times", "running", "running in silence"],
        "buffer_one": ["given back", "running", "retrying"],
        "terminate_other": ["running", "sent"],
        "allow": ["given back", "sent in vain four times", "running"],
    }
    for overlap, kinds in policies.items():
        found[f"due, {overlap}, no job"] = Setting({**ON_TIME, "overlap": overlap})
        for kind in kinds:
            exclusive = overlap != "allow"
            found[f"due, {overlap}, {kind}"] = Setting(
                {**ON_TIME, "overlap": overlap}, [job(kind, exclusive=exclusive)]
            )
    return found


def _rest() -> dict[str, Setting]:
    found: dict[str, Setting] = {"no row": Setting(), "no row, given back": Setting(None, [job("given back")])}
    for kind in ("given back", "being sent", "running in silence", "sent in vain", "retrying", "running"):
        found[f"not due, {kind}"] = Setting(LATER, [job(kind)])
    found["not due, no job"] = Setting(LATER)
    found["due, not marked, no job"] = Setting(ON_TIME, mark=False)
    found["due, not marked, running"] = Setting(ON_TIME, [job("running")], mark=False)
    found["planned ahead, no job"] = Setting(AHEAD, mark=False)
    found["planned ahead, not exclusive, running"] = Setting(
        {**AHEAD, "overlap": "allow"}, [job("running", exclusive=False)], mark=False
    )
    for kind in ("given back", "running in silence", "sent"):
        found[f"planned ahead, {kind}"] = Setting(AHEAD, [job(kind)], mark=False)
    found["planned ahead, lost"] = Setting(AHEAD, [], [lost(True)], mark=False)
    found["planned ahead, failing, one more is too many"] = Setting(
        {**AHEAD, "overlap": "allow", "pause_after_failures": 2},
        [job("running", pause_after_failures=2, exclusive=False)],
        failures={"failures_in_row": 1, "last_failed_at": ago(hours=2), "last_failed_job": str(OTHER_JOB)},
        mark=False,
    )
    for catchup, kind in product(("latest", "all", "none"), ("unsent since long", "running", "no job")):
        jobs = [] if kind == "no job" else [job(kind)]
        found[f"late, catchup {catchup}, {kind}"] = Setting({**LATE, "catchup": catchup}, jobs)
    found["late, catchup latest, cancel_other, unsent since long"] = Setting(
        {**LATE, "overlap": "cancel_other"}, [job("unsent since long")]
    )
    for overlap in ("buffer_all", "cancel_other"):
        found[f"due, {overlap}, running and one waits"] = Setting(
            {**ON_TIME, "overlap": overlap}, [job("running"), WAITS]
        )
        found[f"not due, {overlap}, one waits for nothing"] = Setting({**LATER, "overlap": overlap}, [WAITS])
    for name, exclusive in (("lost", True), ("lost, not exclusive", False)):
        for overlap in ("skip", "cancel_other", "buffer_all") if exclusive else ("skip",):
            found[f"due, {overlap}, {name}"] = Setting({**ON_TIME, "overlap": overlap}, [], [lost(exclusive)])
        waiting = job("sent", id=str(OTHER_JOB))
        found[f"due, skip, {name}, the next is sent"] = Setting(ON_TIME, [waiting], [lost(exclusive)])
        found[f"not due, {name}"] = Setting(LATER, [], [lost(exclusive)])
    found["unplanned"] = Setting({"schedule": "0 * * * *"})
    found["paused"] = Setting({**ON_TIME, "enabled": False, "pause_reason": "because"}, [job("given back")])
    found["pause is over"] = Setting({**LATER, "enabled": False, "paused_until": ago(minutes=5)}, [job("running")])
    found["due, in a window"] = Setting(
        {**ON_TIME, "blackout": ["55 11 * * * PT20M"], "planned_for": NOON}, [job("running")]
    )
    found |= _groups() | _special() | _people()
    return found


def _groups() -> dict[str, Setting]:
    limited = [{"name": "g", "max_active": 1}]
    queue = [{"name": "g", "max_active": 1, "pause_on_failure": True}]
    other = {"name": "other", "group_name": "g", **LATER}
    holder = job("running", id=str(OTHER_JOB), periodic_task="other", group_name="g", slot=1)
    waiting = job("running") | WAITS | {"id": str(JOB), "wait_reason": "slot", "group_name": "g", "exclusive": True}
    waiting = {key: value for key, value in waiting.items() if key not in ("token", "worker", "sent_at")}
    member = {**ON_TIME, "group_name": "g"}
    mine = job("sent", group_name="g", slot=1)
    return {
        "group, its place is taken": Setting(member, [holder], others=[other], groups=limited),
        "group, a job waits for the place": Setting(
            LATER | {"group_name": "g"}, [holder, waiting], others=[other], groups=limited
        ),
        "group that a failure pauses, has the place": Setting(member, [mine], others=[other], groups=queue),
        "group that a failure pauses, its place is taken": Setting(
            LATER | {"group_name": "g"}, [holder, waiting], others=[other], groups=queue
        ),
        "group, a job waits and there is room": Setting(member, [waiting], others=[other], groups=limited),
        "group, has the place": Setting(member, [mine], others=[other], groups=limited),
        "group, a lost one wants the place": Setting(
            LATER | {"group_name": "g"}, [holder], [lost(True, group_name="g")], others=[other], groups=limited
        ),
        "group, paused": Setting(
            {**ON_TIME, "group_name": "g"}, [job("given back")], groups=[{"name": "g", "paused": True}]
        ),
        "group, is astray": Setting(
            {**ON_TIME, "group_name": "g"}, groups=[{"name": "g", "paused": True}], astray=True
        ),
    }


def _people() -> dict[str, Setting]:
    row: Columns = {**ON_TIME, "kind": "human", "task": None}
    waits = WAITS | {"kind": "human", "task": None}
    return {
        "people, none": Setting(row),
        **{
            f"people, {overlap}, {kind}": Setting({**row, "overlap": overlap}, [job(kind)])
            for overlap, kind in product(("skip", "cancel_other"), ("open", "taken"))
        },
        "people, buffer_all, taken and one waits": Setting({**row, "overlap": "buffer_all"}, [job("taken"), waits]),
    }


def _special() -> dict[str, Setting]:
    counting = {**ON_TIME, "pause_after_failures": 2}
    running = job("running", pause_after_failures=2)
    failures = {"failures_in_row": 1, "last_failed_at": ago(hours=2), "last_failed_job": str(OTHER_JOB)}
    gap: Columns = {"min_gap": timedelta(minutes=10)}
    # Of yesterday: the row's own ticks are not among them.
    filling = {"since": ago(hours=20), "until": ago(hours=16), "mode": "missing", "max_active": 2}
    filled = job("sent", id=str(OTHER_JOB), origin="backfill", backfill=str(BACKFILL), scheduled_for=ago(hours=20))
    return {
        "failing, one more is too many": Setting(counting, [running], failures=failures),
        "failing, a pause is due": Setting(
            counting, [job("given back")], failures=failures | {"failures_in_row": 2, "pause_due": True}
        ),
        "min_gap, just started": Setting(
            {**ON_TIME, **gap}, [job("sent", **gap)], failures={"last_started_at": ago(minutes=5)}
        ),
        "min_gap, long ago": Setting(
            {**ON_TIME, **gap}, [job("sent", **gap)], failures={"last_started_at": ago(hours=5)}
        ),
        "min_gap, lost": Setting({**ON_TIME, **gap}, [], [lost(True, min_gap="10 minutes")]),
        "tracking send, being sent": Setting({**ON_TIME, "tracking": "send"}, [job("being sent", tracking="send")]),
        "tracking send, left unsent": Setting({**ON_TIME, "tracking": "send"}, [job("left unsent", tracking="send")]),
        "tracking result, sent": Setting({**ON_TIME, "tracking": "result"}, [job("sent", tracking="result")]),
        "tracking result, sent in vain": Setting(
            {**ON_TIME, "tracking": "result"}, [job("sent in vain", tracking="result")]
        ),
        "tracking result, cancel_other": Setting(
            {**ON_TIME, "tracking": "result", "overlap": "cancel_other"}, [job("sent", tracking="result")]
        ),
        "backfill, not due": Setting(LATER, backfill=filling),
        "backfill, due": Setting(ON_TIME, backfill=filling),
        "backfill, running": Setting(LATER, [job("running")], backfill=filling),
        "backfill, allow": Setting({**LATER, "overlap": "allow"}, [job("running", exclusive=False)], backfill=filling),
        "backfill, its job is sent": Setting(LATER, [filled], backfill=filling),
        "backfill, lost": Setting(LATER, [], [lost(True)], backfill=filling),
        "backfill, lost, not exclusive": Setting(LATER, [], [lost(False)], backfill=filling),
        "max_runs, the last one": Setting({**ON_TIME, "max_runs": 1}, [job("running")]),
    }


SITUATIONS: dict[str, Setting] = _matrix() | _rest()
