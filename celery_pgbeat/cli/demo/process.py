"""One `celery` process of the demo: a beat or a worker, which may be started several times."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from celery_pgbeat.embedded import Process

APP = "celery_pgbeat.cli.demo.app"
QUEUE = "PGBEAT_DEMO_QUEUE"  # an environment variable: on a given broker the demo uses a queue of its own
TAIL = 15  # lines of the log that an error shows


class DemoProcess:
    """A beat or a worker. It ends when the demo ends, even by kill -9.

    Args:
        name: its name on the screen.
        arguments: the arguments after `celery -A app`.
        environment: its whole environment.
    """

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self.state = "waiting"
        self.pids: list[int] = []  # of all its starts
        self._folder = Path(tempfile.mkdtemp(prefix=f"pgbeat-demo-{name}-"))
        self._log = self._folder / "log"
        self._command = [sys.executable, "-m", "celery", "-A", APP, *arguments]
        # A killed worker leaves files in its temporary folder.
        self._environment = {**environment, "TMPDIR": str(self._folder), "PYTHONUNBUFFERED": "1"}
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        """The process id of its latest start."""
        return self.pids[-1]

    def start(self) -> None:
        """Start it, for the first time or again."""
        if self._process is not None:
            self._process.close(keep=True)
        self._process = Process(
            self._command, log=self._log, env=self._environment, cwd=self._folder, folder=self._folder
        )
        self.pids.append(self._process.pid)
        self.state = "running"

    def kill(self) -> None:
        """Kill it with kill -9."""
        self._started.kill()
        self.state = "killed"

    def freeze(self) -> None:
        """Freeze it (SIGSTOP)."""
        self._started.signal(signal.SIGSTOP)
        self.state = "frozen"

    def resume(self) -> None:
        """Continue it (SIGCONT)."""
        self._started.signal(signal.SIGCONT)
        self.state = "running"

    def ask_to_stop(self) -> None:
        """Send it SIGTERM, for a warm shutdown."""
        if self._process is not None:
            self._process.resume()
            self._process.signal(signal.SIGTERM)

    def end(self) -> None:
        """Wait until it has ended; kill it after a time-out."""
        if self._process is not None:
            self._process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
        self.state = "ended"

    def has_failed(self) -> bool:
        """Return whether its process has ended although the demo did not kill it."""
        return self.state == "running" and not self._started.is_running()

    def tail(self) -> str:
        """Return the last lines of its log."""
        return "\n".join([f"The log of {self.name} ends:", *self.log().splitlines()[-TAIL:]])

    def log(self) -> str:
        """Return its log."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def _started(self) -> Process:
        assert self._process is not None, f"{self.name} was not started"
        return self._process
