"""What a check finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

ERROR, WARNING, NOTE = "error", "warning", "note"  # wrong now; may go wrong; worth knowing


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: its severity, what it is, and how to fix it; a sentence each."""

    severity: str
    what: str
    mend: str


def named_and_counted(
    found: Sequence[tuple[Any, ...]], most: int, one: Callable[..., Finding], others: Callable[[int], Finding]
) -> Iterator[Finding]:
    """Yield a finding about each of the first `most`, made of its parts, and one about the number of the others."""
    for parts in found[:most]:
        yield one(*parts)
    if len(found) > most:
        yield others(len(found) - most)
