"""A row that another transaction lets go in the middle of a submit: it was left only because of that lock."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from celery_pgbeat.planning import Decision, Skipped
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.beat_results import Submitted
from tests.harness.jobs import active, make_job
from tests.harness.ticks import beat, decided, jobs, make_due
from tests.harness.transactions import Attempt, Transaction

GATE = """
create function public.wait() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock(1);
    return new;
end $$;
create trigger wait before update on pgbeat.periodic_task for each row
    when (new.name = 'z' and old.marked_at is not null and new.marked_at is null) execute function public.wait()
"""


@pytest.fixture
def store(migrated_database: str) -> BeatQueries:
    return beat(migrated_database)


@pytest.fixture
def submit_while_let_go(migrated_database: str, store: BeatQueries) -> Callable[..., dict[str, Submitted]]:
    """Submit decisions about the row `a`, which is locked until the first step of the submit is over, and about `z`."""

    def act(change: Callable[[Decision], Decision] = lambda one: one, *, shadow: bool = False) -> dict[str, Submitted]:
        make_due(store, "z")
        store.database.execute(GATE)
        decisions = [decided(row) for row in store.mark(10)]
        decisions = [change(one) if one.row.name == "a" else one for one in decisions]
        author, gate = Transaction(migrated_database), Transaction(migrated_database)
        author.execute("select from pgbeat.periodic_task where name = 'a' for update")
        gate.execute("select pg_advisory_xact_lock(1)")
        submitting: Attempt[Sequence[Submitted]] = Attempt(
            lambda: store.submit(decisions, "UTC", True, True, shadow=shadow)
        )
        submitting.waits_for(gate, store.database)
        author.rollback()
        gate.rollback()
        answers = {one.name: one for one in submitting.answer()}
        assert "z" in answers
        return answers

    return act


def test_a_beat_in_shadow_sends_nothing_of_it(store: BeatQueries, submit_while_let_go: Any) -> None:
    make_due(store, "a")

    answers = submit_while_let_go(shadow=True)

    assert [] == [one for one in answers.values() if one.made]
    assert {"skipped"} == {job["state"] for job in jobs(store)}


def test_a_finished_group_gets_no_job_of_it(store: BeatQueries, submit_while_let_go: Any) -> None:
    store.database.execute("select pgbeat.define_group('g')")
    make_due(store, "a", group_name="g")
    store.database.execute("select pgbeat.finish_group('g')")

    submit_while_let_go()

    assert ["z"] == [job["periodic_task"] for job in jobs(store) if job["state"] == "pending"]


@pytest.mark.parametrize("overlap", ["cancel_other", "terminate_other"])
def test_an_occurrence_without_a_job_ends_no_other(store: BeatQueries, submit_while_let_go: Any, overlap: str) -> None:
    make_due(store, "a", overlap=overlap)
    running = make_job(store.database, periodic_task="a", state="running", token=uuid.uuid4())

    def dropped(one: Decision) -> Decision:
        skipped = Skipped(one.decided_until, one.decided_until, 1, "blackout")
        return one._replace(job=None, scheduled_for=None, due_at=None, skipped=skipped)

    submit_while_let_go(dropped)

    job = active(store.database, running)
    assert job is not None
    assert job["stop_request"] is None


def test_under_allow_it_gives_no_other_job_up(store: BeatQueries, submit_while_let_go: Any) -> None:
    make_due(store, "a", overlap="allow")
    silent = make_job(store.database, periodic_task="a", exclusive=False, state="running", token=uuid.uuid4())
    store.database.execute("update pgbeat.active_job set busy_until = pgbeat.now() - interval '1 s'")

    answers = submit_while_let_go()

    assert active(store.database, silent) is not None
    assert answers["a"].made
