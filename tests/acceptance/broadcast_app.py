"""An app with queues of which each worker gets a copy of every message.

A `Broadcast` is a queue for each worker. Over Redis Celery delivers nothing to it from a process that has no worker,
because that process does not declare the exchange. There each worker subscribes to any queue of a fanout exchange.
"""

from __future__ import annotations

from kombu import Exchange, Queue
from kombu.common import Broadcast

from tests.harness.probe_app import app

app.conf.task_queues = (Broadcast("amqp-all"), Queue("redis-all", Exchange("all", type="fanout")), Queue("celery"))
