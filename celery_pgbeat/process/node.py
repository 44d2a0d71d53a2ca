"""Node ids: an id of a process that is never reused, and whether the process with an id is certainly dead."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE = Path("/proc/self/ns/pid")
FIELDS = 5  # host, machine, pid, start time, random part
STATE, START_TIME = 0, 19  # fields of /proc/PID/stat after the command name; the time in clock ticks since boot


@dataclass(frozen=True, slots=True)
class NodeId:
    """The id of one process. Create it after a fork; otherwise parent and child share it.

    It is in each job, so it is short.
    """

    hostname: str
    machine: str
    pid: int
    started: str
    random: str

    @classmethod
    def mine(cls) -> NodeId:
        """Return a new id for this process."""
        pid = os.getpid()
        fields = _stat(pid)
        return cls(
            hostname=socket.gethostname().replace(":", "_")[:80],
            machine=_machine(),
            pid=pid,
            started="0" if fields is None else fields[START_TIME],
            random=secrets.token_hex(4),
        )

    @classmethod
    def parse(cls, text: str) -> NodeId | None:
        """Read an id that another node has written; return None if it is not one of ours."""
        parts = text.split(":")
        if len(parts) != FIELDS or not (parts[2].isascii() and parts[2].isdigit()):
            return None
        return cls(parts[0], parts[1], int(parts[2]), parts[3], parts[4])

    def __str__(self) -> str:
        return f"{self.hostname}:{self.machine}:{self.pid}:{self.started}:{self.random}"

    @property
    def shown(self) -> str:
        """The host and the process, in the words of the views."""
        return f"{self.hostname} (process {self.pid})"

    def is_certainly_dead(self) -> bool:
        """Return whether the process no longer exists; False if this process cannot know that.

        It can look up only processes of the same boot and the same pid namespace. A pid that the kernel has reused
        has another start time.
        """
        if not self.machine or self.machine != _machine():
            return False
        fields = _stat(self.pid)
        if fields is None:  # it has ended, or /proc hides it: hidepid, or ProtectProc of systemd
            return not _exists(self.pid)
        return fields[STATE] == "Z" or fields[START_TIME] != self.started


def _machine() -> str:
    """Return a short name of this boot and this pid namespace; an empty one where /proc does not tell."""
    try:
        boot, namespace = BOOT_ID.read_text(encoding="ascii").strip(), os.readlink(PID_NAMESPACE)
    except OSError:
        return ""
    return sha256(f"{boot} {namespace}".encode()).hexdigest()[:12]


def _stat(pid: int) -> list[str] | None:
    """Return what the kernel says of a process after its command name; None if /proc shows no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()  # the command name, in parentheses, may contain anything


def _exists(pid: int) -> bool:
    """Return whether there is a process, also one of another user."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # we may not signal it
        return True
    return True
