"""Jobs that no worker reports on: the result backend is asked, and tells their end."""

from __future__ import annotations

import uuid

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.session import Session
from tests.harness.ticks import decided, jobs, make_due


def sent(store: BeatQueries, name: str, **columns: str) -> uuid.UUID:
    """Have a row's job at the broker, tracked by the result backend."""
    make_due(store, name, tracking="result", **columns)
    (row,) = store.mark(10)
    decision = decided(row)
    store.submit([decision], "UTC", True, True)
    assert decision.job is not None
    store.confirm([(decision.job, 0.0)])
    return decision.job


def test_a_look_returns_whether_a_result_backend_has_to_be_asked(store: BeatQueries) -> None:
    assert not store.look().unreported
    sent(store, "a")
    assert store.look().unreported


def test_the_jobs_to_ask_about_are_in_the_way_or_silent_for_too_long(store: BeatQueries, session: Session) -> None:
    first, second, third = (sent(store, name) for name in "abc")
    session.rows(
        "update pgbeat.active_job set check_at = 'epoch', busy_until = pgbeat.now() - interval '1 s' where id = %s",
        str(third),
    )

    assert {first, third} == set(store.unreported(10, ["a"]))
    assert {third} == set(store.unreported(10))
    assert second not in store.unreported(10, ["a"])


@pytest.mark.parametrize("state", ["succeeded", "failed", "revoked"])
def test_what_has_ended_leaves_the_way_in_its_final_state(store: BeatQueries, session: Session, state: str) -> None:
    job = sent(store, "a")

    assert 1 == store.finish_by_result([(job, state)])

    assert [state] == [one["state"] for one in jobs(store)]
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    (row,) = store.mark(10)
    (answer,) = store.submit([decided(row)], "UTC", True, True)
    assert answer.made


def test_a_job_that_a_worker_reports_on_is_not_settled(store: BeatQueries, session: Session) -> None:
    job = sent(store, "a")
    session.rows("update pgbeat.active_job set state = 'running'")

    assert 0 == store.finish_by_result([(job, "succeeded")])


def test_a_job_that_no_worker_reports_is_never_sent_again(store: BeatQueries, session: Session) -> None:
    sent(store, "a")
    session.rows("update pgbeat.active_job set check_at = 'epoch', busy_until = pgbeat.now() - interval '1 s'")

    (verdict,) = store.judge(10, resending=True)

    assert "lost" == verdict.verdict


@pytest.mark.parametrize(("acts_as", "state"), [("result", "sent"), ("send", "untracked")])
def test_jobs_made_before_it_was_known_that_no_worker_reports_are_tracked_as_the_rest(
    store: BeatQueries, session: Session, acts_as: str, state: str
) -> None:
    sent(store, "a")
    session.rows("update pgbeat.active_job set tracking = 'full'")

    assert 1 == store.lower_tracking(acts_as)

    (job,) = jobs(store)
    assert (state, acts_as == "send") == (job["state"], job["finished_at"] is not None)
    assert (acts_as == "result") == store.look().unreported


# Jobs whose tasks have run in the beat itself.


def test_a_job_that_ran_in_its_beat_is_final_and_its_row_goes_on(store: BeatQueries, session: Session) -> None:
    make_due(store, "a")
    (row,) = store.mark(10)
    store.submit([decided(row)], "UTC", True, True)
    (job,) = jobs(store)

    assert 1 == store.finish_eager([(job["id"], "failed", "ValueError: x")])

    (job,) = jobs(store)
    assert ("failed", "ValueError: x") == (job["state"], job["error"])
    assert job["started_at"] <= job["finished_at"]
    assert [] == session.rows("select from pgbeat.active_job")


def test_a_job_that_another_beat_has_taken_over_did_not_run_in_this_one(store: BeatQueries, session: Session) -> None:
    make_due(store, "a")
    (row,) = store.mark(10)
    store.submit([decided(row)], "UTC", True, True)
    session.rows("update pgbeat.active_job set marked_by = 'beat-b'")

    assert 0 == store.finish_eager([(jobs(store)[0]["id"], "succeeded", None)])


def test_failures_in_the_beat_itself_pause_a_row_as_others_do(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", pause_after_failures=1)
    (row,) = store.mark(10)
    store.submit([decided(row)], "UTC", True, True)

    store.finish_eager([(jobs(store)[0]["id"], "failed", "ValueError: x")])

    assert ["a"] == [name for name, _ in store.pause_failing(10)]
