"""The environment that the measure gives to the process of a peer, and what all peers get alike.

Each schedule has last run two days ago, so each is due at once, as after an outage. Nothing of that is stored while we
count: the peers write their state every three minutes, RedBeat at each send.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from celery import Celery

BROKER = os.environ["PEER_BROKER"]
STATE = os.environ["PEER_STATE"]  # the database, or the Redis, where the peer keeps its schedules
ROWS = int(os.environ["PEER_ROWS"])
CRONTABS = os.environ["PEER_KIND"] == "crontabs"  # each minute; otherwise intervals of a day
QUEUE = os.environ["PEER_QUEUE"]
TASK = "benchmark.noop"
LAST_RUN_AT = datetime.now(timezone.utc) - timedelta(days=2)
NAMES = [f"row-{number}" for number in range(1, ROWS + 1)]


def make_app(scheduler: str) -> Celery:
    """Make a peer's app."""
    app = Celery("peer", broker=BROKER)
    app.conf.update(
        beat_scheduler=scheduler,
        beat_max_loop_interval=5,  # seconds; RedBeat's own default is 300
        result_expires=None,  # no celery.backend_cleanup among what is counted
    )
    return app
