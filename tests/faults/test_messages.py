"""What brokers do to messages: they lose them and deliver them again and again. Each job starts once all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from celery import Celery

from tests.faults.conftest import Proof
from tests.faults.lengths import LEASE, MARKS, SECONDS, part, within
from tests.faults.load import INBOX, Load, beats, now, tapped
from tests.harness.account import Account, Limits, prove
from tests.harness.broker import both_brokers
from tests.harness.processes import Cluster
from tests.harness.rows import jobs, sql
from tests.harness.wait import eventually

pytestmark = MARKS

COUNT = part(1000, least=50)
PICKUP = max(6, COUNT // 40)  # seconds; a worker must be able to start all of them within that


def send_once(cluster: Cluster, count: int, queue: str) -> None:
    """Make rows that are due once, now."""
    sql(
        cluster.database,
        "insert into pgbeat.periodic_task (name, task, args, queue, next_run_at) "
        "select name, 'app.probe', jsonb_build_array(name), %(queue)s, %(at)s from unnest(%(names)s::text[]) name",
        names=[f"{queue}-{number}" for number in range(count)],
        queue=queue,
        at=now(cluster.database),
    )


def test_jobs_of_a_flushed_queue_are_sent_again_under_the_same_ids(cluster: Cluster, proven: Proof) -> None:
    cluster.settings = {"pgbeat_lease": LEASE, "pgbeat_dead_after": 6, "pgbeat_pickup_deadline": PICKUP}
    cluster.worker()  # announces that workers have the tracker, so that silent jobs are sent again
    beats(cluster, 2)
    with tapped(cluster, "void") as void:
        send_once(cluster, 5, "void")
        with tapped(cluster, INBOX) as flushed:
            send_once(cluster, COUNT, INBOX)
            eventually(lambda: len(flushed.arrivals) == COUNT, within(10), "all messages")
        with tapped(cluster, INBOX, onward="celery") as refilled:
            eventually(lambda: len(refilled.arrivals) == COUNT, within(PICKUP + 5), "all messages again")
            eventually(lambda: len(cluster.probe.runs()) >= COUNT, within(PICKUP + 10), "all runs")
        eventually(lambda: len(void.arrivals) == 4 * 5, 4 * within(PICKUP + 2), "three resends each")
        lost = "select periodic_task as name, sends from pgbeat.job where state = 'lost'"
        eventually(lambda: len(sql(cluster.database, lost)) == 5, within(PICKUP + 2), "given up after that")

    due = [(arrival.periodic_task or "", arrival.scheduled_for or arrival.seen_at) for arrival in flushed.arrivals]
    proven(Account(due, refilled.arrivals, cluster.probe.runs()), Limits())
    assert {arrival.job for arrival in flushed.arrivals} == {arrival.job for arrival in refilled.arrivals}
    assert {4} == set(Counter(arrival.job for arrival in void.arrivals).values())
    assert {(f"void-{number}", 4) for number in range(5)} == {
        (row["name"], row["sends"]) for row in sql(cluster.database, lost)
    }


SHORT_SIGHT = {"visibility_timeout": 1, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}  # seconds
RUN = 3.0  # seconds; longer than the broker waits for an acknowledgement


@both_brokers
def test_messages_delivered_three_times_and_again_while_their_jobs_run_start_once(
    cluster: Cluster, redis_url: str, note: Callable[[str], None]
) -> None:
    cluster.settings = {"result_backend": redis_url, "task_acks_late": True}
    on_redis = cluster.broker.startswith("redis")
    worker = cluster.worker(concurrency=6, settings={"broker_transport_options": SHORT_SIGHT} if on_redis else {})
    beats(cluster, 2)
    with tapped(cluster, INBOX, onward="celery", copies=3) as tap:
        every = timedelta(seconds=4)
        well = Load(cluster, 3, name="well", every=every, sleep=RUN, queue=f"'{INBOX}'")
        badly = Load(
            cluster, 3, name="badly", every=every, queue=f"'{INBOX}'", args=f"jsonb_build_array(name, {RUN}, true)"
        )
        well.runs_for(SECONDS)
        accounts = [load.settle(tap, started=True) for load in (well, badly)]
        ended = "select 1 from pgbeat.active_job"
        eventually(lambda: not sql(cluster.database, ended), within(RUN + 10), "the end of all runs")
    sent = len(tap.arrivals)
    eventually(lambda: worker.log.count("second message of job") >= 2 * sent, within(10), "the copies dropped")

    note(f"{worker.log.count('second message of job')} copies of {sent} messages dropped")
    for account in accounts:
        note(str(account))
        prove(account, Limits())
    with Celery(broker=cluster.broker, backend=redis_url, set_as_current=False) as app:
        stored = {job["id"]: app.AsyncResult(job["id"]).state for job in jobs(cluster.database)}
    wanted = {"well": "SUCCESS", "badly": "FAILURE"}
    assert {job["id"]: wanted[job["periodic_task"].partition("-")[0]] for job in jobs(cluster.database)} == stored
    assert not on_redis or worker.log.count("second message of job") > 2 * sent
