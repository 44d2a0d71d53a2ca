"""What one app's worker processes hold: the settings, who they are, and each process's own line to Postgres.

Nothing that talks crosses a fork: the line (database handle, courier thread) belongs to the process that
opened it, and a child that inherited its parent's opens its own on first use. A child never touches the
inherited one, not even to close it, because its sockets are the parent's. What is there to be inherited is the
letterbox, by which a child tells its main process how a job has ended.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from functools import partial
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from celery_pgbeat.errors import DatabaseUnavailable, SchemaMissing
from celery_pgbeat.measures.extras import job_span_of
from celery_pgbeat.node import NodeId
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.doors import Doors
from celery_pgbeat.postgres.migrate import check
from celery_pgbeat.postgres.reports import Finish, Reports, Retry, Start
from celery_pgbeat.settings import Settings
from celery_pgbeat.worker.asks import Asks, has_processes
from celery_pgbeat.worker.children import Children
from celery_pgbeat.worker.courier import Courier
from celery_pgbeat.worker.heartbeat import Heartbeat
from celery_pgbeat.worker.kept import Report
from celery_pgbeat.worker.letterbox import Letterbox
from celery_pgbeat.worker.message import Entrusted
from celery_pgbeat.worker.refusals import is_kept, is_outage
from celery_pgbeat.worker.running import Bell

ATTRIBUTE = "_pgbeat_agent"
LAST_WORDS = 3.0  # seconds that an ending process may take to deliver what it still has to say

logger = logging.getLogger(__name__)


class Line:
    """One process's line to Postgres. Nothing connects before the first statement."""

    def __init__(self, settings: Settings) -> None:
        self.pid = os.getpid()
        self.database = Database(settings.required_url, settings.schema)
        self.reports = Reports(self.database)
        self.courier = Courier(self.reports)
        self._check_every = settings.heartbeat_every.total_seconds()
        self._check_at = 0.0

    def checked_reports(self) -> Reports:
        """Return the reports once the schema is known to be one that this package understands, as of a heartbeat ago.

        Raises:
            SchemaTooNew: it is not.
            DatabaseUnavailable: nobody can tell now.
        """
        if time.monotonic() >= self._check_at:
            try:
                check(self.database.engine, self.database.schema)
            except SchemaMissing:
                pass  # an older schema may well do; a statement that finds it wanting says so itself
            except SQLAlchemyError as error:
                raise self.database.translated(error) from error
            self._check_at = time.monotonic() + self._check_every
        return self.reports

    def close(self) -> None:
        """Deliver what waits, within a bounded time, and hang up."""
        self.courier.stop(LAST_WORDS)
        self.database.close()


class Agent:
    """One app's part in its worker: made in the main process (or in a spawned child, which inherits nothing)."""

    def __init__(self, app: Any, settings: Settings) -> None:
        self.app = app
        self.settings = settings
        self.node = NodeId.mine()
        self.entrusted = Entrusted()
        self.bell = Bell()
        self.job_span = job_span_of(settings)
        self._asks: Asks | None = None
        self._main_pid: int | None = None
        self._line: Line | None = None
        self._letterbox: Letterbox | None = None

    @property
    def is_main(self) -> bool:
        """Whether this is the worker's main process: the one that receives messages."""
        return self._main_pid == os.getpid()

    @property
    def line(self) -> Line:
        """This process's own line."""
        if self._line is None or self._line.pid != os.getpid():
            self._line = Line(self.settings)
        return self._line

    def become_main(self) -> None:
        """Know this process as the worker's main process, which has no children yet."""
        if not self.is_main or self._letterbox is None:
            self._main_pid = os.getpid()
            self._letterbox = Letterbox()

    @property
    def doors(self) -> Doors:
        """What this process says to Postgres for a task that changes its own row."""
        return Doors(self.settings.schema, lambda: self.line.database)

    def open(self, consumer: Any) -> None:
        """Begin the rounds of a main process: it lives, what does it run, who has died, who is asked to end."""
        line = self.line
        children = Children(self.entrusted, consumer)
        heartbeat = Heartbeat(
            self.node,
            self.settings.heartbeat_every,
            self.settings.dead_after,
            self.entrusted.running,
            lambda: [*children.living(), *line.courier.unwritten()],
        )
        self._asks = Asks(str(self.node), self.entrusted, consumer, self._leave)
        letterbox = self._letterbox if has_processes(consumer.pool) else None
        # The heartbeat first: what may go wrong with the asks must not make this worker look dead.
        line.courier = Courier(line.reports, heartbeat, children, self._asks, letterbox=letterbox)
        line.courier.start()

    def is_ending(self, start: Start) -> bool:
        """Whether this worker has told the process of a start to end, because somebody asked for it."""
        return self._asks is not None and self._asks.is_ending(start)

    def close(self) -> None:
        """End this process's line, if it has one."""
        if self._line is not None and self._line.pid == os.getpid():
            self._line.close()
            self._line = None
        if self._letterbox is not None and self.is_main:
            self._letterbox.close()
            self._letterbox = None

    def finish(self, finish: Finish) -> None:
        """Report how a start ended: the main process writes it, with all others that end about now. Never raises."""
        if self.is_main:
            self.line.courier.put(finish)
        elif self._letterbox is None or not self._letterbox.post(finish):
            report = partial(Reports.finish, start=finish.start, state=finish.state, error=finish.error)
            self.deliver(report, finish.start.job)

    def _leave(self, report: Report, job: uuid.UUID) -> None:
        self.line.courier.put(report, job)

    def deliver(self, report: Report, job: uuid.UUID) -> None:
        """Deliver a report of a job now, or leave it to the courier. Never raises, waits only once."""
        try:
            report(self.line.reports)
        except (DatabaseUnavailable, SQLAlchemyError) as error:
            if is_outage(error):
                logger.warning("%s A report is kept until it is back.", error, extra={"action": "wait"})
            elif not is_kept(error):
                logger.exception("A report could not be delivered and is dropped")
                return
            if not self._has_told_main(report):
                self.line.courier.put(report, job)

    def _has_told_main(self, report: Report) -> bool:
        """Tell the main process of a retry instead: it may well outlive this process."""
        if self.is_main or self._letterbox is None or not isinstance(report, partial) or report.func != Reports.retry:
            return False
        return self._letterbox.post(Retry(**report.keywords))


def agent_of(app: Any) -> Agent | None:
    """Return the app's agent, or None in a process that guards nothing."""
    agent: Agent | None = vars(app).get(ATTRIBUTE)
    return agent
