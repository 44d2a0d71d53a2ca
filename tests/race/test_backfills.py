"""Backfills on two real connections: who holds a row, and who inserts a job at the same moment."""

from __future__ import annotations

import uuid
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from celery_pgbeat.beat.decide.backfiller import Backfiller
from celery_pgbeat.planning import BackfillRow, BackfillStep, Rules
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings
from tests.harness.ticks import HOUR, beat, decided, insert, make_due
from tests.harness.transactions import Attempt, Transaction, at_once

PAST = "now() - interval '5 hours'"


def ask(store: BeatQueries, name: str, max_active: int = 1) -> None:
    store.database.execute(
        f"select pgbeat.backfill(%(name)s, {PAST}, now() - interval '1 hour', max_active => %(most)s)",
        {"name": name, "most": max_active},
    )


def a_step(store: BeatQueries, filling: BackfillRow) -> str:
    """Submit one job."""
    step = BackfillStep((filling.since + HOUR,), filling.since + HOUR, 0, filling.since + 2 * HOUR)
    return store.submit_backfill(filling, step, [uuid.uuid4()], 5, HOUR)


def marked(store: BeatQueries) -> BackfillRow:
    found = store.mark_backfill("UTC")
    assert found is not None
    return found


def active(store: BeatQueries) -> list[tuple[str, str]]:
    rows = store.database.execute("select periodic_task, origin from pgbeat.active_job order by 1, 2")
    return [(row[0], row[1]) for row in rows]


@pytest.fixture
def backfiller(store: BeatQueries) -> Backfiller:
    delivery: Any = SimpleNamespace(wait_for_place=lambda: True, deliver=lambda *_: None)
    tracking: Any = SimpleNamespace(full_acts_as=lambda: "full")
    rules = Rules(timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))
    return Backfiller(store, delivery, tracking, Settings(), rules)


def hourly(store: BeatQueries, name: str, **columns: Any) -> None:
    insert(store, name, schedule="0 * * * *", next_run_at="2100-01-01T00:00:00Z", **columns)


def test_a_row_that_an_author_locks_is_skipped_and_the_others_are_filled(
    store: BeatQueries, backfiller: Backfiller, migrated_database: str
) -> None:
    for name in ("held", "free"):
        hourly(store, name)
        ask(store, name)
    author = Transaction(migrated_database)
    author.execute("update pgbeat.periodic_task set subject = 'x' where name = 'held'")

    assert at_once(lambda: backfiller.run_cycle([]))
    assert [("free", "backfill")] == active(store)
    assert not at_once(lambda: backfiller.run_cycle([]))
    (marks,) = store.database.execute("select count(marked_by) as marks from pgbeat.backfill")
    assert 0 == marks.marks

    author.rollback()
    assert at_once(lambda: backfiller.run_cycle([]))
    assert [("free", "backfill"), ("held", "backfill")] == active(store)


def test_a_tick_that_is_submitted_at_the_same_moment_is_seen_or_sees(
    store: BeatQueries, migrated_database: str
) -> None:
    """Whichever comes first: the other one finds the job, or its own mark taken off."""
    make_due(store, "tick", schedule="0 * * * *")
    ask(store, "tick")
    filling, (row,) = marked(store), store.mark(10)
    first = Transaction(migrated_database)
    assert first.store().submit([decided(row)], "UTC", True, True)

    assert "conflict" == at_once(lambda: a_step(store, filling))
    first.commit()
    assert [("tick", "schedule")] == active(store)
    assert store.mark_backfill("UTC") is None


@pytest.mark.parametrize(
    ("mode", "state", "verdict"),
    [
        ("missing", "succeeded", "conflict"),
        ("missing", "failed", "conflict"),
        ("missing", "skipped", "submitted"),
        ("failed", "succeeded", "conflict"),
        ("failed", "failed", "submitted"),
        ("all", "succeeded", "submitted"),
    ],
)
def test_an_occurrence_that_another_one_ran_between_the_look_and_the_submit_is_judged_anew(
    store: BeatQueries, mode: str, state: str, verdict: str
) -> None:
    hourly(store, "a", overlap="allow")
    ask(store, "a")
    store.database.execute("update pgbeat.backfill set mode = %(mode)s", {"mode": mode})
    filling = marked(store)
    store.database.execute(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, reason, task, created_at, "
        "finished_at) select gen_random_uuid(), 'a', since + interval '1 hour', 'backfill', %(state)s, "
        "case when %(state)s = 'skipped' then 'overlap' end, 'app.probe', now(), now() from pgbeat.backfill",
        {"state": state},
    )

    assert verdict == a_step(store, filling)
    assert (1 if verdict == "submitted" else 0) == len(active(store))


def test_of_two_backfills_of_one_row_one_makes_the_job_of_an_occurrence(
    store: BeatQueries, migrated_database: str
) -> None:
    hourly(store, "a", overlap="allow")
    ask(store, "a")
    ask(store, "a")
    other = beat(migrated_database, "beat-b")
    first, second = marked(store), marked(other)
    second.since = first.since  # asked for a moment apart, and of the same instants

    assert "submitted" == a_step(store, first)
    assert "conflict" == a_step(other, second)
    assert [("a", "backfill")] == active(store)


def test_a_tick_beside_a_backfill_that_is_being_submitted_is_stepped_over_and_then_knows(
    store: BeatQueries, migrated_database: str
) -> None:
    make_due(store, "tick", schedule="0 * * * *")
    ask(store, "tick")
    filling, (row,) = marked(store), store.mark(10)
    first = Transaction(migrated_database)
    assert "submitted" == a_step(first.store(), filling)

    assert [] == at_once(lambda: store.submit([decided(row)], "UTC", True, True))
    first.commit()
    assert [] == store.submit([decided(row)], "UTC", True, True)
    assert [("tick", "backfill")] == active(store)


def test_a_trigger_waits_for_the_step_and_is_refused(store: BeatQueries, migrated_database: str) -> None:
    hourly(store, "a")
    ask(store, "a")
    first = Transaction(migrated_database)
    assert "submitted" == a_step(first.store(), marked(store))
    other = beat(migrated_database, "somebody")

    trigger = Attempt(lambda: other.database.execute("select pgbeat.trigger('a')")).waits_for(first, store.database)
    first.commit()

    with pytest.raises(Exception, match="is not final yet"):
        trigger.answer()
    assert [("a", "backfill")] == active(store)


def test_a_lost_job_that_turns_up_at_the_same_moment_trips_over_the_index(
    store: BeatQueries, migrated_database: str
) -> None:
    """It is no job that anybody sees: only the constraint keeps the two apart."""
    hourly(store, "a")
    ask(store, "a", max_active=2)
    filling = marked(store)
    late = Transaction(migrated_database)
    late.execute(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until) values (gen_random_uuid(), 'a', now(), 'schedule', 'running', "
        "true, 'app.probe', '{}', 'give_up', 'full', '1 h', now())"
    )
    step = Attempt(lambda: a_step(store, filling)).waits_for(late, store.database)
    late.commit()

    assert "conflict" == step.answer()
    assert [("a", "schedule")] == active(store)
    (row,) = store.database.execute("select submitted, marked_by from pgbeat.backfill")
    assert (0, None) == tuple(row)


def test_a_cancel_in_an_open_transaction_keeps_no_beat_waiting(
    store: BeatQueries, backfiller: Backfiller, migrated_database: str
) -> None:
    hourly(store, "a")
    ask(store, "a")
    person = Transaction(migrated_database)
    person.execute("select pgbeat.cancel_backfill(id) from pgbeat.backfill")

    assert not at_once(lambda: backfiller.run_cycle([]))
    person.commit()
    assert not store.look().backfills
    assert [] == active(store)
