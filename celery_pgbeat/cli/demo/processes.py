"""The processes of the demo: three beats, all equal, and a worker."""

from __future__ import annotations

import os
import re
from types import TracebackType

from celery_pgbeat.cli.command_line.failure import Failure
from celery_pgbeat.cli.demo.process import QUEUE, DemoProcess
from celery_pgbeat.cli.demo.servers import Servers

BEATS = 3
SLOTS = 3  # of the worker; one of them is often taken by the slow task
LEASE = 3  # seconds; the default of 15 is too long to watch
ADDRESS = re.compile(r"http://\S+")  # as the dashboard prints it
BATCH = 5  # rows that a beat marks at once; with the default of 1,000 one beat would take all due rows


class Processes:
    """Three beats and a worker on the same servers, and the dashboard if it is wanted; on exit all of them end."""

    def __init__(self, servers: Servers, web: bool) -> None:
        environment = _environment(servers)
        self.beats = [DemoProcess(f"beat-{number + 1}", ["beat", "-l", "INFO"], environment) for number in range(BEATS)]
        words = ["worker", "-n", f"{servers.schema}@%h", "-c", str(SLOTS), "-Q", servers.queue]
        self.worker = DemoProcess("worker", [*words, "--without-mingle", "--without-gossip", "-l", "INFO"], environment)
        serve = ["pgbeat", "web", "--port", "0", "--allow-changes"]
        self.dashboard = DemoProcess("dashboard", serve, environment) if web else None
        self._log_tails = ""

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
    def _started(self) -> list[DemoProcess]:
        return self.all if self.dashboard is None else [*self.all, self.dashboard]

    @property
    def address(self) -> str | None:
        """The address of the dashboard; None if there is none, or if it does not listen yet."""
        found = None if self.dashboard is None else ADDRESS.search(self.dashboard.log())
        return found and found[0]

    @property
    def running_beats(self) -> list[DemoProcess]:
        """The beats that are neither killed nor frozen."""
        return [beat for beat in self.beats if beat.state == "running"]

    def start(self) -> None:
        """Start all."""
        for process in self._started:
            process.start()

    def by_pid(self, pid: int | None) -> DemoProcess | None:
        """Return the process that has this process id, or had it before a restart."""
        return next((process for process in self.all if pid in process.pids), None)

    def check(self) -> None:
        """Raise Failure if a process has ended unexpectedly."""
        for process in self._started:
            if process.has_failed():
                raise Failure(f"{process.name} has ended unexpectedly. {process.tail()}")

    def stop_all(self) -> None:
        """Shut all down; the worker finishes its running tasks."""
        self._log_tails = self.log_tails()
        for process in self._started:
            process.ask_to_stop()
        for process in self._started:
            process.end()

    def log_tails(self) -> str:
        """Return the ends of all logs."""
        return self._log_tails or "\n".join(process.tail() for process in self._started)


def _environment(servers: Servers) -> dict[str, str]:
    # Settings for the user's own beats must not reach those of the demo.
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
