"""Faults at an exact place of a process under test: before or after the nth call of a method of its.

A kill from outside hits a random instant; these hit the one that a test is about. The process writes `fault: …` to its
log first, so that the test can wait for it.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


class Injected(Exception):
    """What a fault of the kind `raise` raises."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        target: the method, as `"package.module:Class.method"`. (A function that another module has imported by name
            cannot be reached.)
        action: `kill` (SIGKILL to itself), `stop` (SIGSTOP to itself), `hang` (sleeps for `seconds`), `raise`.
        when: before the call, or after it has returned.
        call: the nth call in this process, counted from 1; 0 for every call.
        trap: a file, if not empty: it strikes only where this file lies, and takes it away, so that it strikes when the
            test has set the trap, once, in whichever process comes first.
        answered: after a call only if that has answered with something.
    """

    target: str
    action: Literal["kill", "stop", "hang", "raise"]
    when: Literal["before", "after"] = "before"
    call: int = 1
    seconds: float = 60.0
    trap: str = ""
    answered: bool = False

    def is_set(self) -> bool:
        """Return whether it may strike now; a trap that allows it is removed."""
        if not self.trap:
            return True
        try:
            os.unlink(self.trap)
        except FileNotFoundError:
            return False
        return True

    def strike(self) -> None:
        """Let it happen."""
        sys.stderr.write(f"fault: {self.action} {self.when} {self.target}\n")
        sys.stderr.flush()
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(0.2)  # where there are other threads, the stop arrives a moment after the call has returned
        elif self.action == "hang":
            time.sleep(self.seconds)
        else:
            raise Injected(self.target)


def encode(faults: Sequence[Fault]) -> str:
    """Write the faults as JSON, for the environment of the process that is to have them."""
    return json.dumps([asdict(fault) for fault in faults])


def apply(encoded: str) -> None:
    """Build the faults into this process."""
    for values in json.loads(encoded):
        _build_in(Fault(**values))


def _build_in(fault: Fault) -> None:
    module, _, path = fault.target.partition(":")
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    setattr(owner, name, _struck(getattr(owner, name), fault))


def _struck(function: Callable[..., Any], fault: Fault) -> Callable[..., Any]:
    calls = itertools.count(1)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        here = fault.call in (0, next(calls))
        if here and fault.when == "before" and fault.is_set():
            fault.strike()
        result = function(*args, **kwargs)
        if here and fault.when == "after" and (result or not fault.answered) and fault.is_set():
            fault.strike()
        return result

    return wrapper
