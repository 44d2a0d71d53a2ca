"""What other processes use, by /proc: their state, their processor time and their memory."""

from __future__ import annotations

import os
import re
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def is_alive(pid: int) -> bool:
    """Return whether there is such a process, and it is no zombie that its parent has not reaped yet."""
    try:
        return _fields(pid)[0] != "Z"
    except OSError:
        return False


def cpu_seconds(pid: int, *, with_children: bool = False) -> float:
    """Return the processor seconds that a process has used, if asked for with the children that it has reaped."""
    return sum(map(int, _fields(pid)[11 : 15 if with_children else 13])) / TICKS


def memory(pid: int, line: str = "VmRSS") -> int:
    """Return the kB that a process has in memory (`VmHWM`: the most that it had), without its children."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^{line}:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found)


def _fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
