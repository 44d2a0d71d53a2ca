"""A wrong clock for one process: `libfaketime`, preloaded, shifts its time of day and nothing else.

Monotonic clocks stay as they are, and a second's wait lasts a second.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

# The three clocks of a process, and how long a thread of its waits that is to wait for 0.2 s.
_ASK = """
import threading, time
def clocks(): return [time.time(), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)]
began = clocks()
threading.Event().wait(0.2)
print(*began, clocks()[2] - began[2])
"""
_PATIENCE = 20.0  # seconds for an interpreter to start on a busy machine


class FakeTimeUnavailable(Exception):
    """No wrong clock can be had here."""


def wrong_by(offset: timedelta) -> dict[str, str]:
    """Return the environment of a process whose clock is wrong by this offset, ahead if positive; it has been tried.

    Raises:
        FakeTimeUnavailable: the library is missing, or does not do that to a Python of this machine.
    """
    variables = {
        "LD_PRELOAD": str(_library()),
        "FAKETIME": f"{offset.total_seconds():+}",
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # else a wait for Python's own lock ends at once, and is begun again
    }
    _try(offset, variables)
    return variables


def _library() -> Path:
    # Looked for, not imported: the package would want its own way to preload the library.
    found = importlib.util.find_spec("libfaketime")
    if found is None or found.origin is None:
        raise FakeTimeUnavailable("libfaketime is not installed: pip install libfaketime")
    library = Path(found.origin).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
    if not library.exists():
        raise FakeTimeUnavailable(f"libfaketime brings no library for this machine: there is no {library}")
    return library


def _try(offset: timedelta, variables: dict[str, str]) -> None:
    asked_at = [time.time(), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)]
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _ASK],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise FakeTimeUnavailable("under libfaketime a short wait of this Python does not end") from None
    except subprocess.CalledProcessError as error:
        raise FakeTimeUnavailable(f"under libfaketime a Python ends with {error.returncode}: {error.stderr}") from None
    *told, waited = map(float, answer.stdout.split())
    moved = [there - here for there, here in zip(told, asked_at, strict=True)]
    wanted = [offset.total_seconds(), 0.0, 0.0]
    if any(abs(is_by - should_be) > _PATIENCE for is_by, should_be in zip(moved, wanted, strict=True)):
        raise FakeTimeUnavailable(f"libfaketime moves the clocks by {moved} s, not by {wanted} s")
    if not 0.2 <= waited < _PATIENCE:
        raise FakeTimeUnavailable(f"under libfaketime a wait for 0.2 s lasts for {waited:.3f} s")
