"""No order of steps and faults that is tried breaks what the protocol promises."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import FlakyStrategyDefinition
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from celery_pgbeat.postgres import database as database_module
from celery_pgbeat.postgres.database import Database
from tests.model.machine import Model
from tests.model.mutants import MUTANTS, mutate
from tests.model.world import BATCH, DEAD_AFTER

# `tox -e model` has more of both. It also tries the mutants that only chance finds.
EXAMPLES = int(os.environ.get("PGBEAT_TEST_MODEL_EXAMPLES", "15"))
STEPS = int(os.environ.get("PGBEAT_TEST_MODEL_STEPS", "30"))
ENOUGH = 200  # examples in which any of these mutants is found out
AT_A_TIME, ATTEMPTS = 50, 4
MINUTELY = {"schedule": "every 1m", "overlap": "allow"}
# What each of these says is wrong, and two rows of which a few ticks show it.
AT_ONCE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an edit leaves what was planned ahead": (
        {"schedule": "*/10 * * * *", "overlap": "allow"},
        {"schedule": None},
    ),
    "a submit at once does not look at the group": (
        {**MINUTELY, "group_name": "g"},
        {**MINUTELY, "group_name": "g"},
    ),
    "a submit at once does not look at failures": (MINUTELY, {**MINUTELY, "pause_after_failures": 1}),
    "a submit at once forgets when the next run is due": ({**MINUTELY, "jitter": "20 seconds"}, {"schedule": None}),
    "a submit at once does not wait for other tasks": ({"schedule": None}, {**MINUTELY, "after": ["a"]}),
}

ALL = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


def on(url: str) -> type[Model]:
    """Return the model on a database where a statement that waits for a lock fails, and none waits for a disk."""
    with closing(Database(url)) as database:
        for setting in ("lock_timeout = '5s'", "synchronous_commit = off"):
            database.execute(f"alter database {make_url(url).database} set {setting}")
    return type("OnDatabase", (Model,), {"url": url})


def explore(machine: type[Model], limits: settings) -> None:
    """Try examples, some at a time.

    Ids are random, and decide between jobs of the same instant. So the same steps can lead another way, and Hypothesis,
    which meets a rule that was not allowed before, refuses to go on. That finds nothing: these are tried anew.
    """
    for begun in range(0, limits.max_examples, AT_A_TIME):
        some = settings(limits, max_examples=min(AT_A_TIME, limits.max_examples - begun))
        for attempt in range(ATTEMPTS):
            try:
                run_state_machine_as_test(machine, settings=some)
            except FlakyStrategyDefinition:
                some = settings(some, derandomize=False)
                if attempt + 1 == ATTEMPTS:
                    raise
            else:
                break
        limits = settings(limits, derandomize=False)  # else these would be the same ones again


def test_p1_p5_no_order_of_steps_and_faults_breaks_the_protocol(migrated_database: str) -> None:
    explore(on(migrated_database), ALL)


def test_after_the_clock_was_set_back_a_person_may_have_occurrences_decided_anew(migrated_database: str) -> None:
    state = on(migrated_database)()
    minutely = {"schedule": "every 1m"}
    state.begin(first=minutely, second=minutely, in_the_queue=False)
    state.a_beat_ticks(batch=1, number=0, at_once=True)
    state.time_passes(seconds=-3)
    state.somebody_writes(name="a", what="resume", edit=("args", "[1]"), definition=minutely, seconds=0, force=False)
    state.time_passes(seconds=60)
    state.a_beat_ticks(batch=5, number=1, at_once=True)
    state.teardown()


def plans_late(state: Model) -> None:
    edit: Any = {"name": "a", "what": "edit", "definition": MINUTELY, "seconds": 0, "force": False}
    state.somebody_writes(**edit, edit=("schedule", "every 5m"))
    state.read_to_plan_later(number=1)
    state.somebody_writes(**edit, edit=("schedule", "7-59/10 * * * *"))
    state.a_beat_ticks(number=0, batch=10, at_once=False)
    state.plan_late(place=0)


def dies_before_it_sends(state: Model) -> None:
    state.a_beat_ticks_and_stops_midway(number=0, stops_after="submit", at_once=False)
    state.a_beat_ends(place=0, how="killed")
    state.time_passes(seconds=1200)
    state.judge(number=1, resending=True)


def sends_what_was_to_be_taken_over(state: Model) -> None:
    state.a_beat_ticks_and_stops_midway(number=0, stops_after="publish", at_once=False)
    state.time_passes(seconds=-3600)
    state.world.beats[1].store.recheck_future_marks()
    state.look("recheck")
    state.confirm(place=0, again=False)
    state.a_message_is(place=0, what="lost")


def is_heard_of_and_dies_before_its_start(state: Model) -> None:
    state.a_beat_ticks(number=0, batch=10, at_once=False)
    state.time_passes(seconds=16)
    state.recheck(number=0)  # from now on it is to be looked at when its message has waited for too long
    start = state.world.receive(0)
    state.world.reports.heartbeat(start.worker, [start], DEAD_AFTER)
    state.look("heartbeat")
    state.judge(number=0, resending=True)  # long before its message would be given up
    assert not state.ledger.has("running"), "it is still thought to run"


def is_received_twice(state: Model) -> None:
    state.a_beat_ticks(number=0, batch=10, at_once=False)
    state.a_message_is(place=0, what="doubled")
    for _ in range(2):
        state.receive(place=0, answered=True, heard_before=False, survives=True)


WRITES: Any = {"edit": ("args", "[1]"), "definition": MINUTELY, "seconds": 0}


def insert(state: Model, definition: dict[str, Any]) -> None:
    """Insert the row c."""
    state.somebody_writes(**WRITES | {"definition": definition}, name="c", what="edit", force=False)


def trigger(state: Model, name: str) -> None:
    """Trigger a run, and have it done."""
    state.somebody_writes(**WRITES, name=name, what="trigger", force=False)
    state.recover(number=0, answered=True)
    state.publish(place=0, outcome="well")
    state.confirm(place=0, again=False)
    state.the_workers_work()


def begins_to_wait_when_others_have_ended(state: Model) -> None:
    insert(state, {"schedule": "every 2m", "after": ["b"]})
    trigger(state, "b")
    state.settle_downstream(number=0, batch=BATCH)  # the end of b lets nothing go on yet
    for _ in range(2):
        state.a_beat_ticks(number=0, batch=BATCH, at_once=False)


def promotes_while_another_is_under_way(state: Model) -> None:
    insert(state, {"schedule": "every 1m", "overlap": "buffer_all"})
    state.a_beat_ticks(number=0, batch=BATCH, at_once=False)
    state.a_beat_ticks(number=0, batch=BATCH, at_once=False)
    state.somebody_writes(**WRITES, name="c", what="trigger", force=True)  # beside the one that is sent
    state.a_beat_ticks(number=0, batch=BATCH, at_once=False)
    state.a_beat_ticks(number=0, batch=BATCH, at_once=False)  # it waits for both
    state.the_workers_work()  # the first one ends


def goes_on_beside_what_is_under_way(state: Model) -> None:
    insert(state, {"schedule": "every 2m", "after": ["a"]})
    for _ in range(2):
        state.the_workers_work()
        state.a_beat_ticks(number=0, batch=BATCH, at_once=False)
    state.a_beat_ticks(number=0, batch=1, at_once=False)
    state.settle_downstream(number=0, batch=BATCH)


def ends_before_the_other_of_its_round(state: Model) -> None:
    state.somebody_writes(**WRITES | {"edit": ("schedule", "every 3m")}, name="b", what="edit", force=False)
    insert(state, {"schedule": None, "after": ["a", "b"]})
    for _ in range(2):
        state.a_beat_ticks(number=0, batch=BATCH, at_once=False)
        state.the_workers_work()
    for _ in range(2):
        state.a_beat_ticks(number=0, batch=BATCH, at_once=False)
    state.receive(place=1, answered=True, heard_before=False, survives=True)
    state.a_body_ends(place=0, end="succeeded", resend=False, later=False)
    state.settle_downstream(number=0, batch=BATCH)
    state.a_beat_ticks(number=0, batch=1, at_once=False)


def ends_again_while_what_comes_after_it_is_due(state: Model) -> None:
    insert(state, {"schedule": None, "after": ["a"]})
    state.a_beat_ticks(number=0, batch=BATCH, at_once=False)
    state.the_workers_work()
    state.settle_downstream(number=0, batch=BATCH)  # c is due
    state.mark(number=1, answered=True, at_once=False)
    trigger(state, "a")
    state.settle_downstream(number=0, batch=BATCH)
    state.submit(place=0, judging=True, answered=True, again=False)
    for name in ("a", "b"):
        state.somebody_writes(**WRITES, name=name, what="pause", force=True)


# What each of these says is wrong, and steps that show it. Among random ones they are too rare.
DIRECTED: dict[str, Callable[[Model], None]] = {
    "a plan is not fenced": plans_late,
    "a judge gives up what is not sent yet": dies_before_it_sends,
    "a confirm leaves its job among those to be sent": sends_what_was_to_be_taken_over,
    "a start looks at neither attempt nor state": is_received_twice,
    "a heartbeat does not bring the look forward": is_heard_of_and_dies_before_its_start,
    "a job that begins to wait is not noted": begins_to_wait_when_others_have_ended,
    "a promotion does not look at what is under way": promotes_while_another_is_under_way,
    "what is under way up to an occurrence does not count": goes_on_beside_what_is_under_way,
    "the rounds of several tasks are mixed": ends_before_the_other_of_its_round,
    "what ends while a row is due is forgotten": ends_again_while_what_comes_after_it_is_due,
}


PEOPLE = (
    "a pick-up does not look at the state",
    "a release does not look at the owner",
    "a job is finished that nobody has",
    "a message starts a job for people",
    "what may be picked up stays so when it is taken",
)
BY_CHANCE = [name for name in MUTANTS if name not in {*AT_ONCE, *DIRECTED, *PEOPLE}]


def state_under(mutant: str | None, url: str, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Return the model on a database whose statements are mutated, or not."""
    if mutant is not None:
        with closing(Database(url)) as database:
            monkeypatch.setattr(database_module, "statement", mutate(MUTANTS[mutant], database))
    return on(url)()


def expect(steps: Callable[[], None], *, fails: bool) -> None:
    """Take the steps; the model has to notice a mutant."""
    if fails:
        with pytest.raises((AssertionError, DBAPIError)):
            steps()
    else:
        steps()


@pytest.mark.parametrize("is_mutated", [False, True])
@pytest.mark.parametrize("mutant", DIRECTED)
def test_a_few_steps_show_that(
    migrated_database: str, monkeypatch: pytest.MonkeyPatch, mutant: str, is_mutated: bool
) -> None:
    state = state_under(mutant if is_mutated else None, migrated_database, monkeypatch)

    def steps() -> None:
        state.begin(first={"schedule": "every 1m"}, second={"schedule": None}, in_the_queue=False)
        DIRECTED[mutant](state)
        state.teardown()

    expect(steps, fails=is_mutated)


@pytest.mark.timeout(600)
@pytest.mark.skipif(EXAMPLES < ENOUGH, reason="tox -e model tries it")
@pytest.mark.parametrize("mutant", BY_CHANCE)
def test_the_model_notices_that(migrated_database: str, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    with closing(Database(migrated_database)) as database:
        monkeypatch.setattr(database_module, "statement", mutate(MUTANTS[mutant], database))
    found_out = settings(ALL, max_examples=ENOUGH, stateful_step_count=50, derandomize=True, phases=[Phase.generate])

    with pytest.raises((AssertionError, DBAPIError)):
        explore(on(migrated_database), found_out)


@pytest.mark.parametrize("mutant", [None, *PEOPLE])
def test_a_few_steps_of_people_show_that(
    migrated_database: str, monkeypatch: pytest.MonkeyPatch, mutant: str | None
) -> None:
    state = state_under(mutant, migrated_database, monkeypatch)
    people = {"schedule": "every 5m", "kind": "human", "task": None}

    def steps() -> None:
        state.begin(first=people, second=people, in_the_queue=False)
        state.a_beat_ticks(batch=5, number=0, at_once=True)
        state.somebody_finishes(place=0, owner=None, outcome="failed")
        state.somebody_picks_up(place=0, owner="bob", again=True)
        state.a_forged_message_names_a_job_for_people(place=0, attempt=1)
        state.somebody_releases(place=0, owner="ann")
        state.somebody_finishes(place=0, owner="ann", outcome="failed")
        state.somebody_releases(place=0, owner=None)
        state.a_forged_message_names_a_job_for_people(place=0, attempt=0)
        state.teardown()

    expect(steps, fails=mutant is not None)


@pytest.mark.parametrize("is_mutated", [False, True])
@pytest.mark.parametrize("mutant", AT_ONCE)
def test_a_few_ticks_that_submit_at_once_show_that(
    migrated_database: str, monkeypatch: pytest.MonkeyPatch, mutant: str, is_mutated: bool
) -> None:
    state = state_under(mutant if is_mutated else None, migrated_database, monkeypatch)
    first, second = AT_ONCE[mutant]

    def steps() -> None:
        state.begin(first=first, second=second, in_the_queue=False)
        state.jobs_of_a_tick_fail(number=0, then="its process dies")
        state.a_beat_ticks(batch=10, number=1, at_once=True)
        state.somebody_writes(
            name="a", what="edit", edit=("schedule", "*/20 * * * *"), definition=first, seconds=0, force=False
        )
        for _ in range(4):
            state.a_beat_ticks(batch=10, number=0, at_once=True)
        state.teardown()

    expect(steps, fails=is_mutated)
