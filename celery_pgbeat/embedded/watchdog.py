"""Watches one child process and ends it when its owner has ended.

A demo or a test run may be killed with `kill -9`, and its servers must end too. `PR_SET_PDEATHSIG` would be shorter,
but it works only on Linux, is sent when the *thread* that started the child ends, and is cleared when `unshare` enters
a user namespace. So each child has a small parent process: this file, run as a script, with only the standard library.

    owner ──stdin pipe──► watchdog ──fork, setsid──► child
          ◄──stdout pipe──

The watchdog writes the child's process id and later its exit status. It waits until stdin has something to read: a
message from the owner (`keep`: do not remove the folder), or the end of file that the kernel delivers when the owner
dies. Then it ends the child and removes the folder, and only then reaps the child. Until then no other process can get
the child's id, so that the owner can send signals to it without a race.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # typing.TYPE_CHECKING without the import, which would double the start-up time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEEP = b"keep\n"
RECORD = 12  # bytes of one number from the watchdog; a fixed size, so that one read returns one number
_POLL = 0.01  # seconds between two checks of a process that has been sent a signal
_KILL_TIMEOUT = 5.0  # seconds; a killed process ends at once, unless it waits for a disk


def descendants(pid: int) -> list[int]:
    """List the processes below `pid`, nearest first.

    Process groups are not enough: each backend of Postgres has a session of its own.
    """
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    level = [pid]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        found += level
    return found


def signal_tree(pid: int, number: int) -> None:
    """Send a signal to a process, to its group and to all its descendants, parents first."""
    below = descendants(pid)
    _send(os.kill, pid, number)
    _send(os.killpg, pid, number)
    for child in below:
        _send(os.kill, child, number)


def kill_tree(pid: int) -> None:
    """Kill a process and all its descendants, and wait until the descendants have ended.

    They are stopped first: a prefork parent or a postmaster would replace its killed children while we list them. All
    of them must have ended before a Postgres may start again on the same data.
    """
    signal_tree(pid, signal.SIGSTOP)
    below = descendants(pid)
    signal_tree(pid, signal.SIGKILL)
    until = time.monotonic() + _KILL_TIMEOUT
    while any(map(_lives, below)) and time.monotonic() < until:
        time.sleep(_POLL)


def _parents() -> Iterator[tuple[int, int]]:
    """Iterate over the ids of all processes, each with its parent's id."""
    if not os.path.exists("/proc/self/stat"):
        import subprocess

        shown = subprocess.run(["ps", "-axo", "pid=,ppid="], stdout=subprocess.PIPE, text=True, check=True).stdout
        for pid, parent in map(str.split, shown.splitlines()):
            yield int(pid), int(parent)
        return
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as stat:
                # "pid (name) state ppid …": the name may hold spaces and brackets, so count from its last bracket.
                yield int(entry), int(stat.read().rpartition(b")")[2].split()[1])


def _lives(pid: int) -> bool:
    """Return whether a process still runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except ProcessLookupError:
        return False
    except OSError:  # no /proc, or it has just gone
        return not os.path.exists("/proc/self/stat")


def _send(send: Callable[[int, int], None], pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses signals to a zombie by the latter
        send(pid, number)


class _Child:
    """The child process."""

    def __init__(self, log: str, command: list[str], become: Callable[[list[str]], None]) -> None:
        self._status: int | None = None
        self.pid = os.fork()
        if not self.pid:
            self._begin(log, command, become)

    @staticmethod
    def _begin(log: str, command: list[str], become: Callable[[list[str]], None]) -> None:
        """Become the command, in a new session, with an empty stdin and the output appended to the log."""
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            # The folder may belong to another user, who could have replaced the log with a link.
            written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            os.dup2(written, 1)
            os.dup2(written, 2)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and that would be inherited
            become(command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error}\n".encode())
        finally:
            os._exit(127)

    def status(self) -> int | None:
        """Return the exit status (negative: the signal that ended it), or None while it runs."""
        if self._status is None and hasattr(os, "waitid"):
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                self._status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        elif self._status is None:  # macOS before Python 3.13 can only reap
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def end(self, number: int, grace: float) -> None:
        """Send it a signal, and after the grace period (seconds) kill it and its descendants."""
        if self.status() is None:
            signal_tree(self.pid, signal.SIGCONT)
            _send(os.kill, self.pid, number)
            self._wait(grace)
        kill_tree(self.pid)
        self._wait(grace)
        # Reap it: a restarted Postgres counts even a zombie of its predecessor as alive.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self.status() is None and time.monotonic() < until:
            time.sleep(_POLL)


def _report(number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, b"%*d\n" % (RECORD - 1, number))


def _watch(child: _Child, wake: int) -> bytes:
    """Report the child's end; return the owner's message, empty if the owner has ended."""
    reported = False
    while True:
        ready, _, _ = select.select([0, wake], [], [])
        if 0 in ready:
            return os.read(0, len(KEEP))
        os.read(wake, 4096)
        status = child.status()
        if status is not None and not reported:
            reported = True
            _report(status)


def execute(command: list[str]) -> None:
    """Become this program."""
    os.execvp(command[0], command)  # noqa: S606 - no shell is wanted


def main(
    log: str, folder: str, stop_signal: str, grace: str, *command: str, become: Callable[[list[str]], None] = execute
) -> None:
    """Start the command, watch it, and clean up after it. `become` is called in the child and does not return."""
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    # A signal that ends the owner must not end its watchdog first. Not with SIG_IGN: the child would inherit it.
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    child = _Child(log, list(command), become)
    _report(child.pid)
    message = _watch(child, wake)
    child.end(int(stop_signal), float(grace))
    if folder and message != KEEP:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
