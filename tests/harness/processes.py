"""Real `celery beat` and `celery worker` processes, and the cluster that a test makes of them."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from celery_pgbeat.embedded import Process
from tests.harness import faults, probe_app
from tests.harness.fork_server import CELERY, ForkedProcess, is_forkable
from tests.harness.probe import Probe
from tests.harness.wait import eventually

ROOT = Path(__file__).parents[2]
APP = "tests.harness.probe_app"
START_TIMEOUT = 60.0  # seconds until a started process must log that it is ready; a busy machine needs many
STOP_TIMEOUT = 60.0  # seconds; a pool process may wait for 30 until its parent has read what it answered (billiard)

AnyNode = TypeVar("AnyNode", bound="Node")


class Node:
    """One Celery process, which may be started again with the same arguments after its end.

    The log is kept over all its lives. `kill`, `freeze` and `resume` mean the process with all its children; `signal`
    means the first process alone.
    """

    ready_word = ""

    def __init__(
        self, name: str, folder: Path, environment: Mapping[str, str], arguments: Sequence[str], *, forks: bool = False
    ) -> None:
        self.name = name
        self._folder = folder
        self._log = folder / f"{name}.log"
        self._environment = dict(environment)
        self._command = [*CELERY, *arguments]
        self._kind = ForkedProcess if forks and is_forkable(self._command, self._environment) else Process
        self._process: Process | None = None
        self._earlier = 0  # characters of the log that earlier lives have written

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self._process!r}>"

    def start(self: AnyNode, *, wait: bool = True) -> AnyNode:
        """Start it, and wait until it logs that it is ready."""
        assert self._process is None, f"{self!r} is started already"
        self._earlier = len(self.log)
        self._process = self._kind(self._command, log=self._log, env=self._environment, cwd=self._folder)
        if wait:
            self.wait_for_log(self.ready_word, START_TIMEOUT)
        return self

    @property
    def pid(self) -> int:
        """The process id; for a worker that of the main process."""
        return self._running().pid

    @property
    def status(self) -> int | None:
        """The exit status (negative: the signal), None while it runs."""
        return self._running().status()

    @property
    def log(self) -> str:
        """All that its lives have written."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def is_running(self) -> bool:
        """Tell whether it runs (a frozen one does)."""
        return self._process is not None and self._process.is_running()

    def has_logged(self, text: str) -> bool:
        """Tell whether this life's log contains the text."""
        return text in self.log[self._earlier :]

    def wait_for_log(self, text: str, timeout: float) -> None:
        """Wait until this life's log contains the text; a process that ends without it is an error at once."""

        def found() -> bool:
            ended = not self.is_running()
            said = self.has_logged(text)
            assert said or not ended, f"{self!r} ended without {text!r} in its log:\n{self.tail()}"
            return said

        eventually(found, timeout, f"{text!r} in the log of {self.name}")

    def wait(self, timeout: float) -> int:
        """Wait for its end and return the exit status."""
        return self._running().wait(timeout)

    def tail(self, lines: int = 40) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.splitlines()[-lines:])

    def signal(self, number: int) -> None:
        """Send a signal to the process itself, not to its children."""
        self._running().signal(number)

    def kill(self) -> None:
        """`kill -9` it with all its children."""
        self._running().kill()
        self._end()

    def stop(self, timeout: float = STOP_TIMEOUT) -> int:
        """Send SIGTERM, wait (a warm shutdown of a worker finishes its tasks), and return the exit status."""
        process = self._running()
        process.resume()
        process.signal(process.stop_signal)
        status = process.wait(timeout)
        self._end()
        return status

    def freeze(self) -> None:
        """Stop it with SIGSTOP: it keeps its locks and connections, and sends nothing."""
        self._running().freeze()

    def resume(self) -> None:
        """Let it go on."""
        self._running().resume()

    def revive(self) -> None:
        """Start it again if it has ended, as its supervisor would."""
        if not self.is_running():
            self.end()
            self.start()

    def end(self) -> None:
        """Kill it if it still runs."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def _end(self) -> None:
        self._running().close()
        self._process = None

    def _running(self) -> Process:
        assert self._process is not None, f"{self!r} is not started"
        return self._process


class Beat(Node):
    """A `celery beat`."""

    ready_word = "beat: Starting..."


class Worker(Node):
    """A `celery worker`."""

    ready_word = " ready."


class Cluster:
    """All processes of one test.

    Args:
        folder: where the logs go.
        database: URL of the migrated database; also of the table `probe`, created when the first process starts.
        broker: URL of the broker.
        forks: whether its processes are forked from one that has imported Celery, where they can be.

    `settings` are Celery settings for all processes started from then on.
    """

    def __init__(self, folder: Path, database: str, broker: str, *, forks: bool = False) -> None:
        self.database = database
        self.broker = broker
        self.settings: dict[str, Any] = {}
        self.nodes: list[Node] = []
        self._folder = folder
        self._forks = forks
        self._numbers = itertools.count(1)
        self._probed: set[str] = set()  # the databases that have the table

    @property
    def probe(self) -> Probe:
        """The table of what ran."""
        if self.database not in self._probed:  # a test may give the cluster another database
            Probe(self.database).create()
            self._probed.add(self.database)
        return Probe(self.database)

    def beat(
        self,
        *,
        settings: Mapping[str, Any] | None = None,
        inject: Sequence[faults.Fault] = (),
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        app: str = APP,
        wait: bool = True,
    ) -> Beat:
        """Start a beat.

        Args:
            settings: Celery settings of this process alone, JSON.
            inject: faults to build into it.
            environment: further variables.
            arguments: further words of the command line.
            app: another module with a Celery app.
            wait: until it is ready.
        """
        words = ["-A", app, "beat", "-l", "INFO", *arguments]
        node = self._make(Beat, self._name("beat"), self._environment(settings, inject, environment), words)
        return node.start(wait=wait)

    def worker(
        self,
        *,
        concurrency: int = 2,
        pool: str = "prefork",
        queues: str = "celery",
        settings: Mapping[str, Any] | None = None,
        inject: Sequence[faults.Fault] = (),
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        app: str = APP,
        wait: bool = True,
    ) -> Worker:
        """Start a worker of a name of its own; the arguments are those of `beat` and of the command line."""
        name = self._name("worker")
        # Mingle and gossip talk to the other workers and cost a second at the start; nothing here is about them.
        words = ["-A", app, "worker", "-l", "INFO", "-n", f"{name}@%h", "-c", str(concurrency), "-P", pool]
        words += ["-Q", queues, "--without-mingle", "--without-gossip", *arguments]
        node = self._make(Worker, name, self._environment(settings, inject, environment), words)
        return node.start(wait=wait)

    def end(self) -> None:
        """End all that is left."""
        for node in self.nodes:
            node.end()

    def tails(self) -> list[tuple[str, str]]:
        """Return (title, end of the log) of each process, for the report of a failed test."""
        return [(f"log of {node.name}", node.tail()) for node in self.nodes]

    def _name(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers)}"

    def _make(self, kind: type[AnyNode], name: str, environment: Mapping[str, str], words: Sequence[str]) -> AnyNode:
        _ = self.probe  # the tasks write to it
        node = kind(name, self._folder, environment, words, forks=self._forks)
        self.nodes.append(node)
        return node

    def _environment(
        self,
        settings: Mapping[str, Any] | None,
        inject: Sequence[faults.Fault],
        environment: Mapping[str, str] | None,
    ) -> dict[str, str]:
        # What the person at the keyboard has set for a beat of their own must not reach ours.
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PGBEAT_", "CELERY_"))}
        return {
            **clean,
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(self._folder),  # a killed worker leaves folders there
            "PGBEAT_URL": self.database,
            probe_app.BROKER: self.broker,
            probe_app.DATABASE: self.database,
            probe_app.SETTINGS: json.dumps({**self.settings, **(settings or {})}),
            probe_app.FAULTS: faults.encode(inject),
            **(environment or {}),
        }
