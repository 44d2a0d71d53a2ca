"""What became of one entry of another scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Taken:
    """An entry that can be a row of ours.

    Attributes:
        task: a task, its name, or a signature.
        schedule: what `define` takes.
        columns: the other columns, as `define` takes them. `overlap` is only there if the entry has such a rule.
        changes: what it means here that it did not mean there, in one sentence each.
        paused: whether the entry is switched off.
        key: how the source finds it again, for the cut-over.
        last_run_at: when it was sent last; None if that is not known, or it never was.
    """

    name: str
    task: Any
    schedule: Any
    columns: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    paused: bool = False
    key: Any = None
    last_run_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry that does not become a row, with the reason in one sentence."""

    name: str
    reason: str


Answer = Taken | Refused
