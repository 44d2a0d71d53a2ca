"""One child process that cannot outlive its owner: the owner's side of `watchdog.py`."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

from celery_pgbeat.embedded import watchdog
from celery_pgbeat.embedded.errors import ServerUnavailable

STOP_TIMEOUT = 10.0  # seconds a child gets to stop by itself before it and all its children are killed


def require_posix() -> None:
    """Raise ServerUnavailable on systems without process groups and signals."""
    if sys.platform == "win32":
        raise ServerUnavailable(
            "Private servers run on Linux and macOS, not on Windows: "
            "give the URLs of running ones instead (PGBEAT_URL and a broker URL)"
        )


def log_text(log: Path, begin: int = 0) -> str:
    """Return a log from a byte on. A symbolic link is not followed, because the folder may be another user's."""
    try:
        with os.fdopen(os.open(log, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            file.seek(begin)
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"(its log cannot be read: {error})"


class Watchdog(Protocol):
    """The part of `subprocess.Popen` that a `Process` uses of its watchdog."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    returncode: int | Any

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""


class Process:
    """A running child with a log file, in a session of its own.

    It ends when this object is closed, and when the process that made it has ended, also by `kill -9`. (A process that
    the owner forks without exec has the same pipe open: the child then lives until the last of them ends.)

    Args:
        command: the program and its arguments.
        log: the file to which its output is appended.
        env: its whole environment; None for a copy of ours.
        cwd: its working directory.
        stop_signal: sent by `stop`, and by the watchdog after the owner's end.
        folder: removed after the child's end by `close`, and by the watchdog after the owner's end.
    """

    def __init__(
        self,
        command: list[str],
        *,
        log: Path,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        stop_signal: int = signal.SIGTERM,
        folder: Path | None = None,
    ) -> None:
        require_posix()
        self.command = command
        self.log = log
        self.stop_signal = stop_signal
        self._status: int | None = None
        arguments = [str(log), str(folder or ""), str(int(stop_signal)), str(STOP_TIMEOUT), *command]
        self._watchdog = self._start_watchdog(arguments, env, cwd)
        assert self._watchdog.stdin is not None
        assert self._watchdog.stdout is not None
        self._from_watchdog = self._watchdog.stdout
        self._to_watchdog = self._watchdog.stdin
        pid = self._read()
        if pid is None:
            self._dismiss(b"")
            raise ServerUnavailable(f"{command[0]} could not be started: its watchdog process ended at once")
        self.pid = pid
        os.set_blocking(self._from_watchdog.fileno(), False)

    def _start_watchdog(self, arguments: list[str], env: dict[str, str] | None, cwd: Path | None) -> Watchdog:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,  # Ctrl-C in a terminal reaches only the owner, which ends its children in order
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.pid} {Path(self.command[0]).name}, status {self.status()}>"

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def status(self) -> int | None:
        """Return the exit status (negative: the signal that ended it), or None while the child runs."""
        return self._await_status(0)

    def is_running(self) -> bool:
        """Return whether the child runs (a frozen one does)."""
        return self.status() is None

    def wait(self, timeout: float) -> int:
        """Wait for the child's end, at most `timeout` seconds, and return its exit status."""
        status = self._await_status(timeout)
        if status is None:
            raise TimeoutError(f"{self!r} still runs after {timeout} s; its log: {self.log}")
        return status

    def signal(self, number: int) -> None:
        """Send a signal to the child alone; do nothing if it has ended."""
        if self.is_running():
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the child and all its descendants at once, and wait until it is gone."""
        if self.is_running():
            watchdog.kill_tree(self.pid)
            self.wait(STOP_TIMEOUT)

    def freeze(self) -> None:
        """Stop the child and all its descendants (SIGSTOP): sockets stay open, but nothing replies."""
        if self.is_running():
            watchdog.signal_tree(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a frozen child and its descendants."""
        if self.is_running():
            watchdog.signal_tree(self.pid, signal.SIGCONT)

    def halt(self, number: int, timeout: float = STOP_TIMEOUT) -> None:
        """Send the child this signal, after resuming it, and kill it if it still runs after the timeout (seconds)."""
        self.resume()
        self.signal(number)
        if self._await_status(timeout) is None:
            self.kill()

    def stop(self, timeout: float = STOP_TIMEOUT) -> int:
        """Send the stop signal, kill the child after the timeout (seconds), and close.

        Returns:
            Its exit status; -9 if it was killed.
        """
        self.halt(self.stop_signal, timeout)
        return self.close()

    def close(self, *, keep: bool = False) -> int:
        """End the rest of the child, free its process id, and remove its folder unless `keep`."""
        if self._watchdog.returncode is None:
            self._await_status(0)
            self._dismiss(watchdog.KEEP if keep else b"")
            if self._status is None:
                self._status = -signal.SIGKILL
        assert self._status is not None
        return self._status

    def read_log(self) -> str:
        """Return the child's output so far."""
        return log_text(self.log)

    def _await_status(self, timeout: float) -> int | None:
        if self._status is None and self._watchdog.returncode is None:
            poll = select.poll()
            poll.register(self._from_watchdog, select.POLLIN)
            if poll.poll(timeout * 1000):
                with contextlib.suppress(BlockingIOError):  # another thread has read it
                    self._status = self._read()
                    if self._status is None:  # the watchdog was killed
                        watchdog.kill_tree(self.pid)
                        self._status = -signal.SIGKILL
        return self._status

    def _read(self) -> int | None:
        """Read the next number from the watchdog; None if the watchdog has ended."""
        number = os.read(self._from_watchdog.fileno(), watchdog.RECORD)
        return int(number) if number else None

    def _dismiss(self, word: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._to_watchdog.fileno(), word)
        with contextlib.suppress(BrokenPipeError):
            self._to_watchdog.close()
        self._watchdog.wait(3 * STOP_TIMEOUT)
        self._from_watchdog.close()
