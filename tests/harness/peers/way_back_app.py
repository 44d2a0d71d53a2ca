"""An app with entries that Celery's own beat knows, and others that only ours know.

If PRINTED names a file, it is what `export --to beat-schedule` has printed, and its entries count too.
"""

from __future__ import annotations

import os
import runpy
from typing import Any

from celery import Celery, Task

from celery_pgbeat import PgBeat, every
from tests.harness.probe_app import BROKER
from tests.harness.probe_app import _Recorded as Recorded

app = Celery("shop", broker=os.environ.get(BROKER, "memory://"), set_as_current=False)
app.conf.result_expires = None  # no celery.backend_cleanup among the rows
beat = PgBeat(app)


@beat.periodic_task("every 1s", name="decorated", args=["decorated"])
@app.task(name="shop.work", shared=False, bind=True)
def work(self: Task, label: str) -> None:
    """Record a run."""
    with Recorded(self, label):
        pass


ONCE_A_SECOND = {"task": work.name, "schedule": 1.0}
app.conf.beat_schedule = {
    "in beat_schedule": {**ONCE_A_SECOND, "args": ["in beat_schedule"]},
    "with our schedule": {**ONCE_A_SECOND, "schedule": every("1s"), "args": ["with our schedule"]},
    "with our key": {**ONCE_A_SECOND, "args": ["with our key"], "pgbeat": {"overlap": "allow"}},
}


@app.on_after_finalize.connect
def _add(sender: Celery, **_: Any) -> None:
    sender.add_periodic_task(1.0, work.s("added"), name="added")


if "PRINTED" in os.environ:
    app.conf.beat_schedule.update(runpy.run_path(os.environ["PRINTED"])["beat_schedule"])
