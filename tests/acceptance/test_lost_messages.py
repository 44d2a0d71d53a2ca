"""A Redis that has lost messages: beats notice the jobs that wait for them, and nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.beat.send.broker import Broker
from celery_pgbeat.beat.send.lost_messages import LostMessages
from tests.harness.broker import depth
from tests.harness.jobs import active
from tests.harness.processes import Cluster
from tests.harness.rows import insert, sql
from tests.harness.sending import Sender, sender, worker
from tests.harness.ticks import beat as queries
from tests.harness.transactions import Transaction
from tests.harness.wait import eventually

LONG = 60  # seconds that a task runs; each test ends before


@pytest.fixture
def sending(cluster: Cluster) -> Iterator[Sender]:
    with sender(cluster) as made:
        yield made


def waits_long(sending: Sender, *jobs: uuid.UUID) -> None:
    """Let jobs have waited for a minute more."""
    for job in jobs:
        sending.database.execute(
            "update pgbeat.active_job set busy_until = busy_until - interval '1 minute', "
            "scheduled_for = scheduled_for - interval '1 minute' where id = %(job)s",
            {"job": job},
        )


def noticed(cluster: Cluster, sending: Sender, looks: int = 2) -> set[uuid.UUID]:
    """Return the jobs that a beat has noted after so many looks."""
    broker = cast("Broker", SimpleNamespace(driver="redis"))
    with closing(queries(cluster.database).database) as database:
        lost = LostMessages(sending.app, queries(cluster.database), broker)
        for _ in range(looks):
            lost.search()
        return {row.job for row in database.execute("select job from pgbeat.lost_message")}


def without_message(sending: Sender, count: int = 1, **columns: Any) -> list[uuid.UUID]:
    """Return jobs that have waited for long, and whose messages are nowhere."""
    jobs = [sending.job(**columns) for _ in range(count)]
    waits_long(sending, *jobs)
    return jobs


def test_a_purged_queue_is_noticed_within_a_minute_and_said_everywhere(cluster: Cluster) -> None:
    cluster.settings = {"pgbeat_dead_after": 3}  # a heartbeat each second
    insert(cluster.database, "row", schedule=None, args=["x"])
    cluster.beat()
    with closing(PgBeat(url=cluster.database)) as beat, sender(cluster) as sending:
        job = beat.trigger("row")
        sending.wait_for(job, "sent")
        assert 1 == sending.app.control.purge()
        worker(cluster)
        waits_long(sending, job)

        late = "select name, due_at, reason from pgbeat.overdue"
        noted = f"{late} where strpos(reason, 'the broker has lost') > 0"
        (shown,) = eventually(lambda: sql(cluster.database, noted), 30, "that it is overdue for that reason")
        assert ("row", beat.job(job).scheduled_for) == (shown["name"], shown["due_at"])
        sentence = (
            "the broker has lost its message: send it again (celery-pgbeat job resend ID) or end it (celery-pgbeat job "
            "cancel ID)"
        )
        assert str(shown["reason"]).endswith(sentence)
        assert sentence in beat.explain("row")
        beat.resend_job(job)
        sending.wait_for(job, "succeeded")
        assert [] == sql(cluster.database, late)
        eventually(lambda: [] == sql(cluster.database, "select * from pgbeat.lost_message"), 20, "no note")


def test_each_job_whose_message_is_nowhere_is_noticed_in_the_second_look(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    jobs = without_message(sending, 3)

    assert set() == noticed(cluster, sending, looks=1)
    assert set(jobs) == noticed(cluster, sending)


def test_a_job_that_has_not_waited_for_long_is_not_looked_for(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job = sending.job()

    assert set() == noticed(cluster, sending)
    waits_long(sending, job)
    assert {job} == noticed(cluster, sending)


def test_a_message_that_turns_up_ends_the_note(cluster: Cluster, sending: Sender) -> None:
    worker(cluster, concurrency=1, arguments=["--prefetch-multiplier", "1"])
    (job,) = without_message(sending)
    assert {job} == noticed(cluster, sending)
    running = sending.send_job("app.probe", "running", LONG)
    sending.wait_for(running, "running")

    sending.send(job, "app.probe", "x")

    assert set() == noticed(cluster, sending)


def fetched(cluster: Cluster, sending: Sender) -> list[uuid.UUID]:
    """Let a worker that is busy have fetched messages: the queue is empty."""
    worker(cluster, concurrency=1)
    running = sending.send_job("app.probe", "running", LONG)
    sending.wait_for(running, "running")
    jobs = [sending.send_job("app.probe", "x") for _ in range(3)]
    eventually(lambda: depth(cluster.broker) == 0, 20, "that the worker has fetched them")
    return jobs


def queued(cluster: Cluster, sending: Sender) -> list[uuid.UUID]:
    """Have a queue longer than what the worker fetches."""
    jobs = fetched(cluster, sending)
    return [*jobs, *(sending.send_job("app.probe", "x") for _ in range(10))]


def with_eta(cluster: Cluster, sending: Sender) -> list[uuid.UUID]:
    """Let an idle worker have fetched a message that is to start later."""
    worker(cluster)
    job = sending.send_job("app.probe", "x", countdown=LONG)
    eventually(lambda: depth(cluster.broker) == 0, 20, "that the worker has fetched it")
    return [job]


def of_a_dead_worker(cluster: Cluster, sending: Sender) -> list[uuid.UUID]:
    """Let a worker have died with fetched messages, which come back after the visibility time-out."""
    jobs = fetched(cluster, sending)
    cluster.nodes[-1].kill()
    worker(cluster)
    return jobs


def without_tracker(cluster: Cluster, sending: Sender) -> list[uuid.UUID]:
    """Let a worker without the tracker take part: it may have run the job."""
    worker(cluster)
    cluster.worker(settings={"imports": []})
    return without_message(sending)


def of_another_queue(cluster: Cluster, sending: Sender) -> list[uuid.UUID]:
    """Have only a worker of another queue."""
    worker(cluster, queues="other")
    return without_message(sending)


def without_workers(cluster: Cluster, sending: Sender) -> list[uuid.UUID]:
    """Have no worker at all."""
    del cluster
    return without_message(sending)


def of_low_priority(cluster: Cluster, sending: Sender) -> list[uuid.UUID]:
    """Have more messages of a low priority, which wait in a list of their own, than the worker fetches."""
    return [*fetched(cluster, sending), *(sending.send_job("app.probe", "x", priority=9) for _ in range(4))]


def tracked_by_results(cluster: Cluster, sending: Sender) -> list[uuid.UUID]:
    """Have a job of which no worker reports the start."""
    worker(cluster)
    job = sending.job(tracking="result")
    return [job]


@pytest.mark.parametrize(
    "stand",
    [
        fetched,
        queued,
        with_eta,
        of_a_dead_worker,
        without_tracker,
        of_another_queue,
        without_workers,
        of_low_priority,
        tracked_by_results,
    ],
)
def test_nothing_is_noticed_where_the_message_is_there_or_may_have_been_taken(
    cluster: Cluster, sending: Sender, stand: Callable[[Cluster, Sender], list[uuid.UUID]]
) -> None:
    jobs = stand(cluster, sending)
    waits_long(sending, *jobs)

    assert all(active(sending.database, job) for job in jobs)
    assert set() == noticed(cluster, sending, looks=3)


def test_a_start_that_waits_for_postgres_is_known_to_the_worker(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job = sending.job()
    waits_long(sending, job)

    with closing(Transaction(cluster.database)) as other:
        other.execute("select from pgbeat.active_job where id = %(job)s for update", {"job": job})
        sending.send(job, "app.probe", "x")
        eventually(lambda: sending.app.control.inspect().active(), 20, "that the worker has accepted it")

        assert set() == noticed(cluster, sending)
    sending.wait_for(job, "succeeded")


def test_a_queue_of_its_own_with_a_key_prefix_is_looked_into_as_kombu_names_it(
    cluster: Cluster, sending: Sender
) -> None:
    options = {"global_keyprefix": "shop:", "sep": "|", "priority_steps": [0, 5]}
    cluster.settings["broker_transport_options"] = options
    sending.app.conf.broker_transport_options = options
    worker(cluster, concurrency=1, queues="slow")
    (lost,) = without_message(sending, queue="slow")
    assert {lost} == noticed(cluster, sending)
    running = sending.send_job("app.probe", "running", LONG, queue="slow")
    sending.wait_for(running, "running")
    jobs = [sending.send_job("app.probe", "x", queue="slow", columns={"queue": "slow"}) for _ in range(2)]
    eventually(lambda: sending.app.control.inspect().reserved(), 20, "that the worker has fetched them")
    waits_long(sending, *jobs)

    assert {lost} == noticed(cluster, sending, looks=3)
