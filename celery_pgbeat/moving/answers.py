"""What became of one entry of another scheduler. A source may hold anything: `answered` is the net below each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from celery_pgbeat.errors import PgBeatError
from celery_pgbeat.texts.safe_text import one_line

LONGEST_REASON = 600  # characters; an error may quote the whole entry


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


def answered(name: str, answer: Callable[[], Answer], wrong: str = "it cannot be read") -> Answer:
    """Return the answer to one entry. Whatever it raises refuses this entry, and stops no other one.

    Args:
        name: of the entry.
        answer: decides what becomes of it.
        wrong: what an entry is that Python cannot make sense of.

    Example:
        >>> answered("poll", lambda: {}["schedule"]).reason
        "it cannot be read: KeyError: 'schedule'"
    """
    try:
        return answer()
    except Exception as error:  # noqa: BLE001  the others go on
        own = isinstance(error, PgBeatError) or type(error) is ValueError  # in a sentence of ours
        reason = str(error) if own else f"{wrong}: {type(error).__name__}: {error}"
        return Refused(name, one_line(reason, LONGEST_REASON))
