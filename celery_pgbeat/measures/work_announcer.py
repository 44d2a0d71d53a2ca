"""Sends the signal about new tasks for people: once for each in the cluster, by the first beat that takes note of it.

A thread of its own looks with each heartbeat, if a receiver of the signal is connected when the beat starts. The
statement that takes note of a task returns it to one beat. A task is noted before the signal is sent: a beat that is
killed between the two loses the signal, and no task is told of twice.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.measures.outlasting import Outlasting
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.process.threads import LastingThread
from celery_pgbeat.signals import work_created

logger = logging.getLogger(__name__)

MOST = 1_000  # tasks for people that one look takes


@dataclass(frozen=True, slots=True)
class NewWork:
    """A task for people that can be picked up."""

    job: uuid.UUID
    periodic_task: str
    scheduled_for: datetime
    target: Sequence[str] | None
    due_by: datetime | None


class WorkAnnouncer:
    """Sends the signal on behalf of one beat.

    Args:
        database: the beat's.
        app: the Celery app, the sender of the signal.
        every: how often to look.
    """

    def __init__(self, database: Database, app: Any, *, every: timedelta) -> None:
        self._database = database
        self._app = app
        self._every = every.total_seconds()
        self._stopping = threading.Event()
        self._thread = LastingThread(self._run, "pgbeat-work")
        self._outlasting = Outlasting(logger, "Cannot look for new tasks for people", "announce")

    def start(self) -> None:
        """Start to look."""
        self._thread.start()

    def restart_if_ended(self) -> None:
        """Start the thread again if it has ended too early."""
        self._thread.restart_if_ended()

    def stop(self) -> None:
        """Stop looking."""
        self._stopping.set()

    def look(self) -> list[NewWork]:
        """Take note of new tasks for people; return those that this beat has to tell of.

        Raises:
            DatabaseUnavailable: Postgres is out of reach.
        """
        rows = self._database.run("announce_work", most=MOST)
        return [
            NewWork(uuid.UUID(str(row.id)), row.periodic_task, row.scheduled_for, row.target, row.due_by)
            for row in rows
        ]

    def report(self, found: Sequence[NewWork]) -> None:
        """Send the signal about each of them."""
        for new in found:
            work_created.send(
                self._app,
                job=new.job,
                periodic_task=new.periodic_task,
                scheduled_for=new.scheduled_for,
                target=new.target,
                due_by=new.due_by,
            )

    def _run(self) -> None:
        while not self._stopping.wait(self._every):
            self._outlasting.call(self._announce)

    def _announce(self) -> None:
        while found := self.look():
            self.report(found)
