"""What the processes of one app's worker have: the settings, the node, and each process' own connection to Postgres.

No connection crosses a fork: the database handle and the report thread belong to the process that made them, and a
child makes its own on first use. A child never touches what it inherited, not even to close it, because the sockets are
the parent's. Only the report pipe is there to be inherited.
"""

from __future__ import annotations

import logging
import os
import time
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from celery_pgbeat.errors import DatabaseUnavailable, SchemaMissing
from celery_pgbeat.postgres.api_queries import ApiQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.migrate import check
from celery_pgbeat.postgres.worker_queries import Finish, Start, StopRequest, WorkerQueries
from celery_pgbeat.process.node import NodeId
from celery_pgbeat.settings import Settings
from celery_pgbeat.worker.report.heartbeat import Heartbeat
from celery_pgbeat.worker.report.pool_watch import PoolWatch, has_processes
from celery_pgbeat.worker.report.refusals import is_kept, is_outage
from celery_pgbeat.worker.report.report_pipe import ReportPipe
from celery_pgbeat.worker.report.report_thread import ReportThread
from celery_pgbeat.worker.report.reports import Report, Retry, job_of, write
from celery_pgbeat.worker.report.same_app import SameApp
from celery_pgbeat.worker.start.job_span import job_span_of
from celery_pgbeat.worker.start.message import ReceivedJobs
from celery_pgbeat.worker.stop.running import StopSignal
from celery_pgbeat.worker.stop.stop_requests import StopRequests

ATTRIBUTE = "_pgbeat_worker"
SHUTDOWN_TIMEOUT = 3.0  # seconds that an ending process may take to write the reports that wait

logger = logging.getLogger(__name__)


class ProcessConnection:
    """One process' connection to Postgres. Nothing connects before the first statement."""

    def __init__(self, settings: Settings) -> None:
        self.pid = os.getpid()
        self.database = Database(settings.required_url, settings.schema)
        self.queries = WorkerQueries(self.database)
        self.report_thread = ReportThread(self.queries)
        self._check_every = settings.heartbeat_every.total_seconds()
        self._check_at = 0.0

    def checked_queries(self) -> WorkerQueries:
        """Return the queries if this package understands the schema; checked once in the time of a heartbeat.

        Raises:
            SchemaTooNew: it does not.
            DatabaseUnavailable: Postgres is out of reach.
        """
        if time.monotonic() >= self._check_at:
            try:
                check(self.database.engine, self.database.schema)
            except SchemaMissing:
                pass  # an older schema may be enough; if it is not, a statement fails
            except SQLAlchemyError as error:
                raise self.database.translated(error) from error
            self._check_at = time.monotonic() + self._check_every
        return self.queries

    def close(self) -> None:
        """Write the reports that wait, for SHUTDOWN_TIMEOUT at most, and disconnect."""
        self.report_thread.stop(SHUTDOWN_TIMEOUT)
        self.database.close()


class WorkerContext:
    """One app's worker: made in the main process (or in a spawned child, which inherits nothing)."""

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
        """Note that this is the worker's main process, which has no children yet."""
        if not self.is_main or self._report_pipe is None:
            self._main_pid = os.getpid()
            self._report_pipe = ReportPipe()

    @property
    def api_queries(self) -> ApiQueries:
        """The statements by which a task changes its own row."""
        return ApiQueries(self.settings.schema, lambda: self.connection.database)

    def open(self, consumer: Any) -> None:
        """Start the periodic duties of a main process: heartbeat, pool watch, stop requests."""
        connection = self.connection
        pool_watch = PoolWatch(self.received_jobs, consumer)
        heartbeat = Heartbeat(
            self.node,
            self.settings.heartbeat_every,
            self.settings.dead_after,
            self.received_jobs.running,
            lambda: [*pool_watch.living(), *connection.report_thread.unwritten()],
            lambda task: has_processes(consumer.pool) and task in self.app.tasks and self.app.tasks[task].acks_late,
        )
        same_app = SameApp(self.app, self.settings.schema)
        self._stop_requests = StopRequests(str(self.node), self.received_jobs, consumer, self.put)
        report_pipe = self._report_pipe if has_processes(consumer.pool) else None
        # The heartbeat first: if a stop request fails, this worker must not look dead.
        connection.report_thread = ReportThread(
            connection.queries, heartbeat, pool_watch, self._stop_requests, same_app, report_pipe=report_pipe
        )
        connection.report_thread.start()
        logger.info(
            "This worker guards and tracks the jobs of periodic tasks, in %s",
            connection.database.shown_place,
            extra={"action": "start", "worker": str(self.node)},
        )

    def stop_request_of(self, start: Start) -> StopRequest | None:
        """Read the stop request of a start from its row."""
        return self.connection.queries.stop_request_of(start)

    def is_ending(self, start: Start) -> bool:
        """Whether this worker is terminating the process of a start, because of a stop request."""
        return self._stop_requests is not None and self._stop_requests.is_ending(start)

    def close(self) -> None:
        """Close this process' connection, if it has one."""
        if self._connection is not None and self._connection.pid == os.getpid():
            self._connection.close()
            self._connection = None
        if self._report_pipe is not None and self.is_main:
            self._report_pipe.close()
            self._report_pipe = None

    def put(self, report: Report) -> None:
        """Queue a report in this process; never waits."""
        self.connection.report_thread.put(report)

    def report(self, report: Report) -> None:
        """Report how a run ended, from the process that ran it: see `report/`. Never raises, waits once at most."""
        if not isinstance(report, Finish):
            self._write_now(report)
        elif self.is_main:
            self.put(report)
        elif not self._send(report):
            self._write_now(report)

    def _write_now(self, report: Report) -> None:
        try:
            write(report, self.connection.queries)
        except (DatabaseUnavailable, SQLAlchemyError) as error:
            if is_outage(error):
                logger.warning("%s A report is kept until it is back.", error, extra={"action": "wait"})
            elif not is_kept(error):
                logger.exception("The report of job %s cannot be written and is dropped", job_of(report))
                return
            if not isinstance(report, Retry) or not self._send(report):
                self.put(report)

    def _send(self, report: Finish | Retry) -> bool:
        """Send a report to the main process through the pipe; False in the main process, or if that is not possible."""
        return not self.is_main and self._report_pipe is not None and self._report_pipe.send(report)


def context_of(app: Any) -> WorkerContext | None:
    """Return the app's context, or None in a process that guards nothing."""
    context: WorkerContext | None = vars(app).get(ATTRIBUTE)
    return context
