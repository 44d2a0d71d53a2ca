"""What `catchup = 'all'` catches up under an overlap rule waits in line, and goes out one after the other."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.session import Session
from tests.harness.ticks import HOUR, decided, insert, jobs, make_due

ON_TIME = timedelta(seconds=32)


def catch_up(store: BeatQueries, count: int = 3, **columns: str) -> list[uuid.UUID]:
    """Submit so many missed occurrences of a new row `a`, each decided by `all`; return their jobs."""
    make_due(store, "a", catchup="all", **columns)
    made = []
    for step in range(count):
        (row,) = store.mark(10)
        step_on = timedelta(microseconds=1) if step < count - 1 else HOUR
        decision = decided(row, row.next_run_at + step_on)._replace(origin="catchup")
        (answer,) = store.submit([decision], "UTC", True, True)
        assert answer.made
        assert decision.job is not None
        made.append(decision.job)
    return made


def states(store: BeatQueries) -> list[str]:
    return [job["state"] for job in jobs(store)]


def send_and_end(store: BeatQueries, session: Session, job: uuid.UUID) -> None:
    """Send a job, taken over if it was promoted, and have it end."""
    assert [one.id for one in store.recover(10, timedelta(days=1))] in ([], [job])
    store.confirm([(job, 0.0)])
    session.rows("delete from pgbeat.active_job where id = %s", str(job))


def test_the_first_goes_out_and_the_others_wait(store: BeatQueries) -> None:
    catch_up(store)

    assert ["pending", "buffered", "buffered"] == states(store)
    assert 0 == store.promote_buffered()


def test_a_buffered_job_with_no_job_in_its_way_is_promoted_by_the_sweep(store: BeatQueries, session: Session) -> None:
    """One that was buffered at the very moment at which the one before it ended."""
    catch_up(store)
    session.rows("alter table pgbeat.active_job disable trigger active_job_gone")
    session.rows("delete from pgbeat.active_job where state = 'pending'")
    assert ["buffered"] * 2 == states(store)

    assert 1 == store.promote_buffered()
    assert 0 == store.promote_buffered()
    assert ["pending", "buffered"] == states(store)


def test_the_end_of_each_job_promotes_the_next_in_the_order_of_their_instants(
    store: BeatQueries, session: Session
) -> None:
    made = catch_up(store)

    send_and_end(store, session, made[0])
    assert ["pending", "buffered"] == states(store)
    send_and_end(store, session, made[1])
    assert ["pending"] == states(store)
    send_and_end(store, session, made[2])
    assert [] == states(store)


def test_the_promotion_of_the_next_wakes_a_beat(store: BeatQueries, session: Session) -> None:
    made = catch_up(store)

    assert session.notified_by(lambda: send_and_end(store, session, made[0]))


def test_a_fresh_tick_meanwhile_is_decided_by_overlap(store: BeatQueries, session: Session) -> None:
    made = catch_up(store)
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    (row,) = store.mark(10)

    (answer,) = store.submit([decided(row)], "UTC", True, True)

    assert (False, made[0]) == (answer.made, answer.blocked_by)


def test_where_overlap_is_allowed_nothing_waits(store: BeatQueries) -> None:
    catch_up(store, overlap="allow")

    assert ["pending"] * 3 == states(store)


def test_a_running_job_keeps_those_behind_it_waiting(store: BeatQueries, session: Session) -> None:
    insert(store, "a")
    running = session.value("select pgbeat.trigger('a')")
    session.rows("update pgbeat.periodic_task set catchup = 'all', next_run_at = pgbeat.now()")
    (row,) = store.mark(10)
    store.submit([decided(row)._replace(origin="catchup")], "UTC", True, True)

    assert 0 == store.promote_buffered()
    session.rows("delete from pgbeat.active_job where id = %s", running)

    assert ["pending"] == states(store)


def test_a_buffered_job_is_busy_until_the_job_in_its_way_is_over(store: BeatQueries) -> None:
    catch_up(store, 2)

    first, second = jobs(store)

    assert first["busy_until"] == second["busy_until"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [("enabled = false", "paused"), ("name = name", None)],
)
def test_a_promoted_job_is_looked_at_again_before_it_is_sent(
    store: BeatQueries, session: Session, change: str, expected: str | None
) -> None:
    made = catch_up(store, 2)
    send_and_end(store, session, made[0])
    session.rows(f"update pgbeat.periodic_task set {change}")

    (recovered,) = store.recover(10, ON_TIME)

    assert expected == recovered.reason


def test_the_jobs_of_a_removed_row_leave_one_after_the_other(store: BeatQueries, session: Session) -> None:
    made = catch_up(store)
    session.rows("delete from pgbeat.periodic_task")
    send_and_end(store, session, made[0])

    reasons = [store.recover(10, ON_TIME)[0].reason for _ in range(2)]

    assert ["deleted"] * 2 == reasons
    assert ["skipped"] * 2 == states(store)
