"""What the beat's own process declares through Celery's `Scheduler`: `add`, `update_from_dict`, `schedule[...] =`.

It counts as a part of `beat_schedule`, which itself stays as it is. A change makes a new `Added` and never alters one
that another thread may be reading.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Added:
    """The entries that were given, and the entries of `beat_schedule` that no longer count."""

    given: Mapping[str, Any] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()
    replaced: bool = False  # whether no entry of `beat_schedule` counts any more

    def to(self, schedule: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the entries of `beat_schedule` with these changes."""
        if not self.replaced:
            for name, entry in schedule.items():
                if name not in self.removed and name not in self.given:
                    yield name, entry
        yield from self.given.items()


class Additions:
    """The changes to one scheduler's entries, from any thread."""

    def __init__(self) -> None:
        self.current = Added()
        self._lock = threading.Lock()

    def add(self, entries: Mapping[str, Any]) -> None:
        """Declare these in addition; an entry of the same name is replaced."""
        with self._lock:
            before = self.current
            given = {**before.given, **entries}
            self.current = replace(before, given=given, removed=before.removed - entries.keys())

    def replace(self, entries: Mapping[str, Any]) -> None:
        """Declare these instead of `beat_schedule` and of everything that was added."""
        with self._lock:
            self.current = Added(given=dict(entries), replaced=True)

    def remove(self, name: str) -> None:
        """Withdraw this entry."""
        with self._lock:
            before = self.current
            given = {other: entry for other, entry in before.given.items() if other != name}
            self.current = replace(before, given=given, removed=before.removed | {name})
