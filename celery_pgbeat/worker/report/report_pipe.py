"""A pipe by which a pool process reports to its main process how a job has ended; made before the fork.

If the pool process wrote the end into Postgres itself, each job would cost a commit of its own, and the process would
wait for it. The main process collects the ends of all its children and writes them together. A message in the pipe
outlives its writer: a child may be killed a moment later.

A child never waits: if a message does not fit into the pipe (the main process is stopped, or has ended), `send` returns
False.

Invariant: a message is written by one system call of at most PIPE_BUF bytes, so messages never mix.
"""

from __future__ import annotations

import json
import os
import select
import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta

from celery_pgbeat.postgres.worker_queries import Finish, Start
from celery_pgbeat.worker.report.reports import Retry

LONGEST = select.PIPE_BUF  # bytes of a message
AT_ONCE = 1 << 16  # bytes read at once: a full pipe
PAUSE = 0.01  # seconds between two notifications: while messages keep coming, one notification is for many


class ReportPipe:
    """Made in the main process before it has children; they write, it reads."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._reader: int | None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._rest = b""
        self._watcher: threading.Thread | None = None
        self._is_closed = False

    def send(self, report: Finish | Retry) -> bool:
        """Send a report to the main process; False if it could not be sent."""
        if self._reader is not None and self._owner != os.getpid():
            # Without this, a write would succeed after the main process, the only reader, has ended.
            self._close_reader()
        message = _encoded(report)
        if len(message) > LONGEST:
            return False
        try:
            os.write(self._writer, message)
        except OSError:
            return False
        return True

    def receive(self) -> list[Finish | Retry]:
        """Return the messages that are in the pipe; never waits."""
        chunks = []
        try:
            while read := os.read(self._read_end(), AT_ONCE):
                chunks.append(read)
        except BlockingIOError:
            pass
        *messages, self._rest = (self._rest + b"".join(chunks)).split(b"\n")
        return [_decoded(message) for message in messages]

    def watch(self, notify: Callable[[], None]) -> None:
        """Start a thread that calls `notify` while there are messages in the pipe."""
        self._watcher = threading.Thread(target=self._watch, args=(notify,), name="pgbeat-report-pipe", daemon=True)
        self._watcher.start()

    def close(self) -> None:
        """Close it once the last child has; a write after that fails."""
        if self._is_closed:
            return
        self._is_closed = True
        os.close(self._writer)  # wakes the watcher, as soon as no child is left that has it open
        if self._watcher is None:
            self._close_reader()

    def _watch(self, notify: Callable[[], None]) -> None:
        poll = select.poll()
        poll.register(self._read_end(), select.POLLIN)
        while True:
            poll.poll()
            if self._is_closed:
                break
            notify()
            time.sleep(PAUSE)
        self._close_reader()

    def _read_end(self) -> int:
        assert self._reader is not None, "only the process that made it reads"
        return self._reader

    def _close_reader(self) -> None:
        os.close(self._read_end())
        self._reader = None


def _encoded(report: Finish | Retry) -> bytes:
    start = report.start
    state_or_delay = report.state if isinstance(report, Finish) else report.delay.total_seconds()
    fields = (start.job.hex, start.run, start.attempt, start.token.hex, start.worker, state_or_delay, report.error)
    return json.dumps(fields).encode() + b"\n"


def _decoded(message: bytes) -> Finish | Retry:
    job, run, attempt, token, worker, state_or_delay, error = json.loads(message)
    start = Start(uuid.UUID(job), run, attempt, uuid.UUID(token), worker)
    if isinstance(state_or_delay, str):
        return Finish(start, state_or_delay, error)
    return Retry(start, timedelta(seconds=state_or_delay), error)
