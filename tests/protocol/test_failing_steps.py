"""A step of a beat's cycle that fails by itself: what is due is sent all the same, and the log has the error."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery

from celery_pgbeat.beat import steps
from celery_pgbeat.beat.decide.dispatcher import SUBMIT_DUE, Dispatcher
from celery_pgbeat.beat.steps import LONGEST_PAUSE, REMIND_EVERY, Steps
from celery_pgbeat.beat.upkeep.janitor import Janitor
from celery_pgbeat.beat.upkeep.mode import Mode
from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.process.node import NodeId
from celery_pgbeat.settings import Settings
from celery_pgbeat.testing import PgBeatTest
from tests.harness.kits import MakeKit
from tests.harness.ticks import beat

NOON = "2026-12-07T12:00Z"
STEPS = (
    "confirm again",
    "lower tracking",
    "pause failing",
    "pause failed groups",
    "resume",
    "plan",
    "recheck",
    "recheck future marks",
    "judge",
    "finish by result",
    "settle downstream",
    "grant slots",
    "submit again",
    "recover",
    "backfill",
)
UPKEEP = {  # with the statement of each
    "forget nodes": "forget_nodes",
    "promote buffered": "promote_buffered",
    "sync group pauses": "sync_group_pauses",
    "recheck groups": "recheck_groups",
    "recheck downstream": "recheck_downstream",
    "make days": "make_days",
    "prune": "prune",
    "prune changes": "prune_changes",
}
# What fails, by the code of Postgres' error; without a code it is a defect in Python.
TROUBLES = {
    "a number out of range": "22003",
    "a violated constraint": "23514",
    "a missing right": "42501",
    "a lock that another transaction holds": "55P03",
    "a statement that takes too long": "57014",
    "a function that is not there": "42883",
    "a defect": "",
}


@pytest.fixture
def kit(make_kit: MakeKit) -> Iterator[PgBeatTest]:
    app = Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)
    app.conf.update(result_expires=None, timezone="UTC")
    with make_kit(app, NOON) as made:
        yield made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The boot-time clock of the pauses."""
    shown = SimpleNamespace(now=0.0)
    monkeypatch.setattr(steps, "boottime", lambda: shown.now)
    monkeypatch.setattr("celery_pgbeat.beat.steps.random.uniform", lambda _low, high: high)
    return shown


def failing(database: Database, code: str) -> Callable[..., Any]:
    """Return what fails by an error of Postgres with this code, or by one of Python without a code."""

    def fail(*_: Any, **__: Any) -> Any:
        if not code:
            raise ZeroDivisionError("a defect")
        database.execute(f"do $$ begin raise exception 'it fails' using errcode = '{code}'; end $$")

    return fail


def replace_step(dispatcher: Dispatcher, step: str, run: Callable[[], bool]) -> None:
    """Have each cycle run this in the place of one of its steps."""

    def replaced(made: Any) -> Any:
        return [(step, lambda _: True, run) if one[0] == step else one for one in made]

    dispatcher._before_sending = replaced(dispatcher._before_sending)
    dispatcher._sending = replaced(dispatcher._sending)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if " failed, the others go on: " in text]


def test_the_steps_of_a_cycle_are_those_that_fail_here(kit: PgBeatTest) -> None:
    made = (*kit._dispatcher._before_sending, *kit._dispatcher._sending)

    assert [*STEPS, SUBMIT_DUE] == sorted((name for name, *_ in made), key=[*STEPS, SUBMIT_DUE].index)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.usefixtures("clock")
def test_a_step_that_fails_keeps_no_due_row_from_being_sent(
    kit: PgBeatTest, step: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kit.beat.schedule("a", "shop.report", "every 1m", overlap="allow")
    kit.tick()
    database = kit.beat.database

    for number, (trouble, code) in enumerate(TROUBLES.items(), start=1):
        caplog.clear()
        monkeypatch.setattr(kit._dispatcher, "steps", Steps(database))
        replace_step(kit._dispatcher, step, failing(database, code))
        kit.clock.set(f"2026-12-07T12:{number:02}Z")
        kit._dispatcher.run_cycle()

        assert number == len(kit.sent), trouble
        assert [f"The step {step!r} failed"] == [text.partition(",")[0] for text in told(caplog)], trouble


@pytest.mark.parametrize("step", UPKEEP)
@pytest.mark.parametrize("code", ["22003", ""])
@pytest.mark.usefixtures("clock")
def test_upkeep_that_fails_keeps_no_other_upkeep_from_being_done(
    migrated_database: str, step: str, code: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = beat(migrated_database)
    ran: list[str] = []

    def noted(statement: str, run: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: (ran.append(statement), run(*given))[1]

    for statement in UPKEEP.values():
        monkeypatch.setattr(store, statement, noted(statement, getattr(store, statement)))
    monkeypatch.setattr(store, UPKEEP[step], failing(store.database, code))
    tracking: Any = SimpleNamespace(workers_track=False)
    keeper = Janitor(
        store,
        Settings(),
        NodeId.mine(),
        tracking,
        Mode(store, Settings()),
        Steps(store.database),
        lambda: None,
        lambda: None,
    )

    keeper.run_cycle()

    assert {*UPKEEP.values()} - {UPKEEP[step]} == {*ran}
    assert [f"The step {step!r} failed"] == [text.partition(",")[0] for text in told(caplog)]


def test_a_step_that_fails_is_left_out_for_a_pause_that_grows_and_its_end_is_logged(
    clock: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    runner = Steps(Database("postgresql://127.0.0.1:1/nowhere"))
    tried: list[float] = []

    def fail() -> bool:
        tried.append(clock.now)
        raise RuntimeError("no such job")

    while clock.now < REMIND_EVERY - 1:
        assert not runner.attempt("judge", fail)
        assert 0 < runner.again_in <= LONGEST_PAUSE
        clock.now += runner.again_in

    pauses = [later - earlier for earlier, later in itertools.pairwise(tried)]
    assert [0.1, 0.2, 0.4, 0.8, 1.6, 3.2] == pytest.approx(pauses[:6])
    assert {LONGEST_PAUSE} == {round(pause, 3) for pause in pauses[6:]}
    assert ["The step 'judge' failed, the others go on: no such job. It is tried again."] == caplog.messages
    assert caplog.records[0].exc_info

    assert runner.attempt("judge", lambda: True)
    assert "The step 'judge' works again" == caplog.messages[-1]
    assert float("inf") == runner.again_in


def test_an_error_of_a_step_that_stays_is_logged_once_a_minute(
    clock: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    runner = Steps(Database("postgresql://127.0.0.1:1/nowhere"))

    def fail() -> bool:
        raise RuntimeError("no such job")

    for second in range(int(2 * REMIND_EVERY + 1)):
        clock.now = float(second)
        runner.attempt("judge", fail)

    assert 3 == len(told(caplog))


@pytest.mark.usefixtures("clock")
def test_an_outage_of_postgres_ends_the_cycle() -> None:
    runner = Steps(Database("postgresql://127.0.0.1:1/nowhere"))

    def fail() -> bool:
        raise DatabaseUnavailable("connection refused")

    with pytest.raises(DatabaseUnavailable, match="connection refused"):
        runner.attempt("judge", fail)
    assert float("inf") == runner.again_in


def test_the_log_names_the_function_of_a_users_trigger_that_refuses_what_a_beat_writes(
    kit: PgBeatTest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database = kit.beat.database
    monkeypatch.setattr(kit._dispatcher, "steps", Steps(database))
    kit.beat.schedule("a", "shop.report", "every 1m")
    kit.tick()
    schema = database.schema
    database.execute(
        f"create function {schema}.refuse() returns trigger language plpgsql as $$ begin raise 'not now'; end $$;"
        f"create trigger refuse before update on {schema}.periodic_task for each row execute function {schema}.refuse()"
    )
    kit.clock.set("2026-12-07T12:01Z")
    kit._dispatcher.run_cycle()

    assert told(caplog) == [
        "The step 'submit due rows' failed, the others go on: not now. "
        f"In PL/pgSQL function {schema}.refuse() line 1 at RAISE. It is tried again."
    ]


def test_a_missing_right_of_one_step_is_one_line_that_says_where_the_grants_are(
    migrated_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = beat(migrated_database).database

    Steps(database).attempt("prune", failing(database, "42501"))

    (record,) = caplog.records
    assert record.exc_info is None
    assert record.getMessage() == (
        "The step 'prune' failed, the others go on: Postgres refuses a statement of this beat: it fails. As this user, "
        "`celery-pgbeat doctor` lists the missing grants; `celery-pgbeat sql --roles` prints all of them. It is tried "
        "again."
    )
