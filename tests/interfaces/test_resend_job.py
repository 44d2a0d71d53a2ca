"""A person ends a job that waits with the broker, or has it sent again: the broker has lost its message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from celery import Celery

from celery_pgbeat.errors import JobNotCancellable, JobNotResendable, UnknownJob, WorkTaken
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from celery_pgbeat.testing import PgBeatTest
from celery_pgbeat.testing.recorder import Sent
from celery_pgbeat.worker.start.guard import StartResult, start_job
from tests.harness.kits import MakeKit

NOON = "2026-12-07T12:00Z"
DAY = timedelta(days=1)


@pytest.fixture
def kit(make_kit: MakeKit) -> Iterator[PgBeatTest]:
    app = Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)
    app.conf.update(result_expires=None, timezone="UTC")
    with make_kit(app, NOON, finishing=False) as made:
        yield made


def sent(kit: PgBeatTest, **columns: Any) -> Sent:
    """Return a job that was sent, and that no worker has picked up."""
    kit.beat.schedule("a", "shop.report", "every 1h", **columns)
    (job,) = kit.advance("1h")
    return job


def change(kit: PgBeatTest, job: UUID, **columns: Any) -> None:
    for column, value in columns.items():
        schema = kit.beat.database.schema
        kit.beat.database.execute(
            f"update {schema}.active_job set {column} = %(value)s where id = %(id)s", {"value": value, "id": str(job)}
        )


def column(kit: PgBeatTest, job: UUID, name: str) -> Any:
    schema = kit.beat.database.schema
    (row,) = kit.beat.database.execute(f"select {name} from {schema}.active_job where id = %(id)s", {"id": str(job)})
    return row[0]


def message_arrives(kit: PgBeatTest, job: Sent, attempt: int = 0) -> StartResult:
    """Let a message of the job come to a worker; return what the guard does with it."""
    start = Start(job.id, job.run, attempt, uuid4(), "worker-1")
    return start_job(WorkerQueries(kit.beat.database), start, DAY)


def acts(kit: PgBeatTest, *wanted: str) -> list[tuple[str, str, UUID | None, str | None]]:
    found = [one for one in kit.beat.changes("a") if one.action in wanted]
    return [(one.action, one.who, one.job, one.reason) for one in found]


# --- cancelled


@pytest.mark.parametrize("state", ["sent", "retrying"])
def test_a_job_that_waits_with_the_broker_is_cancelled_and_its_message_starts_nothing(
    kit: PgBeatTest, state: str
) -> None:
    job = sent(kit)
    change(kit, job.id, state=state, attempt=int(state == "retrying"))
    assert [] == kit.advance("1h")  # it blocks its row

    kit.beat.as_person("ann").cancel_job(job.id, "the queue was purged")

    assert ("revoked", "cancelled by ann: the queue was purged") == (
        kit.beat.job(job.id).state,
        kit.beat.job(job.id).error,
    )
    assert [("cancelled", "ann", job.id, "the queue was purged")] == acts(kit, "cancelled")
    assert StartResult.DUPLICATE == message_arrives(kit, job, attempt=1)
    assert 1 == len(kit.advance("1h"))


@pytest.mark.parametrize("holder", [None, "beat-1"], ids=["given back", "being sent"])
def test_a_job_that_a_beat_has_tried_to_send_is_cancelled(kit: PgBeatTest, holder: str | None) -> None:
    job = sent(kit)
    marked_at = kit.clock.now if holder else None
    change(kit, job.id, state="pending", marked_by=holder, marked_at=marked_at, check_at="-infinity")

    kit.beat.cancel_job(job.id)

    assert "revoked" == kit.beat.job(job.id).state
    assert [] == kit.tick()
    assert StartResult.DUPLICATE == message_arrives(kit, job)


def test_where_no_guard_asks_a_job_is_not_cancelled_while_its_message_is_sent(kit: PgBeatTest) -> None:
    job = sent(kit)
    marked = {"marked_by": "beat-1", "marked_at": kit.clock.now, "mark_lease": timedelta(seconds=15)}
    change(kit, job.id, state="pending", tracking="send", **marked)

    with pytest.raises(JobNotCancellable, match=f"A beat sends Job {job.id} of 'a' at this moment: look again"):
        kit.beat.cancel_job(job.id)
    kit.clock.advance("16s")
    kit.beat.cancel_job(job.id)

    assert "revoked" == kit.beat.job(job.id).state


def test_a_job_whose_end_only_the_result_backend_knows_is_cancelled_too(kit: PgBeatTest) -> None:
    job = sent(kit)
    change(kit, job.id, tracking="result")

    kit.beat.cancel_job(job.id)

    assert 1 == len(kit.advance("1h"))


def test_a_running_job_is_not_cancelled_and_the_sentence_says_what_ends_it(kit: PgBeatTest) -> None:
    job = sent(kit)
    kit.start(job)

    with pytest.raises(JobNotCancellable) as refused:
        kit.beat.cancel_job(job.id)

    way_out = f"is running: end it with Celery, app.control.revoke('{job.id}', terminate=True)"
    assert f"Job {job.id} of 'a' {way_out}" == str(refused.value)


# --- sent again


def test_a_job_is_sent_again_at_once_under_its_own_id(kit: PgBeatTest) -> None:
    job = sent(kit)

    assert "a" == kit.beat.as_person("ann").resend_job(job.id)

    (again,) = kit.tick()
    assert (job.id, job.run, job.args) == (again.id, again.run, again.args)
    assert [("resent", "ann", job.id, None)] == acts(kit, "resent")
    assert [StartResult.STARTED, StartResult.DUPLICATE] == [message_arrives(kit, one) for one in (again, job)]


def test_p3_the_first_message_starts_it_if_it_comes_before_a_beat_has_sent_another(kit: PgBeatTest) -> None:
    job = sent(kit)
    kit.beat.resend_job(job.id)

    assert StartResult.STARTED == message_arrives(kit, job)
    assert [] == kit.tick()
    assert "running" == kit.beat.job(job.id).state


@pytest.mark.parametrize(
    "became",
    [
        pytest.param(lambda kit: kit.beat.pause("a"), id="paused"),
        pytest.param(lambda kit: kit.beat.unschedule("a"), id="removed"),
        pytest.param(lambda kit: kit.clock.advance("3h"), id="too late for its catchup"),
    ],
)
def test_it_is_sent_again_whatever_became_of_its_row(kit: PgBeatTest, became: Callable[[PgBeatTest], object]) -> None:
    job = sent(kit, catchup="none", catchup_window="1m")
    became(kit)

    kit.beat.resend_job(job.id)

    assert [job.id] == [one.id for one in kit.tick()]


def test_it_comes_no_nearer_to_being_lost(kit: PgBeatTest) -> None:
    job = sent(kit)
    change(kit, job.id, resends=3)

    for _ in range(5):
        kit.beat.resend_job(job.id)
        assert [job.id] == [one.id for one in kit.tick()]

    assert 3 == column(kit, job.id, "resends")
    left = column(kit, job.id, "busy_until - pgbeat.now()".replace("pgbeat.", f"{kit.beat.database.schema}."))
    assert column(kit, job.id, "pickup_deadline") == left


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"state": "pending"}, "is to be sent: a beat sends it"),
        ({"state": "running"}, "is running: a worker has its message"),
        ({"state": "buffered", "wait_reason": "predecessor"}, "waits for its turn: a beat sends it then"),
        ({"state": "error"}, "has failed: decide about it with retry_job() or fail_job()"),
        (
            {"state": "retrying", "attempt": 1},
            "waits for its attempt 2, whose message only Celery can make: end it with cancel_job(), and run it again "
            "with retry_job()",
        ),
        (
            {"state": "sent", "attempt": 2},
            "waits for its attempt 3, whose message only Celery can make: end it with cancel_job(), and run it again "
            "with retry_job()",
        ),
        (
            {"state": "sent", "tracking": "result"},
            "is not tracked in full (tracking is result), so two messages of it could run: end it with cancel_job()",
        ),
    ],
)
def test_a_job_in_another_state_is_refused_with_the_way_out(
    kit: PgBeatTest, columns: dict[str, Any], sentence: str
) -> None:
    job = sent(kit, on_error="ask")
    names = ", ".join(f"{name} = %({name})s" for name in columns)
    statement = f"update {kit.beat.database.schema}.active_job set {names} where id = %(id)s"
    kit.beat.database.execute(statement, {**columns, "id": str(job.id)})

    with pytest.raises(JobNotResendable) as refused:
        kit.beat.resend_job(job.id)

    assert f"Job {job.id} of 'a' {sentence}" == str(refused.value)


def test_a_job_that_is_over_or_for_people_or_unknown_is_not_sent_again(kit: PgBeatTest) -> None:
    job = sent(kit)
    kit.beat.schedule("sign off", None, None, kind="human")
    work = kit.beat.trigger("sign off")
    kit.tick()
    kit.beat.cancel_job(job.id)
    done = kit.beat.trigger("a")
    kit.tick()
    kit.finish(done)

    refusals = {
        job.id: f"Job {job.id} of 'a' is over: revoked. Run it again with retry_job()",
        done: f"Job {done} of 'a' is over: succeeded",
        work: f"Job {work} of 'sign off' is for people, and has no message",
    }
    for id, sentence in refusals.items():
        with pytest.raises(JobNotResendable) as refused:
            kit.beat.resend_job(id)
        assert sentence == str(refused.value)
    with pytest.raises(UnknownJob, match="There is no job"):
        kit.beat.resend_job(uuid4())


@pytest.mark.parametrize("call", ["cancel_job", "resend_job"])
def test_neither_waits_for_a_transaction_that_has_locked_the_job(kit: PgBeatTest, call: str) -> None:
    job = sent(kit)
    schema = kit.beat.database.schema

    with kit.beat.database.engine.execution_options(isolation_level="READ COMMITTED").begin() as other:
        other.exec_driver_sql(f"select from {schema}.active_job where id = '{job.id}' for update")
        with pytest.raises(WorkTaken, match="look again"):
            getattr(kit.beat, call)(job.id)

    assert "a" == getattr(kit.beat, call)(job.id)
