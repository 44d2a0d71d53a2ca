"""The app of the tests' processes for a beat of django-celery-beat, in the database of the tests."""

from __future__ import annotations

import os

from celery_pgbeat.moving.recorder import record_sent
from tests.harness.peers.django_peer import set_up
from tests.harness.probe_app import DATABASE, app

set_up(os.environ[DATABASE])
app.conf.beat_max_loop_interval = 1
record_sent(os.environ["SENT"])
