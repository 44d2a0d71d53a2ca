"""A beat's parts over a stand-in for its statements, without a broker or a database."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.beat.wiring import Beat, Wiring
from celery_pgbeat.settings import Settings
from tests.harness.outbox import app_of


def opened(queries: Any, broker: Any = None, **options: Any) -> Beat:
    """Wire a beat of which only the dispatcher, the planner and the submitter are real."""
    sender: Any = Scheduler(app_of("memory://"), lazy=True)
    stand_ins: dict[str, Any] = {
        "database": SimpleNamespace(translated=lambda error: error),
        "code": SimpleNamespace(lazy_names=[]),
        "results": SimpleNamespace(full_acts_as=lambda _workers_track: "full"),
        "wakeup": SimpleNamespace(notify=lambda: None),
        "broker": broker or SimpleNamespace(is_ready_within=lambda _seconds: True, is_proven=True, problem=None),
    }
    return Wiring(sender, Settings(), **stand_ins).open(queries, **options)
