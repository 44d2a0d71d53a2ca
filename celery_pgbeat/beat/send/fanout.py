"""Finds tracked jobs whose message a fanout exchange copies for each of its queues, as Celery's `Broadcast` does.

All copies have the id of one job, which starts once. So one worker runs it, and all only under tracking = 'send'.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

from celery.app.routes import MapRoute
from celery.exceptions import QueueNotFound

from celery_pgbeat.beat.send.messages import OutgoingJob

logger = logging.getLogger(__name__)

WISHES = ("queue", "exchange", "routing_key")


def fanouts(app: Any) -> set[str]:
    """Return the names of the fanout exchanges in the app's `task_queues`."""
    return {one.exchange.name for one in app.amqp.queues.values() if one.exchange and one.exchange.type == "fanout"}


def goes_to(exchanges: Collection[str], app: Any, task: str, queue: str | None, options: Mapping[str, Any]) -> bool:
    """Return whether a row's messages go to one of these exchanges.

    A router that is a function may look at the arguments, so it is not asked.
    """
    known, router = app.tasks.get(task), app.amqp.router
    of_row = {**options, "queue": queue}
    wishes = {wish: of_row.get(wish) or getattr(known, wish, None) for wish in WISHES}
    if wishes["exchange"]:
        return getattr(wishes["exchange"], "name", wishes["exchange"]) in exchanges
    if not wishes["queue"] and not all(type(route) is MapRoute for route in router.routes):
        return False
    try:
        route = router.route({wish: value for wish, value in wishes.items() if value}, task)
    except QueueNotFound:  # then it cannot be sent either
        return False
    return getattr(getattr(route.get("queue"), "exchange", None), "name", None) in exchanges


class FanoutWarning:
    """Logs each row of such jobs once."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._logged: set[str] = set()

    @cached_property
    def _exchanges(self) -> set[str]:
        return fanouts(self._app)

    def check(self, jobs: Iterable[OutgoingJob]) -> None:
        """Log the rows of these jobs that only one worker will run."""
        if not self._exchanges:
            return
        for job in jobs:
            if job.tracking == "send" or job.periodic_task in self._logged:
                continue
            if goes_to(self._exchanges, self._app, job.task, job.queue, job.options):
                self._logged.add(job.periodic_task)
                logger.warning(
                    "The messages of %r go to a fanout exchange, which copies them for each of its queues. One copy of "
                    "each runs, because the row is tracked. If all copies are to run, set tracking = 'send'",
                    job.periodic_task,
                    extra={"action": "track"},
                )
