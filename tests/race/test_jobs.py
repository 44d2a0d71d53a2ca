"""What may happen to a job at one moment: its end, its turn, its withdrawal, its second copy."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries, Confirmed
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from tests.harness.jobs import bury
from tests.harness.ticks import HOUR, decided, jobs, make_due, row_of
from tests.harness.transactions import Attempt, Transaction, at_once

MICROSECOND = timedelta(microseconds=1)
SILENCE = timedelta(seconds=30)
Open = Callable[[], Transaction]


@pytest.fixture
def reports(store: BeatQueries) -> WorkerQueries:
    return WorkerQueries(store.database)


@pytest.fixture
def open_transaction(migrated_database: str) -> Iterator[Open]:
    opened: list[Transaction] = []

    def make() -> Transaction:
        opened.append(Transaction(migrated_database))
        return opened[-1]

    yield make
    for transaction in opened:
        transaction.close()


def test_a_row_that_changed_before_it_was_locked_is_locked_at_its_new_place(
    store: BeatQueries, open_transaction: Open
) -> None:
    """`mark` and `confirm` find again by `ctid` what they have locked, and Postgres may lock a newer version."""
    place = "select ctid::text from pgbeat.periodic_task where name = 'a'"
    reading = f"{place} and pg_advisory_xact_lock(7)::text is not null for no key update skip locked"
    make_due(store, "a")
    ((before,),) = store.database.execute(place)
    author = open_transaction()
    author.execute("select pg_advisory_xact_lock(7)")
    author.execute("update pgbeat.periodic_task set args = '[1]' where name = 'a'")

    late = Attempt(lambda: store.database.execute(reading)).waits_for(author, store.database)
    author.commit()

    ((locked,),) = late.answer()
    assert store.database.execute(place) == [(locked,)]
    assert before != locked


def submit_next(store: BeatQueries, through: BeatQueries | None = None) -> uuid.UUID:
    """Submit the occurrence of row `a` that is due, the next one being due at once; return the job."""
    (row,) = store.mark(10)
    decision = decided(row, row.next_run_at + MICROSECOND)
    (through or store).submit([decision], "UTC", True, True)
    assert decision.job is not None
    return decision.job


def start_of(job: uuid.UUID) -> Start:
    return Start(job, 0, 0, uuid.uuid4(), "worker")


def running(store: BeatQueries, reports: WorkerQueries, job: uuid.UUID) -> Start:
    store.confirm([(job, 0.0)])
    start = start_of(job)
    assert reports.start(start, SILENCE)
    return start


def states(store: BeatQueries) -> list[str]:
    return [job["state"] for job in jobs(store)]


def exclusive(store: BeatQueries) -> int:
    (row,) = store.database.execute("select count(*) from pgbeat.active_job where exclusive")
    return int(row[0])


# A job's end, and the turn of the next.


def test_a_promotion_beside_the_end_of_the_job_in_the_way_does_nothing_and_the_end_promotes(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    make_due(store, "a", overlap="buffer_one")
    start = running(store, reports, submit_next(store))
    submit_next(store)
    ending = open_transaction()
    assert ending.reports.finish(start, "succeeded")

    assert 0 == at_once(store.promote_buffered)
    ending.commit()

    assert ["succeeded", "pending"] == states(store)
    assert 0 == store.promote_buffered()
    assert 1 == exclusive(store)


def test_the_end_of_a_job_waits_for_the_submit_that_buffers_the_next_one_and_promotes_it(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    make_due(store, "a", overlap="buffer_one")
    start = running(store, reports, submit_next(store))
    submitting = open_transaction()
    submit_next(store, submitting.store())

    ending = Attempt(lambda: reports.finish(start, "succeeded")).waits_for(submitting, store.database)
    submitting.commit()

    assert ending.answer()
    assert ["succeeded", "pending"] == states(store)


@pytest.mark.parametrize("overlap", ["skip", "buffer_one", "cancel_other"])
def test_a_submit_leaves_a_row_whose_job_ends_at_that_moment_and_then_sends(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open, overlap: str
) -> None:
    make_due(store, "a", overlap=overlap)
    start = running(store, reports, submit_next(store))
    ending = open_transaction()
    assert ending.reports.finish(start, "succeeded")
    (row,) = store.mark(10)
    submit = partial(store.submit, [decided(row)], "UTC", True, True)

    assert [] == at_once(submit)
    assert {"a"} == store.still_marked(["a"])
    ending.commit()

    assert [True] == [answer.made for answer in submit()]
    assert ["succeeded", "pending"] == states(store)


def test_of_two_promotions_at_once_one_promotes_and_the_other_does_nothing(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    make_due(store, "a", overlap="buffer_all")
    start = running(store, reports, submit_next(store))
    submit_next(store)
    store.database.execute("alter table pgbeat.active_job disable trigger active_job_gone")
    reports.finish(start, "succeeded")
    promoting = open_transaction()
    assert 1 == promoting.store().promote_buffered()

    assert 0 == at_once(store.promote_buffered)
    promoting.commit()

    assert 0 == store.promote_buffered()
    assert ["succeeded", "pending"] == states(store)
    assert 1 == exclusive(store)


def test_a_promotion_does_not_wait_for_a_forced_job_of_an_open_transaction(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    make_due(store, "a", overlap="buffer_one")
    start = running(store, reports, submit_next(store))
    submit_next(store)
    caller = open_transaction()
    caller.execute("select pgbeat.trigger('a', force => true)")

    assert at_once(lambda: reports.finish(start, "succeeded"))
    assert 0 == at_once(store.promote_buffered)
    caller.commit()

    assert ["pending", "pending", "succeeded"] == sorted(states(store))
    assert 1 == exclusive(store)


# A job's end, and a later occurrence that replaces it.


def test_the_end_of_a_job_that_is_asked_to_end_at_that_moment_waits_and_promotes_the_next(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    make_due(store, "a", overlap="cancel_other")
    start = running(store, reports, submit_next(store))
    submitting = open_transaction()
    submit_next(store, submitting.store())

    ending = Attempt(lambda: reports.finish(start, "succeeded")).waits_for(submitting, store.database)
    submitting.commit()

    assert ending.answer()
    assert ["succeeded", "pending"] == states(store)


def test_a_start_of_a_job_that_is_withdrawn_at_that_moment_starts_nothing(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    make_due(store, "a", overlap="cancel_other")
    job = submit_next(store)
    store.confirm([(job, 0.0)])
    submitting = open_transaction()
    submit_next(store, submitting.store())

    starting = Attempt(lambda: reports.start(start_of(job), SILENCE)).waits_for(submitting, store.database)
    submitting.commit()

    assert not starting.answer()
    assert ["revoked", "pending"] == states(store)


def test_a_submit_leaves_a_row_whose_job_starts_at_that_moment_and_then_asks_it_to_end(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    make_due(store, "a", overlap="cancel_other")
    job = submit_next(store)
    store.confirm([(job, 0.0)])
    (row,) = store.mark(10)
    submit = partial(store.submit, [decided(row)], "UTC", True, True)
    starting = open_transaction()
    assert starting.reports.start(start_of(job), SILENCE)

    assert [] == at_once(submit)
    starting.commit()
    assert [True] == [answer.waits for answer in submit()]

    assert ["running", "buffered"] == states(store)
    assert [("cancel",), (None,)] == store.database.execute(
        "select stop_request from pgbeat.active_job order by created_at"
    )
    assert 1 == exclusive(store)


@pytest.mark.parametrize("overlap", ["cancel_other", "terminate_other"])
def test_a_job_that_is_confirmed_at_that_moment_is_withdrawn_and_not_asked_to_end(
    store: BeatQueries, open_transaction: Open, overlap: str
) -> None:
    """Asked to end while it does not run it would never end, and the next one would wait for it."""
    make_due(store, "a", overlap=overlap)
    job = submit_next(store)
    (row,) = store.mark(10)
    submit = partial(store.submit, [decided(row)], "UTC", True, True)
    confirming = open_transaction()
    assert confirming.store().confirm([(job, 0.0)]).jobs == {job}

    assert [] == at_once(submit)
    confirming.commit()
    assert [True] == [answer.made for answer in submit()]
    assert ["revoked", "pending"] == states(store)


# An occurrence and the older job in its way: at most one of them is dropped for the other.


def unsent_late(store: BeatQueries) -> uuid.UUID:
    """Row `a` with a job that is nobody's and too late, and its next occurrence due."""
    job = submit_next(store)
    store.give_back([job])
    store.database.execute(
        "update pgbeat.active_job set scheduled_for = now() - interval '2 hours', due_at = now() - interval '2 hours'"
    )
    return job


def test_a_tick_is_not_skipped_for_an_unsent_job_that_is_dropped_for_it_at_that_moment(
    store: BeatQueries, open_transaction: Open
) -> None:
    make_due(store, "a")
    unsent_late(store)
    (row,) = store.mark(10)
    submit = partial(store.submit, [decided(row)], "UTC", True, True)
    recovering = open_transaction()
    (dropped,) = recovering.store("beat-b").recover(10, timedelta(seconds=32))
    assert "too_late" == dropped.reason

    assert [] == at_once(submit)
    recovering.commit()

    assert [True] == [answer.made for answer in submit()]
    assert ["skipped", "pending"] == states(store)


def test_an_unsent_job_is_not_dropped_for_a_tick_that_is_skipped_for_it_at_that_moment(
    store: BeatQueries, open_transaction: Open
) -> None:
    make_due(store, "a")
    job = unsent_late(store)
    (row,) = store.mark(10)
    submitting = open_transaction()
    (answer,) = submitting.store().submit([decided(row)], "UTC", True, True)
    assert (False, job) == (answer.made, answer.blocked_by)

    assert [] == at_once(lambda: store.recover(10, timedelta(seconds=32)))
    submitting.commit()

    assert [None] == [taken.reason for taken in store.recover(10, timedelta(seconds=32))]
    assert ["pending", "skipped"] == states(store)


def test_a_tick_is_not_skipped_for_a_silent_job_that_is_given_up_at_that_moment(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    silent(store, reports)
    (row,) = store.mark(10)
    submit = partial(store.submit, [decided(row)], "UTC", True, True)
    judging = open_transaction()
    assert 1 == len(judging.store().judge(10, True))

    assert [] == at_once(submit)
    judging.commit()

    assert [True] == [answer.made for answer in submit()]
    assert ["lost", "pending"] == states(store)


def test_a_tick_is_not_skipped_for_a_silent_job_that_anything_else_is_written_to_at_that_moment(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    silent(store, reports)
    (row,) = store.mark(10)
    submit = partial(store.submit, [decided(row)], "UTC", True, True)
    writing = open_transaction()
    writing.execute("update pgbeat.active_job set error = 'noted'")

    assert [] == at_once(submit)
    writing.rollback()

    assert [True] == [answer.made for answer in submit()]
    assert ["lost", "pending"] == states(store)


# Two copies of a message; a silent job and its sign of life.


def test_of_two_copies_that_ask_at_the_same_moment_the_second_waits_and_starts_nothing(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    make_due(store, "a")
    job = submit_next(store)
    first = open_transaction()
    assert first.reports.start(start_of(job), SILENCE)

    second = Attempt(lambda: reports.start(start_of(job), SILENCE)).waits_for(first, store.database)
    first.commit()

    assert not second.answer()


def test_a_confirm_and_a_recover_beside_a_start_do_nothing(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    make_due(store, "a")
    job = submit_next(store)
    starting = open_transaction()
    assert starting.reports.start(start_of(job), SILENCE)
    store.database.execute("select 1")

    assert Confirmed(set(), {job}) == at_once(lambda: store.confirm([(job, 0.0)]))
    assert [] == at_once(lambda: beat_b(store).recover(10, HOUR))
    starting.commit()

    assert ["running"] == states(store)


def test_a_confirm_beside_a_recover_returns_the_locked_job_to_be_confirmed_again(
    store: BeatQueries, open_transaction: Open
) -> None:
    """A recover that began before the mark locks the row, and only then sees that somebody is sending it."""
    make_due(store, "a")
    job = submit_next(store)
    recovering = open_transaction()
    recovering.execute("select from pgbeat.active_job for update")

    assert Confirmed(set(), {job}) == at_once(lambda: store.confirm([(job, 0.0)]))
    recovering.rollback()

    assert Confirmed({job}, set()) == store.confirm([(job, 0.0)])
    assert Confirmed(set(), set()) == store.confirm([(job, 0.0)])


def beat_b(store: BeatQueries) -> BeatQueries:
    """Another beat, to which every lease is over."""
    store.database.execute("update pgbeat.periodic_task set marked_at = null, marked_by = null")
    return BeatQueries(store.database, "beat-b", timedelta(microseconds=1))


def silent(store: BeatQueries, reports: WorkerQueries, **columns: Any) -> Start:
    make_due(store, "a", **columns)
    start = running(store, reports, submit_next(store))
    store.database.execute("update pgbeat.active_job set check_at = 'epoch', busy_until = now() - interval '1 second'")
    return start


def test_a_silent_job_that_says_at_that_moment_that_it_lives_is_left_alone(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    start = silent(store, reports)
    beating = open_transaction()
    assert [start.job] == beating.reports.heartbeat("worker", [start], SILENCE)

    assert [] == at_once(lambda: store.judge(10, True))
    beating.commit()

    assert [] == store.judge(10, True)
    assert ["running"] == states(store)


@pytest.mark.parametrize(("on_lost", "state"), [("give_up", "lost"), ("rerun", "pending")])
def test_a_job_that_is_judged_at_that_moment_has_nothing_more_to_say(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open, on_lost: str, state: str
) -> None:
    start = silent(store, reports, on_lost=on_lost)
    judging = open_transaction()
    assert 1 == len(judging.store().judge(10, True))

    assert [] == at_once(lambda: reports.heartbeat("worker", [start], SILENCE))
    ending = Attempt(lambda: reports.finish(start, "succeeded")).waits_for(judging, store.database)
    judging.commit()

    assert not ending.answer()
    assert [state] == states(store)


def test_a_silent_job_that_ends_at_that_moment_is_not_judged(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    start = silent(store, reports)
    ending = open_transaction()
    assert ending.reports.finish(start, "succeeded")

    assert [] == at_once(lambda: store.judge(10, True))
    ending.commit()

    assert ["succeeded"] == states(store)


# A lost job that turns up, and a new one of its name: the unique index decides.


def lost(store: BeatQueries) -> uuid.UUID:
    make_due(store, "a")
    job = submit_next(store)
    store.confirm([(job, 0.0)])
    bury(store.database, job)
    assert ["lost"] == states(store)
    return job


def test_a_submit_beside_a_lost_job_that_turns_up_waits_for_it_and_is_skipped(
    store: BeatQueries, open_transaction: Open
) -> None:
    job = lost(store)
    starting = open_transaction()
    assert starting.reports.start_lost(start_of(job), SILENCE)

    submitting = Attempt(lambda: submit_next(store)).waits_for(starting, store.database)
    starting.commit()
    submitting.answer()

    assert ["running", "skipped"] == states(store)
    assert row_of(store, "a")["last_run_at"] == jobs(store)[1]["scheduled_for"]


def test_a_forced_job_that_was_lost_and_turns_up_keeps_the_next_tick_away_too(
    store: BeatQueries, open_transaction: Open
) -> None:
    """It was not exclusive as it was made; beside a tick there would be two."""
    job = lost(store)
    store.database.execute("update pgbeat.finished_job set restart_data = restart_data || '{\"exclusive\": false}'")
    starting = open_transaction()
    assert starting.reports.start_lost(start_of(job), SILENCE)

    submitting = Attempt(lambda: submit_next(store)).waits_for(starting, store.database)
    starting.commit()
    submitting.answer()

    assert ["running", "skipped"] == states(store)


def test_without_the_unique_index_both_would_be_under_way(store: BeatQueries, open_transaction: Open) -> None:
    """The control: what the test before this one sees is the index's doing."""
    store.database.execute("drop index pgbeat.job_one_at_a_time")
    job = lost(store)
    starting = open_transaction()
    assert starting.reports.start_lost(start_of(job), SILENCE)

    at_once(lambda: submit_next(store))
    starting.commit()

    assert ["running", "pending"] == states(store)
    assert 2 == exclusive(store)


def test_a_lost_job_that_turns_up_beside_a_submit_waits_and_takes_the_place_of_the_new_one(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    job = lost(store)
    submitting = open_transaction()
    new = submit_next(store, submitting.store())

    starting = Attempt(lambda: reports.start_lost(start_of(job), SILENCE)).waits_for(submitting, store.database)
    submitting.commit()

    assert starting.answer()
    assert {job: "running", new: "skipped"} == {found["id"]: found["state"] for found in jobs(store)}


def test_a_lost_job_turns_up_twice_at_once_and_starts_once(
    store: BeatQueries, reports: WorkerQueries, open_transaction: Open
) -> None:
    job = lost(store)
    first = open_transaction()
    assert first.reports.start_lost(start_of(job), SILENCE)

    second = Attempt(lambda: reports.start_lost(start_of(job), SILENCE)).waits_for(first, store.database)
    first.commit()

    assert not second.answer()
    assert ["running"] == states(store)
