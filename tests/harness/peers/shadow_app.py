"""The app of the tests' processes with entries in its code: for Celery's own beat, and for one of ours in shadow.

The variable SENT names the file in which Celery's beat records what it sends. With OTHERWISE one entry has another
period, one is missing, and one more is there.
"""

from __future__ import annotations

import os
from typing import Any

from celery.schedules import crontab

from celery_pgbeat.moving.recorder import record_sent
from tests.harness.probe_app import app


def entry(name: str, schedule: Any) -> dict[str, Any]:
    return {"task": "app.probe", "schedule": schedule, "args": (name,)}


ENTRIES = {
    "each second": entry("each second", 1.0),
    "each 2 seconds": entry("each 2 seconds", 2.0),
    "each 3 seconds": entry("each 3 seconds", 3.0),
    "each minute": entry("each minute", crontab()),
}
if os.environ.get("OTHERWISE"):
    del ENTRIES["each second"]
    ENTRIES["each 2 seconds"] = entry("each 2 seconds", 3.0)
    ENTRIES["another"] = entry("another", 2.0)
app.conf.beat_schedule = ENTRIES
if os.environ.get("SENT"):
    record_sent(os.environ["SENT"])
