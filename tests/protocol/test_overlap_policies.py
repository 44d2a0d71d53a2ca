"""What a submit does where a job of the name is not final, by the row's overlap policy."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from celery_pgbeat.postgres import beat_queries as store_module
from celery_pgbeat.postgres.beat_queries import BeatQueries, Submitted
from tests.harness.session import Session
from tests.harness.ticks import decided, jobs, make_due

ON_TIME = timedelta(seconds=32)
WAITING = ("buffer_one", "buffer_all", "cancel_other", "terminate_other")


def tick(store: BeatQueries, session: Session) -> tuple[uuid.UUID, Submitted]:
    """Have the row's next occurrence decided now; return the id its job has or would have had."""
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    (row,) = store.mark(10)
    decision = decided(row)
    (answer,) = store.submit([decision], "UTC", True, True)
    assert decision.job is not None
    return decision.job, answer


def running(store: BeatQueries, session: Session, state: str = "running") -> uuid.UUID:
    """Have the row's only job in this state, at a worker."""
    job, answer = tick(store, session)
    assert answer.made
    session.rows("update pgbeat.active_job set state = %s, worker = 'w', busy_until = pgbeat.now() + '1 hour'", state)
    return job


def row_of_job(session: Session, job: uuid.UUID) -> dict[str, Any]:
    return session.row("select * from pgbeat.job where id = %s", str(job))


@pytest.mark.parametrize("overlap", WAITING)
def test_with_nothing_in_the_way_an_occurrence_goes_out_at_once(
    store: BeatQueries, session: Session, overlap: str
) -> None:
    make_due(store, "a", overlap=overlap)

    _, answer = tick(store, session)

    assert (True, False) == (answer.made, answer.waits)
    assert [("pending", 1)] == [(job["state"], job["sends"]) for job in jobs(store)]


def test_buffer_one_keeps_the_first_that_waits_and_skips_the_later_ones(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", overlap="buffer_one")
    first = running(store, session)

    second, waits = tick(store, session)
    third, skipped = tick(store, session)

    assert (True, True) == (waits.made, waits.waits)
    assert (False, first) == (skipped.made, skipped.blocked_by)
    assert ("skipped", "overlap") == (row_of_job(session, third)["state"], row_of_job(session, third)["reason"])
    session.rows("delete from pgbeat.active_job where id = %s", str(first))
    assert "pending" == row_of_job(session, second)["state"]


def test_buffer_all_keeps_them_in_their_order_up_to_the_limit(
    store: BeatQueries, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MOST_BUFFERED", 2)
    make_due(store, "a", overlap="buffer_all")
    first = running(store, session)

    made = [tick(store, session) for _ in range(3)]

    assert [True, True, False] == [answer.waits for _, answer in made]
    last = row_of_job(session, made[2][0])
    assert ("skipped", "limit", first) == (last["state"], last["reason"], uuid.UUID(str(last["blocked_by"])))
    session.rows("delete from pgbeat.active_job where id = %s", str(first))
    assert ["pending", "buffered"] == [row_of_job(session, job)["state"] for job, _ in made[:2]]


@pytest.mark.parametrize(("overlap", "ask"), [("cancel_other", "cancel"), ("terminate_other", "terminate")])
def test_a_running_job_is_asked_to_end_and_the_latest_waits_for_that(
    store: BeatQueries, session: Session, overlap: str, ask: str
) -> None:
    make_due(store, "a", overlap=overlap)
    first = running(store, session)

    second, waits = tick(store, session)
    third, latest = tick(store, session)

    assert (True, True) == (waits.waits, latest.waits)
    assert ask == session.value("select stop_request from pgbeat.active_job where id = %s", str(first))
    replaced = row_of_job(session, second)
    assert ("skipped", "superseded", third) == (
        replaced["state"],
        replaced["reason"],
        uuid.UUID(str(replaced["blocked_by"])),
    )
    session.rows("delete from pgbeat.active_job where id = %s", str(first))
    assert "pending" == row_of_job(session, third)["state"]


@pytest.mark.parametrize("state", ["pending", "sent", "retrying"])
@pytest.mark.parametrize("overlap", ["cancel_other", "terminate_other"])
def test_a_queued_job_is_withdrawn_at_once_and_the_new_one_goes_out(
    store: BeatQueries, session: Session, overlap: str, state: str
) -> None:
    make_due(store, "a", overlap=overlap)
    first = running(store, session, state)

    second, answer = tick(store, session)

    assert (True, False) == (answer.made, answer.waits)
    assert ("revoked", second) == (
        row_of_job(session, first)["state"],
        uuid.UUID(str(row_of_job(session, first)["blocked_by"])),
    )
    assert "pending" == row_of_job(session, second)["state"]


def test_terminate_is_not_taken_back_by_a_later_cancel(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", overlap="terminate_other")
    first = running(store, session)
    tick(store, session)
    session.rows("update pgbeat.periodic_task set overlap = 'cancel_other'")

    tick(store, session)

    assert "terminate" == session.value("select stop_request from pgbeat.active_job where id = %s", str(first))


def test_a_job_asked_to_end_that_falls_silent_is_lost_and_not_run_again(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", overlap="cancel_other", on_lost="rerun")
    first = running(store, session)
    second, _ = tick(store, session)
    session.rows(
        "update pgbeat.active_job set check_at = 'epoch', "
        "busy_until = pgbeat.now() - interval '1 s' where stop_request is not null"
    )

    (verdict,) = store.judge(10, resending=True)

    assert (first, "lost") == (verdict.id, verdict.verdict)
    assert "pending" == row_of_job(session, second)["state"]


@pytest.mark.parametrize("acts_as", ["result", "send"])
def test_where_no_worker_reports_full_tracking_is_made_what_it_comes_to(
    store: BeatQueries, session: Session, acts_as: str
) -> None:
    make_due(store, "a")
    (row,) = store.mark(10)

    store.submit([decided(row)], "UTC", True, True, acts_as)

    assert acts_as == session.value("select tracking from pgbeat.active_job")


@pytest.mark.parametrize("overlap", ["skip", "buffer_one"])
def test_a_job_that_is_final_when_sent_blocks_no_other_while_it_is_sent(
    store: BeatQueries, session: Session, overlap: str
) -> None:
    make_due(store, "a", overlap=overlap, tracking="send")
    (row,) = store.mark(10)
    first = decided(row, row.next_run_at + timedelta(microseconds=1))
    assert [True] == [answer.made for answer in store.submit([first], "UTC", True, True)]
    (row,) = store.mark(10)
    second = decided(row)

    assert [] == store.submit([second], "UTC", True, True)
    assert {"a"} == store.still_marked(["a"])
    assert first.job is not None
    store.confirm([(first.job, 0)])

    assert [True] == [answer.made for answer in store.submit([second], "UTC", True, True)]


def test_a_job_that_no_beat_is_sending_any_more_is_in_the_way(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", tracking="send")
    (row,) = store.mark(10)
    store.submit([decided(row, row.next_run_at + timedelta(microseconds=1))], "UTC", True, True)
    session.rows("update pgbeat.active_job set check_at = 'epoch', marked_at = marked_at - interval '1 hour'")
    (row,) = store.mark(10)

    (answer,) = store.submit([decided(row)], "UTC", True, True)

    assert not answer.made


def test_what_waited_is_late_by_design_and_goes_out_all_the_same(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", overlap="buffer_one", catchup="none")
    first = running(store, session)
    second, _ = tick(store, session)
    session.rows("update pgbeat.active_job set due_at = due_at - interval '1 hour'")
    session.rows("delete from pgbeat.active_job where id = %s", str(first))

    (recovered,) = store.recover(10, ON_TIME)

    assert (second, None) == (recovered.id, recovered.reason)


def test_what_waited_longer_than_its_catchup_window_is_too_late(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", overlap="buffer_one", catchup_window="10 minutes")
    first = running(store, session)
    tick(store, session)
    session.rows("update pgbeat.active_job set due_at = due_at - interval '1 hour'")
    session.rows("delete from pgbeat.active_job where id = %s", str(first))

    (recovered,) = store.recover(10, ON_TIME)

    assert "too_late" == recovered.reason


def test_what_waits_goes_out_at_once_when_the_row_allows_overlap(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", overlap="buffer_all")
    running(store, session)
    second, _ = tick(store, session)
    third, _ = tick(store, session)
    session.rows("update pgbeat.periodic_task set overlap = 'allow'")

    assert 2 == store.promote_buffered()

    assert ["pending", "pending"] == [row_of_job(session, job)["state"] for job in (second, third)]


def test_a_replaced_job_that_waited_does_not_count_as_a_run(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", overlap="cancel_other", max_runs="3")
    running(store, session)
    for _ in range(4):
        tick(store, session)

    row = session.task("a")
    assert (2, True) == (row["run_count"], row["next_run_at"] is not None)


def test_a_job_that_only_the_result_backend_knows_is_not_withdrawn(store: BeatQueries, session: Session) -> None:
    """It may be running: nobody would drop its message, and nobody can ask it to end."""
    make_due(store, "a", overlap="cancel_other", tracking="result")
    first = running(store, session, "sent")

    _, answer = tick(store, session)

    assert answer.waits
    assert "sent" == row_of_job(session, first)["state"]
