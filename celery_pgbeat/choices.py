"""The types of texts that have few values: a type checker refuses another one, and so does each call at run time.

They are public: annotate with them what you pass on.

    from celery_pgbeat.choices import Overlap

    def declare(overlap: Overlap) -> None: ...

A test compares them with the table of columns, and with the checks in Postgres.
"""

from __future__ import annotations

from typing import Literal

Overlap = Literal["skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other", "allow"]
Catchup = Literal["none", "latest", "earliest", "all"]
Dst = Literal["default", "skip", "once", "all"]
BlackoutAction = Literal["defer", "skip"]
OnLost = Literal["give_up", "rerun"]
OnError = Literal["fail", "ask"]
AfterCondition = Literal["success", "finish"]
Kind = Literal["task", "human"]
Tracking = Literal["full", "result", "send"]

ActiveState = Literal["pending", "sent", "running", "retrying", "buffered", "waiting", "error", "created"]
FinalState = Literal["succeeded", "failed", "revoked", "expired", "lost", "skipped", "untracked"]
JobState = Literal[ActiveState, FinalState]
JobOrigin = Literal["schedule", "catchup", "backfill", "manual"]

WorkOutcome = Literal["succeeded", "failed"]

BackfillMode = Literal["missing", "failed", "all"]
BackfillState = Literal["running", "finished", "cancelled"]

ChangeKind = Literal["periodic_task", "group", "window"]
ChangeAction = Literal[
    "created",
    "changed",
    "renamed",
    "removed",
    "paused",
    "resumed",
    "next_run_set",
    "triggered",
    "backfilled",
    "retried",
    "resent",
    "cancelled",
    "failed",
    "picked_up",
    "released",
    "finished",
]
