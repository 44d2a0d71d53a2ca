"""A row that was decided up to a time to come, because the database's clock was ahead: a person has it continue."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from click.testing import CliRunner

from celery_pgbeat.cli import main
from celery_pgbeat.planning import Decision, Rules, decide, plan
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from tests.harness.clock import Clock
from tests.harness.session import Session
from tests.harness.situations import in_short
from tests.harness.ticks import HOUR, beat

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
TEN_PAST = NOON + timedelta(minutes=10)
RULES = Rules(timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))
SILENCE = timedelta(seconds=30)
HOURLY = "0 * * * *"


@pytest.fixture
def store(migrated_database: str, database_clock: Clock) -> Iterator[BeatQueries]:
    """A beat at ten past noon, with a row `a` that runs each hour and waits for the next one."""
    database_clock.stand_at(TEN_PAST)
    made = beat(migrated_database)
    Session(migrated_database).insert("a", schedule=HOURLY)
    cycle(made)
    yield made
    made.database.close()


def cycle(store: BeatQueries, ending: bool = True) -> list[uuid.UUID]:
    """Plan and decide all that there is, as a beat does; return the jobs that were made, which have run."""
    store.plan([plan(row, RULES) for row in store.unplanned(100)], "UTC")
    made: list[uuid.UUID] = []
    while rows := store.mark(100):
        decisions = [decision for row in rows if isinstance(decision := decide(row, RULES), Decision)]
        answers = store.submit(decisions, "UTC", may_judge=False, resending=False)
        jobs = {decision.row.name: decision.job for decision in decisions}
        made += [job for answer in answers if answer.made and (job := jobs[answer.name]) is not None]
        if ending:
            run(store, made)
    return made


def run(store: BeatQueries, jobs: list[uuid.UUID]) -> None:
    reports = WorkerQueries(store.database)
    for job in jobs:
        start = Start(job, 0, 0, uuid.uuid4(), "web")
        if reports.start(start, SILENCE):
            assert reports.finish(start, "succeeded")


def ahead(store: BeatQueries, clock: Clock, instant: datetime, ending: bool = True) -> list[uuid.UUID]:
    """Have the clock show another time for one cycle."""
    now = clock.now()
    clock.stand_at(instant)
    made = cycle(store, ending)
    clock.stand_at(now)
    return made


def ledger(session: Session, since: datetime = NOON) -> list[tuple[datetime, str]]:
    """Return what has become of occurrences, in the order in which it was decided."""
    rows = session.rows("select * from pgbeat.job where scheduled_for >= %s order by created_at, scheduled_for", since)
    return [(row["scheduled_for"], row["state"]) for row in rows]


def by_api(session: Session) -> None:
    session.rows("select pgbeat.schedule('a', 'app.probe', '30 * * * *')")


DOORS: dict[str, Callable[[Session], Any]] = {
    "pause and resume": lambda session: session.rows("select pgbeat.pause('a'); select pgbeat.resume('a')"),
    "resume what is not paused": lambda session: session.rows("select pgbeat.resume('a')"),
    "an update of enabled": lambda session: [
        session.rows("update pgbeat.periodic_task set enabled = %s", value) for value in (False, True)
    ],
    "another schedule": lambda session: session.rows("update pgbeat.periodic_task set schedule = '30 * * * *'"),
    "another zone": lambda session: session.rows("update pgbeat.periodic_task set timezone = 'Asia/Tokyo'"),
    "schedule()": by_api,
}


@pytest.mark.parametrize("jump", [timedelta(hours=3), timedelta(days=1200)])
@pytest.mark.parametrize("door", DOORS)
def test_a_person_lets_a_row_go_on_that_was_decided_ahead(
    store: BeatQueries, session: Session, database_clock: Clock, door: str, jump: timedelta
) -> None:
    assert 1 == len(ahead(store, database_clock, TEN_PAST + jump))
    database_clock.stand_at(NOON + HOUR)
    assert [] == cycle(store), "no beat undoes what is decided"
    database_clock.stand_at(NOON + HOUR + timedelta(minutes=10))

    DOORS[door](session)
    cycle(store)

    row = session.task("a")
    expected = NOON + (1.5 * HOUR if row["schedule"].startswith("30") else 2 * HOUR)
    assert (expected, expected) == (row["next_run_at"], row["planned_for"])
    database_clock.stand_at(expected)
    (job,) = cycle(store)
    assert expected == session.value("select scheduled_for from pgbeat.job where id = %s", str(job))
    assert expected + HOUR == session.task("a")["next_run_at"]


def test_a_next_run_of_ones_own_is_a_run_now_and_the_schedule_goes_on(
    store: BeatQueries, session: Session, database_clock: Clock
) -> None:
    ahead(store, database_clock, datetime(2030, 1, 1, 0, 30, tzinfo=timezone.utc))

    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    (job,) = cycle(store)

    when = session.value("select scheduled_for from pgbeat.job where id = %s", str(job))
    assert TEN_PAST <= when <= TEN_PAST + timedelta(microseconds=1), "of the instant of the decision"
    assert NOON + HOUR == session.task("a")["next_run_at"]


def test_what_was_decided_ahead_runs_again_at_its_time_as_another_job(
    store: BeatQueries, session: Session, database_clock: Clock
) -> None:
    (early,) = ahead(store, database_clock, TEN_PAST + 3 * HOUR)
    session.rows("select pgbeat.resume('a')")
    cycle(store)

    made = []
    for hour in range(1, 5):
        database_clock.stand_at(NOON + hour * HOUR)
        made += cycle(store)

    assert 5 == len({early, *made})
    assert [(NOON + hour * HOUR, "succeeded") for hour in (1, 2, 3, 3, 4)] == sorted(
        entry for entry in ledger(session) if entry[1] == "succeeded"
    )
    rows = session.rows("select id, count(*) from pgbeat.job group by id having count(*) > 1")
    assert [] == rows, "no id is there twice"


def test_a_job_from_ahead_that_still_runs_is_in_the_way_as_any_other(
    store: BeatQueries, session: Session, database_clock: Clock
) -> None:
    (early,) = ahead(store, database_clock, NOON + HOUR, ending=False)
    session.rows("select pgbeat.resume('a')")
    cycle(store)
    database_clock.stand_at(NOON + HOUR)

    assert [] == cycle(store)

    (record,) = session.rows("select * from pgbeat.finished_job where reason = 'overlap'")
    assert (NOON + HOUR, str(early)) == (record["scheduled_for"], str(record["blocked_by"]))
    assert str(early) != str(record["id"])


def test_each_beginning_gives_other_ids(store: BeatQueries, session: Session, database_clock: Clock) -> None:
    made = []
    for _ in range(3):
        made += ahead(store, database_clock, NOON + HOUR)
        session.rows("select pgbeat.resume('a')")
        cycle(store)

    assert 3 == len(set(made))


@pytest.mark.parametrize("change", ["args = '[1]'", "queue = 'q'", "subject = 'x'", "enabled = false", "lazy = lazy"])
def test_other_changes_leave_decided_what_is_decided(
    store: BeatQueries, session: Session, database_clock: Clock, change: str
) -> None:
    ahead(store, database_clock, NOON + 3 * HOUR)

    session.rows(f"update pgbeat.periodic_task set {change}")

    row = session.task("a")
    assert (NOON + 3 * HOUR, None) == (row["last_run_at"], row["decided_anew_at"])


@pytest.mark.parametrize("door", DOORS)
def test_where_nothing_is_decided_ahead_ids_stay_what_they_are(store: BeatQueries, session: Session, door: str) -> None:
    DOORS[door](session)

    assert session.task("a")["decided_anew_at"] is None


def test_a_row_that_was_made_while_the_clock_was_ahead_goes_on_too(
    store: BeatQueries, session: Session, database_clock: Clock
) -> None:
    database_clock.stand_at(datetime(2030, 1, 1, 0, 30, tzinfo=timezone.utc))
    session.insert("b", schedule="every 1h")
    cycle(store)
    database_clock.stand_at(TEN_PAST)
    assert 2030 == session.task("b")["next_run_at"].year

    session.rows("select pgbeat.resume('b')")
    cycle(store)

    assert TEN_PAST + HOUR == session.task("b")["next_run_at"]


def test_a_row_of_a_group_goes_on_with_its_group(store: BeatQueries, session: Session, database_clock: Clock) -> None:
    session.rows("update pgbeat.periodic_task set group_name = 'g'")
    ahead(store, database_clock, NOON + 3 * HOUR)

    session.rows("select pgbeat.pause_group('g'); select pgbeat.resume_group('g')")
    cycle(store)

    assert NOON + HOUR == session.task("a")["next_run_at"]


def test_a_submit_from_ahead_changes_nothing_after_the_person(
    store: BeatQueries, session: Session, database_clock: Clock
) -> None:
    ahead(store, database_clock, NOON + 3 * HOUR)
    database_clock.stand_at(NOON + 4 * HOUR)
    (row,) = store.mark(10)
    decision = decide(row, RULES)
    assert isinstance(decision, Decision)
    database_clock.stand_at(TEN_PAST)

    session.rows("select pgbeat.resume('a')")

    assert [] == store.submit([decision], "UTC", may_judge=False, resending=False)
    assert TEN_PAST == session.task("a")["last_run_at"]


def test_what_is_decided_ahead_is_shown_with_the_way_out(
    store: BeatQueries, session: Session, database_clock: Clock, migrated_database: str
) -> None:
    assert "waiting" == session.value("select state from pgbeat.status")
    ahead(store, database_clock, datetime(2030, 1, 1, 0, 30, tzinfo=timezone.utc))

    assert "decided ahead until 2030-01-01 00:00:00Z" == session.value("select state from pgbeat.status")
    sentence = in_short(session.value("select pgbeat.explain('a')"))
    assert (
        "its next run is at 2030-01-01 01:00:00Z, for the clock of the database was ahead, and all up to "
        "2030-01-01 00:00:00Z counts as decided: call resume() to continue from now;"
    ) in sentence
    doctor = json.loads(CliRunner().invoke(main, ["--url", migrated_database, "doctor", "--json"]).stdout)
    found = [finding for finding in doctor["findings"] if "was ahead" in finding["what"]]
    assert ["1 row, the first is 'a' until 2030-01-01 00:00:00Z."] == [
        finding["what"].rpartition("ahead: ")[2] for finding in found
    ]

    session.rows("select pgbeat.resume('a')")
    cycle(store)

    assert "waiting" == session.value("select state from pgbeat.status")
    assert "was ahead" not in session.value("select pgbeat.explain('a')")
