"""An app whose `beat_schedule` was drawn: `runs URL START END` prints when Celery's own beat would run its entries."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Any

from celery import Celery
from celery.schedules import crontab

from tests.harness.peers.beat_schedule_peer import print_runs_of
from tests.harness.peers.entries import Varied, varied


def _times(one: Varied) -> Any:
    if one.crontab:
        return crontab(**one.crontab)
    every, unit = one.interval or (1, "days")
    return timedelta(**{unit: every})


app = Celery("shop", set_as_current=False)
app.conf.timezone = "Europe/Berlin"
app.conf.beat_schedule = {one.name: {"task": "shop.work", "schedule": _times(one)} for one in varied()}

if __name__ == "__main__":
    _, _, *instants = sys.argv[1:]
    print_runs_of(app, app.conf.beat_schedule, *map(datetime.fromisoformat, instants))
