"""Rows that take long to plan or to decide: how long they keep a beat from the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat import planning
from celery_pgbeat.beat.decide import dispatcher, planner
from celery_pgbeat.beat.decide.dispatcher import DECIDED_WITHIN, FIRST_BATCH, SMALLEST_BATCH, Dispatcher
from celery_pgbeat.beat.decide.planner import PLANNED_WITHIN, Planner
from celery_pgbeat.planning import Decision, Due, Planned, Unplanned
from celery_pgbeat.postgres.beat_queries import Marked, PendingWork, Submitted
from celery_pgbeat.settings import Settings
from tests.unit.beat.parts import opened
from tests.unit.planning import rows

NOW = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
AN_AUTHORS = [f"a-{number:04}" for number in range(1_000)]
DAY = timedelta(days=1)


class Clock:
    """Time that passes only while rows are planned and decided: those called `a-…` take long."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.expensive = 0.05

    def __call__(self) -> float:
        return self.seconds

    def spend(self, name: str) -> None:
        self.seconds += self.expensive if name.startswith("a") else 0.0001


class Table:
    """A store of rows that are unplanned, or due; what is decided is due again a day later."""

    def __init__(self, names: Iterable[str]) -> None:
        self.unplanned_names = sorted(names)
        self.due = dict.fromkeys(self.unplanned_names, NOW)
        self.marked: list[str] = []
        self.decided: list[str] = []
        self.fresh: list[int] = []

    def look(self, *_: Any) -> PendingWork:
        is_there = {"due": True, "unplanned": bool(self.unplanned_names)}
        absent = (
            "unsent",
            "slots_to_grant",
            "unreported",
            "past_deadline",
            "in_time",
            "resumes",
            "failing",
            "backfills",
            "downstream",
        )
        return PendingWork(now=NOW, next_run_at=None, **is_there, **dict.fromkeys(absent, False))

    def recheck_future_marks(self) -> int:
        return 0

    def unplanned(self, batch: int, after: str) -> list[Unplanned]:
        return [rows.definition(name=name) for name in self.unplanned_names if name > after][:batch]

    def plan(self, answers: Sequence[Planned], _zone: str) -> list[tuple[str, datetime | None, str | None]]:
        planned = {answer.name for answer in answers}
        self.unplanned_names = [name for name in self.unplanned_names if name not in planned]
        return [(answer.name, answer.next_run_at, answer.problem) for answer in answers]

    def mark_or_submit(self, batch: int, _rules: Any, _full: str, _lazy: Sequence[str], fresh: int, *_: Any) -> Marked:
        self.fresh.append(fresh)
        self.marked = [name for name, due_at in self.due.items() if due_at <= NOW][:batch]
        return Marked([rows.due(NOW, NOW, name=name) for name in self.marked], [])

    def unmark(self, names: Sequence[str]) -> int:
        self.marked = [name for name in self.marked if name not in names]
        return len(names)

    def submit(self, decisions: Sequence[Decision], *_: Any) -> list[Submitted]:
        for decision in decisions:
            self.decided.append(decision.row.name)
            self.due[decision.row.name] += DAY
            self.marked.remove(decision.row.name)
        return [Submitted(decision.row.name, made=False) for decision in decisions]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    def slow_plan(row: Unplanned, rules: Any) -> Planned:
        clock.spend(row.name)
        return planning.plan(row, rules)

    def slow_decide(row: Due, rules: Any) -> Any:
        clock.spend(row.name)
        return planning.decide(row, rules)

    monkeypatch.setattr(planner, "plan", slow_plan)
    monkeypatch.setattr(dispatcher, "decide", slow_decide)
    return clock


def planner_of(table: Any, clock: Clock) -> Planner:
    return Planner(table, Settings(), rows.RULES, clock)


def beat_of(table: Any, clock: Clock) -> Dispatcher:
    return opened(table, stopwatch=clock).dispatcher


def test_a_cycle_ends_its_planning_after_half_a_second_and_the_next_one_goes_on_behind_it(clock: Clock) -> None:
    table = Table(AN_AUTHORS)
    beat = planner_of(table, clock)

    assert beat.plan(1_000)
    assert PLANNED_WITHIN <= clock.seconds < PLANNED_WITHIN + 2 * clock.expensive
    left = list(table.unplanned_names)
    assert beat.plan(1_000)

    assert 0 < len(table.unplanned_names) < len(left) < len(AN_AUTHORS)
    assert table.unplanned_names == left[len(left) - len(table.unplanned_names) :]


def test_a_row_that_takes_longer_than_half_a_second_is_planned_nevertheless(clock: Clock) -> None:
    clock.expensive = 60.0
    table = Table(AN_AUTHORS[:3])
    beat = planner_of(table, clock)

    assert [True, True, True, False] == [beat.plan(1_000) for _ in range(4)]
    assert [] == table.unplanned_names


def test_a_thousand_expensive_rows_that_are_edited_all_the_time_do_not_starve_the_last_name(clock: Clock) -> None:
    table = Table([*AN_AUTHORS, "z"])
    beat = planner_of(table, clock)
    cycles = 0
    while "z" in table.unplanned_names:
        beat.plan(1_000)
        cycles += 1
        table.unplanned_names = sorted({*AN_AUTHORS, *table.unplanned_names})

    assert cycles <= len(AN_AUTHORS) * clock.expensive / PLANNED_WITHIN + 1

    beat.plan(1_000)
    assert AN_AUTHORS[0] not in table.unplanned_names, "behind the last name comes the first one"


def test_rows_that_there_was_no_time_to_decide_are_given_back_at_once(clock: Clock) -> None:
    table = Table(AN_AUTHORS)
    table.unplanned_names = []
    beat = beat_of(table, clock)

    beat.run_cycle()

    assert 0 < len(table.decided) < FIRST_BATCH
    assert clock.seconds < DECIDED_WITHIN + 2 * clock.expensive
    assert [] == table.marked, "no row waits for the end of its lease"


def test_after_a_batch_that_took_too_long_the_next_is_small_and_takes_some_of_the_newest_rows(clock: Clock) -> None:
    table = Table(AN_AUTHORS)
    table.unplanned_names = []
    beat = beat_of(table, clock)

    beat.run_cycle()
    beat.run_cycle()

    assert [0, SMALLEST_BATCH // 4] == table.fresh


def test_expensive_rows_are_all_decided_each_once_and_in_the_order_in_which_they_were_due(clock: Clock) -> None:
    table = Table(AN_AUTHORS[:100])
    table.unplanned_names = []
    beat = beat_of(table, clock)
    while len(table.decided) < 100:
        beat.run_cycle()

    assert AN_AUTHORS[:100] == table.decided


def test_both_budgets_together_leave_a_cycle_about_a_second(clock: Clock) -> None:
    table = Table(AN_AUTHORS)
    beat = beat_of(table, clock)

    beat.run_cycle()

    assert clock.seconds < PLANNED_WITHIN + DECIDED_WITHIN + 4 * clock.expensive
