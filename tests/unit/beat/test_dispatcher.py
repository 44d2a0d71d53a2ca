"""How much a beat takes on at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from celery_pgbeat.beat.database_clock import DatabaseClock
from celery_pgbeat.beat.decide.dispatcher import FIRST_BATCH, SMALLEST_BATCH, Dispatcher
from celery_pgbeat.beat.steps import LONGEST_PAUSE
from celery_pgbeat.beat.wiring import Beat
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.planning import Decision
from celery_pgbeat.postgres.beat_queries import Marked, PendingWork, Submitted
from celery_pgbeat.settings import Settings
from tests.unit.beat.parts import opened
from tests.unit.planning import rows

NOW = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
SOON = timedelta(milliseconds=100)


class Table:
    """A store with so many rows due, none of which may start anything."""

    def __init__(self) -> None:
        self.due = 0
        self.next_run_at: datetime | None = None
        self.locked = False
        self.late_by = timedelta()
        self.looks = 0
        self.batches: list[int] = []
        self.busy: DatabaseBusy | None = None
        self.failing = False
        self.paused: list[list[tuple[str, str | None]]] = []
        self.now = NOW
        self.in_time = self.past_deadline = False
        self.rechecks: list[str] = []

    def look(self, *_: Any) -> PendingWork:
        self.looks += 1
        return PendingWork(
            now=self.now,
            due=self.due > 0,
            next_run_at=self.next_run_at,
            unplanned=False,
            unsent=False,
            slots_to_grant=False,
            unreported=False,
            past_deadline=self.past_deadline,
            in_time=self.in_time,
            resumes=False,
            failing=self.failing,
            backfills=False,
            downstream=False,
        )

    def recheck(self, _batch: int) -> int:
        self.rechecks.append("passed")
        self.in_time = False
        return 1

    def recheck_future_marks(self) -> int:
        self.rechecks.append("ahead")
        return 0

    def pause_failing(self, _batch: int) -> list[tuple[str, str | None]]:
        return self.paused.pop(0)

    def pause_failed_groups(self) -> list[tuple[str, str]]:
        return []

    def mark_or_submit(self, batch: int, *_: Any) -> Marked:
        self.batches.append(batch)
        if self.busy is not None:
            raise self.busy
        taken = 0 if self.locked else min(batch, self.due)
        self.due -= taken
        return Marked([rows.due(NOW, NOW - self.late_by, name=f"row-{number}") for number in range(taken)], [])

    def submit(self, decisions: Sequence[Decision], *_: Any) -> list[Submitted]:
        return [Submitted(decision.row.name, made=False) for decision in decisions]


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def own_clock(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The beat knows the time to the microsecond."""
    monkeypatch.setattr(DatabaseClock, "database_time", property(lambda _: table.now))


@pytest.fixture
def broker() -> Any:
    return SimpleNamespace(is_ready_within=lambda _seconds: True, is_proven=True, problem=None)


@pytest.fixture
def parts(table: Table, broker: Any) -> Beat:
    return opened(table, broker, look_every=60.0, stopwatch=lambda: 0.0)  # deciding takes no time


@pytest.fixture
def beat(parts: Beat) -> Dispatcher:
    return parts.dispatcher


def drive(beat: Dispatcher, table: Table, due: int) -> list[int]:
    """Let so many rows fall due together; return the batches in which they are marked."""
    table.due, table.batches = due, []
    for _ in range(due // SMALLEST_BATCH + 2):
        beat.run_cycle()
    return table.batches


def test_a_batch_is_small_at_first_and_grows_while_there_is_a_backlog(
    beat: Dispatcher, parts: Beat, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts.delivery, "most_within", lambda _seconds: math.inf)

    assert [FIRST_BATCH, 500, 1000, 1000] == drive(beat, table, 2600)[:4]

    assert FIRST_BATCH == drive(beat, table, 1)[0]


def test_a_batch_is_no_larger_than_the_broker_takes_in_a_part_of_the_lease(
    beat: Dispatcher, parts: Beat, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts.delivery, "most_within", lambda seconds: seconds * 20)

    assert [100, 100, 100] == drive(beat, table, 300)[:3]

    monkeypatch.setattr(parts.delivery, "most_within", lambda _: 0.2)
    assert [SMALLEST_BATCH] * 3 == drive(beat, table, 30)[:3]


@pytest.mark.parametrize(
    ("due", "late_by", "marks"),
    [(0, 0, 0), (1, 0, 1), (2, 0, 2), pytest.param(1, 2, 2, id="a row that catches up may be due again")],
)
def test_a_beat_marks_without_a_look_only_where_more_may_be_due(
    beat: Dispatcher, table: Table, due: int, late_by: int, marks: int
) -> None:
    table.due, table.late_by = due, timedelta(seconds=late_by)
    for _ in range(2):
        beat.run_cycle()

    assert marks == len(table.batches)


@pytest.mark.usefixtures("own_clock")
def test_a_row_that_the_last_look_has_announced_is_marked_without_another_look(beat: Dispatcher, table: Table) -> None:
    table.next_run_at = NOW + SOON
    assert SOON.total_seconds() == beat.run_cycle()
    table.now, table.due = NOW + SOON, 1

    assert 0.0 == beat.run_cycle()
    assert (1, 1) == (table.looks, len(table.batches))


@pytest.mark.usefixtures("own_clock")
def test_a_row_that_another_transaction_locks_makes_no_other_row_late(
    parts: Beat, beat: Dispatcher, table: Table
) -> None:
    table.due, table.locked, table.next_run_at = 1, True, NOW + timedelta(milliseconds=20)

    assert [0.02, 0.02, 0.02] == pytest.approx([beat.run_cycle() for _ in range(3)])


@pytest.mark.usefixtures("own_clock")
def test_a_beat_that_finds_no_place_for_a_batch_is_woken_when_there_is_one(
    parts: Beat, beat: Dispatcher, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would sleep for a whole poll, because nothing can be marked at the next instant either."""
    asked = []
    monkeypatch.setattr(parts.delivery, "wait_for_place", lambda: asked.append("to be woken"))
    table.next_run_at = NOW + SOON

    assert beat.run_cycle() > SOON.total_seconds()
    assert ["to be woken"] == asked


def test_a_busy_postgres_gets_smaller_batches(beat: Dispatcher, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("celery_pgbeat.beat.steps.boottime", itertools.count(step=LONGEST_PAUSE).__next__)
    table.due, table.busy = 10_000, DatabaseBusy("ended")
    for _ in range(8):
        beat.run_cycle()

    assert [250, 125, 62, 31, 15, 10, 10, 10] == table.batches


def test_a_pause_of_locked_rows_is_tried_again_after_growing_waits(
    beat: Dispatcher, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    table.failing, table.paused = True, [[], [], [], [("row-1", "3 failed jobs in a row"), ("row-2", None)], []]

    assert [0.05, 0.1, 0.2, 0.0, 0.05] == [beat.run_cycle() for _ in range(5)]

    assert [("WARNING", "Paused 'row-1': 3 failed jobs in a row")] == [
        (record.levelname, record.message) for record in caplog.records
    ]


def test_after_a_recheck_of_jobs_in_time_the_beat_looks_again_at_once(beat: Dispatcher, table: Table) -> None:
    beat.run_cycle()
    table.in_time, table.rechecks = True, []

    assert 0 == beat.run_cycle()
    assert ["passed"] == table.rechecks
    assert beat.run_cycle() > 0


def test_while_a_batch_waits_for_a_broker_that_hangs_nothing_is_marked_and_other_steps_go_on(
    beat: Dispatcher, parts: Beat, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts.delivery, "wait_for_place", lambda: False)
    table.due, table.in_time = 100, True

    assert 0 == beat.run_cycle()  # more of what needs no broker may be there
    assert ["passed", "ahead"] == table.rechecks
    rests = [beat.run_cycle() for _ in range(3)]
    assert rests == sorted(rests)
    assert rests[0] > 0
    assert [] == table.batches

    monkeypatch.undo()
    assert 0 == beat.run_cycle()
    assert [100] == [100 - table.due]


def test_steps_that_need_no_broker_go_on_while_it_is_away(beat: Dispatcher, table: Table, broker: Any) -> None:
    broker.is_ready_within, broker.probe_in = (lambda _seconds: False), 5.0
    table.due, table.in_time = 1, True

    assert 0 == beat.run_cycle()
    assert 0 < beat.run_cycle() <= Settings().poll.total_seconds()
    assert [] == table.batches


def test_jobs_marked_in_the_future_are_searched_at_the_start_and_when_the_clock_is_set_back(
    beat: Dispatcher, table: Table
) -> None:
    beat.run_cycle()
    beat.run_cycle()
    assert ["ahead"] == table.rechecks

    table.now -= timedelta(hours=1)
    beat.run_cycle()
    beat.run_cycle()
    assert ["ahead", "ahead"] == table.rechecks


@pytest.mark.parametrize("is_away", [False, True])
def test_an_idle_beat_rests_for_less_than_what_it_takes_for_an_outage(
    beat: Dispatcher, table: Table, broker: Any, is_away: bool
) -> None:
    beat.settings = Settings(poll=timedelta(minutes=1))
    if is_away:
        table.due, broker.probe_in, broker.is_ready_within = 1, 60.0, lambda _seconds: False

    assert beat.run_cycle() < (Settings().dead_after / 3).total_seconds()


def test_lapsed_jobs_cause_no_busy_loop_while_a_beat_may_not_judge_yet(beat: Dispatcher, table: Table) -> None:
    table.past_deadline = True

    assert [1.0, 1.0] == [beat.run_cycle(), beat.run_cycle()]
