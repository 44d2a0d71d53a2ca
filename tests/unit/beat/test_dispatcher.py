"""How much a beat takes on at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from celery_pgbeat.beat import dispatcher
from celery_pgbeat.beat.clock import Watch
from celery_pgbeat.beat.dispatcher import FIRST_BATCH, SMALLEST_BATCH, Dispatcher
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.planning import Decision, Due
from celery_pgbeat.postgres.store import Submitted, View
from celery_pgbeat.settings import Settings
from tests.unit.planning import rows

NOW = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)


class Table:
    """A store with so many rows due, none of which may start anything."""

    def __init__(self) -> None:
        self.due = 0
        self.batches: list[int] = []
        self.busy: DatabaseBusy | None = None

    def look(self, _lazy_names: Sequence[str]) -> View:
        return View(NOW, self.due > 0, None, False, False, False, False, False)

    def mark(self, batch: int, _lazy_names: Sequence[str], _fresh: int) -> list[Due]:
        self.batches.append(batch)
        if self.busy is not None:
            raise self.busy
        taken = min(batch, self.due)
        self.due -= taken
        return [rows.due(NOW, NOW, name=f"row-{number}") for number in range(taken)]

    def submit_free(self, decisions: Sequence[Decision], *_: Any) -> list[Submitted]:
        return [Submitted(decision.row.name, False, False, None, None) for decision in decisions]


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def beat(table: Table, monkeypatch: pytest.MonkeyPatch) -> Dispatcher:
    monkeypatch.setattr(dispatcher, "LOOK_EVERY", 60.0)
    store: Any = table
    publisher: Any = SimpleNamespace(ready=lambda: True)
    outcomes: Any = SimpleNamespace(full_acts_as=lambda _: "full")
    code: Any = SimpleNamespace(lazy_names=[])
    watch = Watch(timedelta(seconds=30))
    return Dispatcher(store, publisher, outcomes, watch, Settings(), rows.RULES, code)


def drive(beat: Dispatcher, table: Table, due: int) -> list[int]:
    """Let so many rows fall due together; return the batches in which they are marked."""
    table.due, table.batches = due, []
    for _ in range(due // SMALLEST_BATCH + 2):
        beat.turn()
    return table.batches


def test_a_beat_takes_a_share_of_what_is_due_and_more_while_there_is_more(beat: Dispatcher, table: Table) -> None:
    assert [FIRST_BATCH, 500, 1000, 1000] == drive(beat, table, 2600)[:4]

    assert FIRST_BATCH == drive(beat, table, 1)[0]


def test_no_more_is_taken_on_than_the_broker_takes_in_a_part_of_the_lease(
    beat: Dispatcher, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beat._delivery, "most_within", lambda seconds: seconds * 20)

    assert [100, 100, 100] == drive(beat, table, 300)[:3]

    monkeypatch.setattr(beat._delivery, "most_within", lambda _: 0.2)
    assert [SMALLEST_BATCH] * 3 == drive(beat, table, 30)[:3]


def test_a_busy_postgres_gets_smaller_batches(beat: Dispatcher, table: Table) -> None:
    table.due, table.busy = 10_000, DatabaseBusy("ended")
    for _ in range(8):
        with pytest.raises(DatabaseBusy):
            beat.turn()

    assert [250, 125, 62, 31, 15, 10, 10, 10] == table.batches
