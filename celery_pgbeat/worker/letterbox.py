"""How a pool process tells its main process that a job has ended: a pipe that was there before the fork.

To write it into Postgres itself would cost each job a commit of its own, and the process the wait for it. The main
process collects what all its children tell, and writes it together. A letter that lies in the pipe outlives who wrote
it: a child may be killed a moment later.

A retry is written by the child itself, as long as Postgres is there. While Postgres is away the child drops that into
the pipe, too: it may be replaced by a new process before Postgres is back, and then the job would count as lost.

A child never waits either: where a letter does not go in (the main process is stopped, or gone), it is told so, and
says itself what it has to say.

Invariant: a letter is written by one system call of no more than PIPE_BUF bytes, so letters never mix.
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

from celery_pgbeat.postgres.reports import Finish, Retry, Start

LONGEST = select.PIPE_BUF  # bytes of a letter
AT_ONCE = 1 << 16  # bytes that are taken out at once: a full pipe
PAUSE = 0.01  # seconds between two rings: while letters come without a pause, there is one look for many of them


class Letterbox:
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

    def post(self, end: Finish | Retry) -> bool:
        """Tell the main process how a start ended; False if it does not get to know."""
        if self._reader is not None and self._owner != os.getpid():
            # A pipe that nobody can read any more refuses letters: so a child hears that its main process is gone.
            self._take_down()
        letter = _written(end)
        if len(letter) > LONGEST:
            return False
        try:
            os.write(self._writer, letter)
        except OSError:
            return False
        return True

    def take(self) -> list[Finish | Retry]:
        """Return what has been told; never waits."""
        told = []
        try:
            while read := os.read(self._opening(), AT_ONCE):
                told.append(read)
        except BlockingIOError:
            pass
        *letters, self._rest = (self._rest + b"".join(told)).split(b"\n")
        return [_read(letter) for letter in letters]

    def watch(self, ring: Callable[[], None]) -> None:
        """Have a thread ring whenever letters lie there."""
        self._watcher = threading.Thread(target=self._watch, args=(ring,), name="pgbeat-letterbox", daemon=True)
        self._watcher.start()

    def close(self) -> None:
        """Take it down, once nobody writes or reads any more; who does all the same is refused."""
        if self._is_closed:
            return
        self._is_closed = True
        os.close(self._writer)  # wakes the watcher, as soon as no child is left that has it open
        if self._watcher is None:
            self._take_down()

    def _watch(self, ring: Callable[[], None]) -> None:
        poll = select.poll()
        poll.register(self._opening(), select.POLLIN)
        while True:
            poll.poll()
            if self._is_closed:
                break
            ring()
            time.sleep(PAUSE)
        self._take_down()

    def _opening(self) -> int:
        assert self._reader is not None, "only the process that made it reads"
        return self._reader

    def _take_down(self) -> None:
        """Let go of the end that reads."""
        os.close(self._opening())
        self._reader = None


def _written(end: Finish | Retry) -> bytes:
    start = end.start
    words: list[object] = [start.job.hex, start.run, start.attempt, start.token.hex, start.worker]
    words += [end.state] if isinstance(end, Finish) else [end.delay.total_seconds()]
    return json.dumps([*words, end.error]).encode() + b"\n"


def _read(letter: bytes) -> Finish | Retry:
    job, run, attempt, token, worker, state_or_delay, error = json.loads(letter)
    start = Start(uuid.UUID(job), run, attempt, uuid.UUID(token), worker)
    if isinstance(state_or_delay, str):
        return Finish(start, state_or_delay, error)
    return Retry(start, timedelta(seconds=state_or_delay), error)
