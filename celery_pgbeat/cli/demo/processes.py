"""The processes of the demo: three beats, all equal, and a worker."""

from __future__ import annotations

import os
from types import TracebackType

from celery_pgbeat.cli.demo.process import QUEUE, DemoProcess
from celery_pgbeat.cli.demo.servers import Servers
from celery_pgbeat.cli.failure import Failure

BEATS = 3
SLOTS = 3  # of the worker; one of them is often taken by the slow task
LEASE = 3  # seconds; 15 by default, but who watches does not want to wait for so long
BATCH = 5  # rows that a beat marks at once; 1,000 by default, and then the fastest beat takes all that is due


class Processes:
    """Three beats and a worker on the same servers; all of them end with it."""

    def __init__(self, servers: Servers) -> None:
        environment = _environment(servers)
        self.beats = [DemoProcess(f"beat-{number + 1}", ["beat", "-l", "INFO"], environment) for number in range(BEATS)]
        words = ["worker", "-n", f"{servers.schema}@%h", "-c", str(SLOTS), "-Q", servers.queue]
        self.worker = DemoProcess("worker", [*words, "--without-mingle", "--without-gossip", "-l", "INFO"], environment)
        self._last_words = ""

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_all()

    @property
    def all(self) -> list[DemoProcess]:
        """The beats and the worker."""
        return [*self.beats, self.worker]

    @property
    def running_beats(self) -> list[DemoProcess]:
        """The beats that are neither killed nor frozen."""
        return [beat for beat in self.beats if beat.state == "running"]

    def start(self) -> None:
        """Start all."""
        for process in self.all:
            process.start()

    def by_pid(self, pid: int | None) -> DemoProcess | None:
        """Return the process that has, or in an earlier life had, this process id."""
        return next((process for process in self.all if pid in process.pids), None)

    def check(self) -> None:
        """Raise Failure if a process has ended by itself."""
        for process in self.all:
            if process.has_failed():
                raise Failure(f"{process.name} has ended, though nobody killed it. {process.tail()}")

    def stop_all(self) -> None:
        """End all in good order: what the worker has begun it finishes."""
        self._last_words = self.last_words()
        for process in self.all:
            process.ask_to_stop()
        for process in self.all:
            process.end()

    def last_words(self) -> str:
        """Return the ends of all logs."""
        return self._last_words or "\n".join(process.tail() for process in self.all)


def _environment(servers: Servers) -> dict[str, str]:
    # What is set for beats of somebody's own must not reach the demo's.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PGBEAT_", "CELERY_"))}
    return {
        **clean,
        "CELERY_BROKER_URL": servers.broker,
        "PGBEAT_URL": servers.url,
        "PGBEAT_SCHEMA": servers.schema,
        "PGBEAT_LEASE": str(LEASE),
        "PGBEAT_BATCH": str(BATCH),
        QUEUE: servers.queue,
    }
