"""The base of the private servers: a folder, a fixed port, start and stop."""

from __future__ import annotations

import abc
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import ClassVar, TypeVar

from celery_pgbeat.embedded.errors import ServerUnavailable
from celery_pgbeat.embedded.ports import free_port
from celery_pgbeat.embedded.process import Process, log_text, require_posix

START_TIMEOUT = 60.0  # seconds in which a server must start; a busy machine needs most of them
_PORT_TAKEN = "ddress already in use"
_LOG_SHOWN = 2_000  # characters of a failed server's log in the error

AnyServer = TypeVar("AnyServer", bound="Server")


class Server(abc.ABC):
    """A private server in a temporary folder of its own, on a port of 127.0.0.1.

    `stop` ends it and removes the folder. After `shut_down`, `kill` or a crash, `start` starts it again on the same
    port, with the data that it had saved.

    Example:
        >>> from celery_pgbeat.embedded import Valkey
        >>> with Valkey() as valkey:  # doctest: +SKIP
        ...     valkey.url
        'redis://:3q2-fG...@127.0.0.1:16379/0'
    """

    kind: ClassVar[str]
    stop_signal: ClassVar[int]

    def __init__(self, *, below: Path | None = None) -> None:
        self._below = below  # where its folder is made; None for where temporary files are
        self._folder: Path | None = None
        self._port: int | None = None
        self._process: Process | None = None
        self.password = secrets.token_urlsafe(24)  # every local user can reach the port

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on port {self._port}, {'running' if self.is_running() else 'down'}>"

    def __enter__(self: AnyServer) -> AnyServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """The address for clients."""

    @property
    def folder(self) -> Path:
        """The folder with all files of the server."""
        assert self._folder is not None, f"{self!r} was not started"
        return self._folder

    @property
    def port(self) -> int:
        """The port on 127.0.0.1; it stays the same from the first start until `stop`."""
        assert self._port is not None, f"{self!r} was not started"
        return self._port

    @property
    def pid(self) -> int:
        """The id of the server's first process."""
        return self._running().pid

    @property
    def log(self) -> Path:
        """The file with the server's output."""
        return self.folder / "log"

    def is_running(self) -> bool:
        """Return whether the server's process runs (a frozen one does)."""
        return self._process is not None and self._process.is_running()

    def start(self: AnyServer) -> AnyServer:
        """Start the server and return as soon as it accepts clients.

        Raises:
            ServerUnavailable: there is no binary, no right to run it, or it fails at the start; the message says which.
        """
        require_posix()
        assert not self.is_running(), f"{self!r} is started already"
        try:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix=f"pgbeat-{self.kind}-", dir=self._below))
                self._prepare()
            self._launch()
        except BaseException:
            self.stop()
            raise
        return self

    def shut_down(self) -> None:
        """Shut the server down; `start` starts it again."""
        self._shut_down(self.stop_signal)

    def restart(self, *, pause: float = 0.0) -> None:
        """Shut the server down, wait (seconds), and start it on the same port with the same data."""
        self.shut_down()
        time.sleep(pause)
        self.start()

    def kill(self) -> None:
        """Kill all processes of the server at once, as a power cut does; `start` brings it back."""
        if self._process is not None:
            self._process.kill()
            self._forget()

    def freeze(self) -> None:
        """Stop all processes of the server where they stand: it accepts connections and answers none."""
        self._running().freeze()

    def resume(self) -> None:
        """Continue a frozen server."""
        self._running().resume()

    def stop(self) -> None:
        """Stop the server and remove its folder."""
        self._shut_down(self.stop_signal)
        if self._folder is not None:
            self._forget()
            self._dismiss()
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = self._port = None

    @abc.abstractmethod
    def _command(self) -> list[str]:
        """Return the command line."""

    @abc.abstractmethod
    def _answers(self, process: Process) -> bool:
        """Return whether this process serves on our port; another process may have taken it."""

    def _prepare(self) -> None:  # noqa: B027 - most servers need nothing
        """Fill the empty folder."""

    def _forget(self) -> None:  # noqa: B027
        """Free what the server, which has stopped, left outside its folder."""

    def _keep_secret(self, name: str, text: str) -> Path:
        """Write a file that only the server and its owner can read."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            owner = self.folder.stat()
            if owner.st_uid != os.geteuid():
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(text)
        return path

    def _environment(self) -> dict[str, str] | None:
        """Return the whole environment; None for a copy of ours."""
        return None

    def _running(self) -> Process:
        assert self._process is not None, f"{self!r} was not started"
        assert self._process.is_running(), f"{self!r} is not running"
        return self._process

    def _shut_down(self, number: int) -> None:
        if self._process is not None:
            self._process.halt(number)

    def _dismiss(self) -> None:
        """Close a process that has ended.

        Called when the next one starts, not when this one ends: until then its watchdog removes the folder if we die.
        """
        if self._process is not None:
            self._process.close(keep=True)
            self._process = None

    def _launch(self) -> None:
        until = time.monotonic() + START_TIMEOUT
        known = self._port
        while True:
            self._port = known or free_port()
            written = self.log.lstat().st_size if self.log.exists() else 0
            if self._comes_up(until):
                return
            self.kill()
            output = log_text(self.log, written)
            if _PORT_TAKEN not in output or time.monotonic() > until:
                shown = output[-_LOG_SHOWN:].strip() or "nothing"
                raise ServerUnavailable(f"The private {self.kind} did not start. Its output: {shown}")
            time.sleep(0.1)

    def _comes_up(self, until: float) -> bool:
        self._dismiss()
        process = self._process = Process(
            self._command(),
            log=self.log,
            env=self._environment(),
            cwd=self.folder,
            stop_signal=self.stop_signal,
            folder=self.folder,
        )
        while process.is_running() and time.monotonic() < until:
            if self._answers(process):
                return True
            time.sleep(0.01)
        return False
