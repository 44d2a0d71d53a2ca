"""What one app's worker processes hold: the settings, who they are, and each process's own line to Postgres.

Nothing that talks crosses a fork: the line (database handle, report_thread thread) belongs to the process that
opened it, and a child that inherited its parent's opens its own on first use. A child never touches the
inherited one, not even to close it, because its sockets are the parent's. What is there to be inherited is the
report_pipe, by which a child tells its main process how a job has ended.
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
from celery_pgbeat.postgres.api_queries import ApiQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.migrate import check
from celery_pgbeat.postgres.worker_queries import Finish, Retry, Start, WorkerQueries
from celery_pgbeat.settings import Settings
from celery_pgbeat.worker.heartbeat import Heartbeat
from celery_pgbeat.worker.kept import Report
from celery_pgbeat.worker.message import ReceivedJobs
from celery_pgbeat.worker.pool_watch import PoolWatch
from celery_pgbeat.worker.refusals import is_kept, is_outage
from celery_pgbeat.worker.report_pipe import ReportPipe
from celery_pgbeat.worker.report_thread import ReportThread
from celery_pgbeat.worker.running import StopSignal
from celery_pgbeat.worker.stop_requests import StopRequests, has_processes

ATTRIBUTE = "_pgbeat_worker"
SHUTDOWN_TIMEOUT = 3.0  # seconds that an ending process may take to deliver what it still has to say

logger = logging.getLogger(__name__)


class ProcessConnection:
    """One process's line to Postgres. Nothing connects before the first statement."""

    def __init__(self, settings: Settings) -> None:
        self.pid = os.getpid()
        self.database = Database(settings.required_url, settings.schema)
        self.reports = WorkerQueries(self.database)
        self.report_thread = ReportThread(self.reports)
        self._check_every = settings.heartbeat_every.total_seconds()
        self._check_at = 0.0

    def checked_reports(self) -> WorkerQueries:
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
        self.report_thread.stop(SHUTDOWN_TIMEOUT)
        self.database.close()


class WorkerContext:
    """One app's part in its worker: made in the main process (or in a spawned child, which inherits nothing)."""

    def __init__(self, app: Any, settings: Settings) -> None:
        self.app = app
        self.settings = settings
        self.node = NodeId.mine()
        self.received_jobs = ReceivedJobs()
        self.stop_signal = StopSignal()
        self.job_span = job_span_of(settings)
        self._stop_requests: StopRequests | None = None
        self._main_pid: int | None = None
        self._connection: ProcessConnection | None = None
        self._report_pipe: ReportPipe | None = None

    @property
    def is_main(self) -> bool:
        """Whether this is the worker's main process: the one that receives messages."""
        return self._main_pid == os.getpid()

    @property
    def connection(self) -> ProcessConnection:
        """This process's own connection to Postgres."""
        if self._connection is None or self._connection.pid != os.getpid():
            self._connection = ProcessConnection(self.settings)
        return self._connection

    def become_main(self) -> None:
        """Know this process as the worker's main process, which has no children yet."""
        if not self.is_main or self._report_pipe is None:
            self._main_pid = os.getpid()
            self._report_pipe = ReportPipe()

    @property
    def queries(self) -> ApiQueries:
        """What this process says to Postgres for a task that changes its own row."""
        return ApiQueries(self.settings.schema, lambda: self.connection.database)

    def open(self, consumer: Any) -> None:
        """Begin the rounds of a main process: it lives, what does it run, who has died, who is asked to end."""
        line = self.connection
        children = PoolWatch(self.received_jobs, consumer)
        heartbeat = Heartbeat(
            self.node,
            self.settings.heartbeat_every,
            self.settings.dead_after,
            self.received_jobs.running,
            lambda: [*children.living(), *line.report_thread.unwritten()],
        )
        self._stop_requests = StopRequests(str(self.node), self.received_jobs, consumer, self._leave)
        report_pipe = self._report_pipe if has_processes(consumer.pool) else None
        # The heartbeat first: what may go wrong with the asks must not make this worker look dead.
        line.report_thread = ReportThread(
            line.reports, heartbeat, children, self._stop_requests, report_pipe=report_pipe
        )
        line.report_thread.start()

    def is_ending(self, start: Start) -> bool:
        """Whether this worker has told the process of a start to end, because somebody asked for it."""
        return self._stop_requests is not None and self._stop_requests.is_ending(start)

    def close(self) -> None:
        """End this process's line, if it has one."""
        if self._connection is not None and self._connection.pid == os.getpid():
            self._connection.close()
            self._connection = None
        if self._report_pipe is not None and self.is_main:
            self._report_pipe.close()
            self._report_pipe = None

    def finish(self, finish: Finish) -> None:
        """Report how a start ended: the main process writes it, with all others that end about now. Never raises."""
        if self.is_main:
            self.connection.report_thread.put(finish)
        elif self._report_pipe is None or not self._report_pipe.send(finish):
            report = partial(WorkerQueries.finish, start=finish.start, state=finish.state, error=finish.error)
            self.deliver(report, finish.start.job)

    def _leave(self, report: Report, job: uuid.UUID) -> None:
        self.connection.report_thread.put(report, job)

    def deliver(self, report: Report, job: uuid.UUID) -> None:
        """Deliver a report of a job now, or leave it to the report thread. Never raises, waits only once."""
        try:
            report(self.connection.reports)
        except (DatabaseUnavailable, SQLAlchemyError) as error:
            if is_outage(error):
                logger.warning("%s A report is kept until it is back.", error, extra={"action": "wait"})
            elif not is_kept(error):
                logger.exception("A report could not be delivered and is dropped")
                return
            if not self._has_told_main(report):
                self.connection.report_thread.put(report, job)

    def _has_told_main(self, report: Report) -> bool:
        """Tell the main process of a retry instead: it may well outlive this process."""
        if (
            self.is_main
            or self._report_pipe is None
            or not isinstance(report, partial)
            or report.func != WorkerQueries.retry
        ):
            return False
        return self._report_pipe.send(Retry(**report.keywords))


def context_of(app: Any) -> WorkerContext | None:
    """Return the app's context, or None in a process that guards nothing."""
    context: WorkerContext | None = vars(app).get(ATTRIBUTE)
    return context
