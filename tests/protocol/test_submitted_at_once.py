"""A mark that submits at once does what a decision and its submit do, or marks the row and leaves it to them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from celery_pgbeat.planning import Decision, Rules, decide, job_id, plan
from celery_pgbeat.postgres.beat_queries import AtOnce, BeatQueries, Marked
from tests.harness.clock import Clock
from tests.harness.jobs import make_job
from tests.harness.ticks import beat, insert, jobs, row_of
from tests.harness.transactions import Transaction

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
RULES = Rules(timezone="UTC", on_time=30 * SECOND, lease=15 * SECOND)
Left = tuple[dict[str, Any], list[dict[str, Any]]]  # a row and its jobs
NOTHING = Marked([], [])
TICKS = 20  # more than a beat plans ahead
# What differs between two rows of one definition, and what is planned ahead.
OWN = {"id", "name", "periodic_task", "created_at", "planned_ahead", "due_ahead", "token"}

DEFINITIONS: dict[str, dict[str, Any]] = {
    "a plain row": {},
    "a crontab in a zone with DST": {"schedule": "*/20 * * * *", "timezone": "Europe/Berlin"},
    "all that a message needs": {
        "args": [1, "two"],
        "kwargs": {"a": {"b": None}},
        "queue": "q",
        "priority": 3,
        "options": {"expires": 60},
        "sensitive": True,
        "max_run_time": "30m",
        "min_gap": "5m",
        "pause_after_failures": 3,
        "on_lost": "rerun",
        "on_error": "ask",
        "catchup_window": "20s",
        "group_name": "without a limit",
    },
    "one that is only sent": {"tracking": "send"},
    "one that may overlap": {"overlap": "allow"},
    "one with a jitter": {"jitter": "20s"},
    "one with a blackout window": {"blackout": ["10,40 * * * * PT5M"]},
    "one that ends after some runs": {"max_runs": 5},
    "one that ends at an instant": {"end_at": NOON + 5 * MINUTE},
    "one that comes after another": {"after": ["z"]},
    "one of an ordered group": {"group_name": "ordered"},
    "one for people": {"kind": "human", "task": None},
    "one whose next run is a day away": {"schedule": "30 12 * * *"},
}


@pytest.fixture
def clock(migrated_database: str) -> Clock:
    clock = Clock(migrated_database)
    clock.stand_at(NOON - SECOND)
    return clock


@pytest.fixture
def store(migrated_database: str, clock: Clock) -> BeatQueries:
    del clock
    return beat(migrated_database)


def tick(store: BeatQueries, at_once: bool = True) -> list[AtOnce]:
    """Mark, decide and submit what is due; return the rows that were submitted at once."""
    rows = store.mark_or_submit(10, RULES) if at_once else Marked(store.mark(10), [])
    answers = [decide(row, RULES) for row in rows.due]
    decisions = [answer for answer in answers if isinstance(answer, Decision)]
    postponed = [answer for answer in answers if not isinstance(answer, Decision)]
    if postponed:
        store.postpone(postponed)
    if decisions:
        store.submit(decisions, RULES.timezone, True, True)
    return rows.at_once


def planned(store: BeatQueries, clock: Clock, name: str = "a", **columns: Any) -> None:
    """Insert a row, and have a beat decide about its first occurrence: from then on its runs are planned ahead."""
    insert(store, name, **{"schedule": "every 1m", "anchor": NOON, **columns})
    plan_all(store)
    clock.stand_at(row_of(store, name)["next_run_at"])
    assert tick(store) == []
    finish_all(store)
    clock.stand_at(row_of(store, name)["next_run_at"])


def plan_all(store: BeatQueries) -> None:
    rows = store.unplanned(10)
    store.plan([plan(row, RULES) for row in rows], RULES.timezone)


def finish_all(store: BeatQueries) -> None:
    store.database.execute("delete from pgbeat.active_job")


@pytest.mark.parametrize("case", DEFINITIONS)
def test_a_row_that_is_submitted_at_once_is_left_as_a_decision_leaves_it(
    store: BeatQueries, clock: Clock, case: str
) -> None:
    store.database.execute("select pgbeat.define_group('ordered', ordered => true)")
    if "after" in DEFINITIONS[case]:
        insert(store, "z", schedule=None)
    for name in ("at once", "decided"):
        insert(store, name, **{"schedule": "every 1m", "anchor": NOON, **DEFINITIONS[case]})
    plan_all(store)
    counted = 0

    for _ in range(TICKS):
        due = row_of(store, "decided")["next_run_at"]
        assert due == row_of(store, "at once")["next_run_at"] or "jitter" in DEFINITIONS[case]
        if due is None:
            break
        clock.stand_at(max(due, row_of(store, "at once")["next_run_at"]) + SECOND)
        pause(store, "at once")
        assert tick(store, at_once=False) == []
        shown = left_behind(store, "decided")
        unpause(store, "at once")
        counted += len(tick(store))
        assert different(left_behind(store, "at once"), shown) == [] or "jitter" in DEFINITIONS[case]
        finish_all(store)

    refused = {"one that comes after another", "one of an ordered group", "one for people"}
    refused |= {"one whose next run is a day away"}
    assert (counted == 0) == (case in refused), counted


def pause(store: BeatQueries, name: str) -> None:
    """Hide a row from the beats, without an edit."""
    write(store, f"update pgbeat.periodic_task set problem = 'hidden' where name = '{name}'")


def unpause(store: BeatQueries, name: str) -> None:
    write(store, f"update pgbeat.periodic_task set problem = null where name = '{name}'")


def write(store: BeatQueries, statement: str) -> None:
    """Write past the row trigger, as beats do."""
    store.database.execute(f"set session_replication_role = replica; {statement}; reset session_replication_role")


def left_behind(store: BeatQueries, name: str) -> Left:
    """Return the row and its jobs, without what is each one's own."""
    row = {column: value for column, value in row_of(store, name).items() if column not in OWN | {"mark_lease"}}
    found = [dict(one._mapping) for one in store.database.execute(_ACTIVE, {"name": name})]
    return row, [{column: value for column, value in job.items() if column not in OWN} for job in found]


def different(one: Left, other: Left) -> list[Any]:
    """Return what is different."""
    (row, jobs), (other_row, other_jobs) = one, other
    assert len(jobs) == len(other_jobs)
    pairs = [(row, other_row), *zip(jobs, other_jobs, strict=True)]
    return [(column, a[column], b[column]) for a, b in pairs for column in a if a[column] != b[column]]


_ACTIVE = "select * from pgbeat.active_job where periodic_task = %(name)s order by scheduled_for"


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"jitter": "50s"},
        {"blackout": ["6 * * * * PT5M"]},
        {"blackout": ["6 * * * * PT5M"], "blackout_action": "skip", "jitter": "50s"},
    ],
)
def test_p3_what_is_submitted_at_once_is_what_is_decided(
    store: BeatQueries, clock: Clock, columns: dict[str, Any]
) -> None:
    planned(store, clock, **columns)
    for _ in range(3):
        (row,) = store.mark(10)
        expected = decide(row, RULES)
        store.unmark()

        (at_once,) = tick(store)

        assert isinstance(expected, Decision)
        assert isinstance(at_once.job, UUID)
        assert (expected.job, expected.scheduled_for, expected.due_at) == (
            at_once.job,
            at_once.planned_for,
            at_once.next_run_at,
        )
        (job,) = jobs(store)
        assert (expected.job, expected.scheduled_for, expected.due_at) == (
            job["id"],
            job["scheduled_for"],
            job["due_at"],
        )
        left = row_of(store, "a")
        assert (expected.next_run_at, expected.planned_for) == (left["next_run_at"], left["planned_for"])
        finish_all(store)
        clock.stand_at(left["next_run_at"])


@pytest.mark.parametrize("name", ["a", "naïve \u2028 'quoted' \\x00", "名" * 200])
def test_p3_postgres_computes_the_ids_of_python(store: BeatQueries, name: str) -> None:
    for instant in (NOON, NOON - SECOND / 1_000_000, NOON.replace(year=1066), NOON.replace(year=9999)):
        values = {"name": name, "created_at": NOON, "instant": instant}
        (row,) = store.database.execute("select pgbeat.job_id(%(name)s, %(created_at)s, %(instant)s)::text", values)

        assert str(job_id(name, NOON, instant)) == row[0]


def test_a_row_is_not_submitted_at_once_where_a_window_may_have_opened_since_it_was_due(
    store: BeatQueries, clock: Clock
) -> None:
    patient = Rules(timezone="UTC", on_time=10 * MINUTE, lease=15 * SECOND)
    planned(store, clock, blackout=["0 15 * * * PT1H"])
    clock.advance(MINUTE + SECOND)
    assert [] == store.mark_or_submit(10, patient).at_once
    store.unmark()
    clock.advance(-2 * SECOND)

    assert ["a"] == [row.name for row in store.mark_or_submit(10, patient).at_once]


def test_what_is_planned_ahead_stays_as_it_is_until_a_beat_decides_again(store: BeatQueries, clock: Clock) -> None:
    planned(store, clock, jitter="20s")
    before = row_of(store, "a")
    for _ in range(5):
        assert ["a"] == [row.name for row in tick(store)]
        finish_all(store)
        clock.stand_at(row_of(store, "a")["next_run_at"])

    after = row_of(store, "a")
    assert before["planned_for"] + 5 * MINUTE == after["planned_for"]
    for column in ("planned_ahead", "due_ahead"):
        assert before[column] == after[column]


HINDRANCES: dict[str, tuple[dict[str, Any], Callable[[BeatQueries, Clock], object]]] = {
    "a job of the row": ({}, lambda store, _: make_job(store.database, periodic_task="a")),
    "a buffered job of the row": (
        {"overlap": "buffer_all"},
        lambda store, _: make_job(store.database, periodic_task="a", state="buffered", exclusive=False),
    ),
    "a limit of its group": (
        {"group_name": "g"},
        lambda store, _: store.database.execute("select pgbeat.limit_group('g', 1)"),
    ),
    "the end of its group": (
        {"group_name": "g"},
        lambda store, _: store.database.execute("select pgbeat.finish_group('g')"),
    ),
    "failures for which it is to be paused": (
        {"pause_after_failures": 1},
        lambda store, _: store.database.execute(
            "insert into pgbeat.periodic_task_state (name, failures_in_row, failures_from, pause_due)"
            " select name, 1, failures_from, true from pgbeat.periodic_task"
        ),
    ),
    "the mark of a beat that died": (
        {},
        lambda store, _: write(
            store,
            "update pgbeat.periodic_task set marked_by = 'beat-b', marked_at = pgbeat.now() - interval '1 minute',"
            " mark_lease = interval '15 s'",
        ),
    ),
    "that it is late": ({}, lambda _, clock: clock.advance(31 * SECOND)),
    "that it is later than its catchup_window": ({"catchup_window": "5s"}, lambda _, clock: clock.advance(6 * SECOND)),
    "that it is due at another instant than was planned": (
        {},
        lambda store, _: write(store, "update pgbeat.periodic_task set next_run_at = next_run_at - interval '1 s'"),
    ),
    "that its occurrence is decided": (
        {},
        lambda store, _: write(store, "update pgbeat.periodic_task set last_run_at = planned_for"),
    ),
}


@pytest.mark.parametrize("hindrance", HINDRANCES)
def test_a_row_is_marked_and_not_submitted_at_once_because_of(store: BeatQueries, clock: Clock, hindrance: str) -> None:
    columns, hinder = HINDRANCES[hindrance]
    planned(store, clock, **columns)
    hinder(store, clock)
    before = jobs(store)

    rows = store.mark_or_submit(10, RULES)

    assert ([], ["a"]) == (rows.at_once, [row.name for row in rows.due])
    assert "beat-a" == row_of(store, "a")["marked_by"]
    assert before == jobs(store)


EDITS = {
    "schedule": "'every 2m'",
    "timezone": "'Asia/Tokyo'",
    "jitter": "'10s'",
    "blackout": "array['0 3 * * * PT1H']",
    "args": "'[2]'",
    "queue": "'other'",
    "next_run_at": "next_run_at + interval '1 s'",
    "enabled": "false",
    "name": "'b'",
    "max_runs": "100",
    "end_at": "'2027-01-01'",
}


@pytest.mark.parametrize("column", EDITS)
def test_every_change_takes_away_what_was_planned_ahead(store: BeatQueries, clock: Clock, column: str) -> None:
    planned(store, clock)
    assert row_of(store, "a")["planned_ahead"]

    store.database.execute(f"update pgbeat.periodic_task set {column} = {EDITS[column]}")

    (left,) = store.database.execute("select planned_ahead, due_ahead from pgbeat.periodic_task")
    assert tuple(left) == (None, None)


def test_what_changes_nothing_leaves_it(store: BeatQueries, clock: Clock) -> None:
    planned(store, clock)

    store.database.execute("update pgbeat.periodic_task set subject = 'words'")

    assert [row.name for row in tick(store)] == ["a"]


def test_an_edit_that_is_not_committed_yet_is_neither_waited_for_nor_overtaken(
    migrated_database: str, store: BeatQueries, clock: Clock
) -> None:
    planned(store, clock)
    author = Transaction(migrated_database)
    author.execute("update pgbeat.periodic_task set args = '[2]'")

    assert NOTHING == store.mark_or_submit(10, RULES)
    author.commit()

    (row,) = store.mark_or_submit(10, RULES).due
    assert "[2]" == row.args


def test_p1_of_two_beats_one_submits_at_once_and_the_other_sees_the_next_run(
    migrated_database: str, store: BeatQueries, clock: Clock
) -> None:
    planned(store, clock)
    first = Transaction(migrated_database)

    (row,) = first.store("beat-b").mark_or_submit(10, RULES).at_once
    assert NOTHING == store.mark_or_submit(10, RULES)
    first.commit()

    assert NOTHING == store.mark_or_submit(10, RULES)
    (job,) = jobs(store)
    assert (row.job, "beat-b") == (job["id"], job["beat"])


def test_p3_a_beat_that_dies_after_it_submitted_at_once_is_replaced_when_its_lease_is_over(
    migrated_database: str, store: BeatQueries, clock: Clock
) -> None:
    planned(store, clock)
    (row,) = beat(migrated_database, "beat-b").mark_or_submit(10, RULES).at_once

    assert store.recover(10, RULES.on_time) == []
    clock.advance(16 * SECOND)

    assert [row.job] == [job.id for job in store.recover(10, RULES.on_time)]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_commit_waits_for_the_disk_if_there_is_a_job_in_it(
    migrated_database: str, store: BeatQueries, clock: Clock, at_once: bool
) -> None:
    planned(store, clock)
    transaction = Transaction(migrated_database)
    tick(transaction.store(), at_once) if at_once else transaction.store().mark(10)

    (row,) = transaction.execute("show synchronous_commit")

    assert (row[0] != "off") == at_once
    transaction.rollback()


def test_rows_of_both_kinds_come_from_one_mark_those_due_longest_first(store: BeatQueries, clock: Clock) -> None:
    planned(store, clock)
    insert(store, "b", next_run_at=NOON)
    insert(store, "c", next_run_at=clock.now())

    rows = store.mark_or_submit(2, RULES)

    assert (["b"], ["a"]) == ([row.name for row in rows.due], [row.name for row in rows.at_once])


def test_a_row_among_the_longest_due_and_the_newest_is_submitted_once_and_not_marked(
    store: BeatQueries, clock: Clock
) -> None:
    planned(store, clock)

    rows = store.mark_or_submit(10, RULES, fresh=5)

    assert ([], ["a"]) == (rows.due, [row.name for row in rows.at_once])
    assert row_of(store, "a")["marked_by"] is None
