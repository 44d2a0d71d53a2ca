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

from celery_pgbeat.embedded import watchdog
from celery_pgbeat.embedded.errors import ServerUnavailable

STOP_TIMEOUT = 10.0  # seconds a child gets to stop by itself before it and all its children are killed


def require_posix() -> None:
    """Refuse where there are no process groups and no signals."""
    if sys.platform == "win32":
        raise ServerUnavailable(
            "Private servers run on Linux and macOS, not on Windows: "
            "give the URLs of running ones instead (PGBEAT_URL and a broker URL)"
        )


def log_text(log: Path, begin: int = 0) -> str:
    """Return what a log says from a byte on. Its folder may be another user's: a link in its place is not followed."""
    try:
        with os.fdopen(os.open(log, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            file.seek(begin)
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"(its log cannot be read: {error})"


class Process:
    """A running child with a log file, in a session of its own.

    It ends when this object is closed, and when the process that made it is gone, `kill -9` included. (A process that
    the owner forks without exec holds the same pipe: the child then lives until the last of them ends.)

    Args:
        command: the program and its arguments.
        log: where its output is appended.
        env: its whole environment; None for a copy of ours.
        cwd: its working directory.
        stop_signal: what `stop` sends, and the watchdog once the owner is gone.
        folder: removed after the child's end by `close`, and by the watchdog once the owner is gone.
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
        arguments = [str(log), str(folder or ""), str(int(stop_signal)), str(STOP_TIMEOUT)]
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, *arguments, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,  # Ctrl-C in a terminal reaches the owner only, who decides the order of the end
        )
        assert self._watchdog.stdin is not None
        assert self._watchdog.stdout is not None
        self._told_by = self._watchdog.stdout
        self._word_to = self._watchdog.stdin
        told = self._read()
        if told is None:
            self._dismiss(b"")
            raise ServerUnavailable(
                f"{command[0]} could not be started: the process that was to sit with it ended at once"
            )
        self.pid = told
        os.set_blocking(self._told_by.fileno(), False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.pid} {Path(self.command[0]).name}, status {self.status()}>"

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def status(self) -> int | None:
        """Give the exit status (negative: the signal that ended it), or None while the child runs."""
        return self._await_status(0)

    def is_running(self) -> bool:
        """Tell whether the child runs (a frozen one does)."""
        return self.status() is None

    def wait(self, timeout: float) -> int:
        """Wait for the child's end, at most so many seconds, and return its exit status."""
        status = self._await_status(timeout)
        if status is None:
            raise TimeoutError(f"{self!r} still runs after {timeout} s; its log: {self.log}")
        return status

    def signal(self, number: int) -> None:
        """Send a signal to the child alone; one that has ended gets nothing."""
        if self.is_running():
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the child and all its descendants at once, and wait until it is gone."""
        if self.is_running():
            watchdog.kill_tree(self.pid)
            self.wait(STOP_TIMEOUT)

    def freeze(self) -> None:
        """Stop the child and all its descendants where they stand (SIGSTOP): sockets stay open, nobody answers."""
        if self.is_running():
            watchdog.signal_tree(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen child and its descendants go on."""
        if self.is_running():
            watchdog.signal_tree(self.pid, signal.SIGCONT)

    def halt(self, number: int, timeout: float = STOP_TIMEOUT) -> None:
        """Ask the child to stop by this signal, resume it if need be, and kill it after the timeout (seconds)."""
        self.resume()
        self.signal(number)
        if self._await_status(timeout) is None:
            self.kill()

    def stop(self, timeout: float = STOP_TIMEOUT) -> int:
        """Ask the child to stop, kill it after the timeout (seconds), and close.

        Returns:
            Its exit status: its own, or -9 where it had to be killed.
        """
        self.halt(self.stop_signal, timeout)
        return self.close()

    def close(self, *, keep: bool = False) -> int:
        """End whatever is left of the child, free its process id, and remove its folder unless `keep`."""
        if self._watchdog.returncode is None:
            self._await_status(0)
            self._dismiss(watchdog.KEEP if keep else b"")
            if self._status is None:
                self._status = -signal.SIGKILL
        assert self._status is not None
        return self._status

    def read_log(self) -> str:
        """Read what the child has written so far."""
        return log_text(self.log)

    def _await_status(self, timeout: float) -> int | None:
        if self._status is None and self._watchdog.returncode is None:
            poll = select.poll()
            poll.register(self._told_by, select.POLLIN)
            if poll.poll(timeout * 1000):
                with contextlib.suppress(BlockingIOError):  # another thread was faster
                    self._status = self._read()
                    if self._status is None:  # the watchdog was killed, so the child has none any more
                        watchdog.kill_tree(self.pid)
                        self._status = -signal.SIGKILL
        return self._status

    def _read(self) -> int | None:
        """Read the next number from the watchdog, or nothing if the watchdog is gone."""
        told = os.read(self._told_by.fileno(), watchdog.RECORD)
        return int(told) if told else None

    def _dismiss(self, word: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._word_to.fileno(), word)
        with contextlib.suppress(BrokenPipeError):
            self._word_to.close()
        self._watchdog.wait(3 * STOP_TIMEOUT)
        self._told_by.close()
