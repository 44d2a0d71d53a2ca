"""The app of the tests' processes for a beat of RedBeat, in the tests' Redis."""

from __future__ import annotations

import os

from celery_pgbeat.moving.recorder import record_sent
from tests.harness.probe_app import BROKER, app

app.conf.redbeat_redis_url = os.environ[BROKER]
app.conf.beat_max_loop_interval = 1
record_sent(os.environ["SENT"])
