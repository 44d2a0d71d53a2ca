"""Which jobs a beat asks the broker about, and its notes of those whose message is lost."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from celery_pgbeat.cli.doctor import work
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.beat_results import WaitingJob
from tests.harness.situations import JOB, Situation, ago
from tests.harness.ticks import beat

OTHER = uuid.UUID(int=2)
SHORT = ago(seconds=30)


@pytest.fixture
def queries(well: Situation, migrated_database: str) -> Any:
    well.plan()
    return beat(migrated_database)


def noted(well: Situation) -> list[uuid.UUID]:
    return [uuid.UUID(row["job"]) for row in well.session.rows("select job::text from pgbeat.lost_message order by 1")]


def test_a_job_that_has_waited_with_the_broker_for_longer_than_half_a_minute_is_asked_about(
    well: Situation, queries: Any
) -> None:
    deadline = SHORT + timedelta(hours=1)
    well.job("sent", SHORT, queue="slow", message='{"options": {"priority": 3}}', check_at=deadline)

    assert (False, []) == (queries.forget_nodes()[1], queries.waiting_with_broker(10))
    well.clock.advance(timedelta(microseconds=1))
    assert queries.forget_nodes()[1]
    assert [WaitingJob(JOB, "slow", "app.probe", {"priority": 3})] == queries.waiting_with_broker(10)


@pytest.mark.parametrize(
    "columns",
    [
        {"state": "pending"},
        {"state": "running"},
        {"state": "retrying"},
        {"state": "sent", "tracking": "result"},
        {"state": "sent", "since": ago(seconds=-60)},
    ],
    ids=["unsent", "running", "retrying", "no worker reports its start", "its countdown runs"],
)
def test_no_other_job_is_asked_about(well: Situation, queries: Any, columns: dict[str, Any]) -> None:
    well.job(**columns)

    assert (False, []) == (queries.forget_nodes()[1], queries.waiting_with_broker(10))
    assert [] == queries.note_lost_messages([JOB], [])


def test_a_long_queue_does_not_keep_those_of_another_one_from_being_asked_about(well: Situation, queries: Any) -> None:
    for number in range(2, 12):
        well.job("sent", id=str(uuid.UUID(int=number)), exclusive=False, queue="long")
    well.job("sent", ago(minutes=1), queue="short")

    assert {"long", "short"} == {job.queue for job in queries.waiting_with_broker(2)}


def test_a_note_is_made_once_and_forgotten_when_the_message_is_there_or_the_job_goes_on(
    well: Situation, queries: Any
) -> None:
    well.job("sent")
    well.job("sent", id=str(OTHER), exclusive=False)

    assert {JOB, OTHER} == set(queries.note_lost_messages([JOB, OTHER, uuid.uuid4()], []))
    assert [] == queries.note_lost_messages([JOB, OTHER], [])
    queries.note_lost_messages([], [OTHER])
    assert [JOB] == noted(well)
    queries.forget_nodes()
    assert [JOB] == noted(well)
    well.session.rows("update pgbeat.active_job set state = 'running' where id = %s", str(JOB))
    queries.forget_nodes()
    assert [] == noted(well)


def test_a_job_that_was_sent_again_and_is_lost_again_is_noted_again(well: Situation, queries: Any) -> None:
    well.job("sent")
    queries.note_lost_messages([JOB], [])
    well.session.rows("update pgbeat.active_job set busy_until = pgbeat.now() + pickup_deadline")
    well.clock.advance(timedelta(minutes=1))

    assert [JOB] == queries.note_lost_messages([JOB], [])
    assert 1 == len(well.overdue())


def test_only_living_workers_with_the_tracker_count(well: Situation, queries: Any) -> None:
    assert [1] == queries.tracking_workers()
    well.session.rows("update pgbeat.node set tracking = false where role = 'worker'")
    assert [] == queries.tracking_workers()
    well.session.rows("update pgbeat.node set tracking = true, last_seen_at = %s", ago(minutes=1))
    assert [] == queries.tracking_workers()


def test_doctor_names_the_jobs_and_both_ways_out(well: Situation, queries: Any) -> None:
    well.job("sent")
    queries.note_lost_messages([JOB], [])

    (found,) = work.stuck(AdminQueries(queries.database))

    assert found.what.startswith("Waiting for a worker, but the broker has lost its message: 1 job, the first is 'nigh")
    assert "celery-pgbeat job resend ID" in found.mend
    assert "celery-pgbeat job cancel ID" in found.mend
