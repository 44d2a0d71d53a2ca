"""P1: any number of beats, no leader; P2: no tick is lost, even if a beat dies anywhere in a tick."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg2

from tests.acceptance.decisions import gaps
from tests.harness import broker, checker
from tests.harness.cost import slowness
from tests.harness.faults import Fault
from tests.harness.processes import Cluster
from tests.harness.rows import insert, insert_many, jobs, row, sql
from tests.harness.wait import eventually

SECONDS = float(os.environ.get("PGBEAT_TEST_SECONDS", "12"))  # how long a round under load lasts
STORE = "celery_pgbeat.postgres.beat_queries:BeatQueries"


def occurrences(url: str) -> Counter[tuple[str, Any]]:
    return Counter((job["periodic_task"], job["scheduled_for"]) for job in jobs(url))


def test_p1_p3_each_occurrence_starts_exactly_once_and_never_early(cluster: Cluster) -> None:
    insert_many(cluster.database, 30)
    worker = cluster.worker(concurrency=2)
    for _ in range(3):
        cluster.beat(wait=False)
    eventually(lambda: len(cluster.probe.runs()) >= 30, 30, "the first runs")
    time.sleep(SECONDS / 2)
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
    eventually(lambda: {job["state"] for job in jobs(cluster.database)} == {"succeeded"}, 30, "all jobs succeeded")

    runs = cluster.probe.runs()
    due = list(occurrences(cluster.database))
    assert worker.is_running()
    assert [] == checker.lost(due, runs)
    assert [] == checker.doubled(runs)
    assert [] == checker.early(runs)


def test_p2_the_ticks_of_a_killed_beat_are_sent_within_the_lease_and_two_seconds(cluster: Cluster) -> None:
    lease = 4
    cluster.settings = {"pgbeat_lease": lease, "pgbeat_poll": 0.5}
    insert_many(cluster.database, 20, "every 1h")
    cluster.beat(inject=[Fault(f"{STORE}.mark_or_submit", "stop", "after")])
    holder = cluster.nodes[0]
    eventually(lambda: all(row(cluster.database, f"row-{n:04}")["next_run_at"] for n in (1, 20)), 10, "all planned")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now()")
    eventually(lambda: row(cluster.database, "row-0001")["marked_by"], 10, "the first beat holds the marks")
    other = cluster.beat()
    (there,) = sql(cluster.database, "select pgbeat.now() as since")
    marked_at = row(cluster.database, "row-0001")["marked_at"]
    holder.kill()

    eventually(lambda: len([j for j in jobs(cluster.database) if j["state"] == "sent"]) == 20, lease + 10, "sent")

    # The other beat must be there to take over: on a busy machine its start may take longer than the lease.
    may_go_at = max(marked_at + timedelta(seconds=lease), there["since"])
    assert max(job["sent_at"] for job in jobs(cluster.database)) < may_go_at + timedelta(seconds=2 * slowness())
    assert 20 == len({message.id for message in broker.drain(cluster.broker)})
    assert other.is_running()


def test_p2_a_restarted_beat_frees_at_once_the_marks_of_its_dead_predecessor(cluster: Cluster) -> None:
    cluster.settings = {"pgbeat_lease": 120}
    insert(cluster.database, "held", next_run_at="2026-01-01T00:00:00Z", schedule=None)
    dead = cluster.beat(inject=[Fault(f"{STORE}.mark_or_submit", "kill", "after")], wait=False)
    eventually(lambda: dead.log and not dead.is_running(), 30, "the beat is dead")
    assert row(cluster.database, "held")["marked_by"]

    cluster.beat()

    eventually(lambda: broker.depth(cluster.broker) == 1, 10, "the tick goes out long before the lease is over")


def test_p1_a_starting_beat_never_clears_the_marks_of_a_live_one(cluster: Cluster) -> None:
    cluster.settings = {"pgbeat_lease": 60}
    insert(cluster.database, "held", next_run_at="2026-01-01T00:00:00Z", schedule=None)
    live = cluster.beat(inject=[Fault(f"{STORE}.mark_or_submit", "hang", "after", seconds=20)])
    mark = eventually(lambda: row(cluster.database, "held")["marked_by"], 10, "the live beat has marked the row")

    starting = cluster.beat()
    starting.wait_for_log("works on", 20)

    assert mark == row(cluster.database, "held")["marked_by"]
    eventually(lambda: broker.depth(cluster.broker) == 1, 40, "the live beat goes on")
    (job,) = jobs(cluster.database, "held")
    assert mark == job["beat"]
    assert live.is_running()


def test_p1_a_beat_that_was_stopped_past_its_lease_changes_nothing_when_it_resumes(cluster: Cluster) -> None:
    cluster.settings = {"pgbeat_lease": 2, "pgbeat_poll": 0.5}
    insert(cluster.database, "held", next_run_at="2026-01-01T00:00:00Z", schedule=None)
    sleeper = cluster.beat(inject=[Fault(f"{STORE}.submit", "stop", "after")])
    eventually(lambda: len(jobs(cluster.database, "held")) == 1, 15, "the sleeper has submitted")
    cluster.beat()
    eventually(lambda: broker.depth(cluster.broker) == 1, 15, "the other beat sends the job")

    sleeper.resume()
    time.sleep(2)

    assert sleeper.is_running()
    assert 1 == broker.depth(cluster.broker)
    (job,) = jobs(cluster.database, "held")
    assert "sent" == job["state"]


def test_p1_two_beats_with_the_same_name_do_not_decide_anything_twice(cluster: Cluster) -> None:
    insert_many(cluster.database, 20)
    for _ in range(2):
        cluster.beat(arguments=["-n", "same@host"], wait=False)
    eventually(lambda: len(sql(cluster.database, "select id from pgbeat.node")) == 2, 30, "two nodes")
    eventually(lambda: len(jobs(cluster.database)) >= 60, 30, "three rounds")

    assert {1} == set(occurrences(cluster.database).values())


def test_p2_a_stopped_beat_frees_its_rows_and_ends_within_five_seconds(cluster: Cluster) -> None:
    insert_many(cluster.database, 100)
    first, second = cluster.beat(), cluster.beat()
    second.wait_for_log("works on", 30)
    eventually(lambda: len(jobs(cluster.database)) >= 200, 30, "two rounds")

    began = time.monotonic()
    first.stop()
    took = time.monotonic() - began

    left = sql(
        cluster.database, "select name from pgbeat.periodic_task where marked_by not in (select id from pgbeat.node)"
    )
    assert 1 == len(sql(cluster.database, "select id from pgbeat.node"))  # else nothing is in none of them
    assert took < 5
    assert [] == left
    count = len(jobs(cluster.database))
    eventually(lambda: len(jobs(cluster.database)) >= count + 200, 15, "the other beat goes on")
    assert {1} == set(occurrences(cluster.database).values())
    assert [] == gaps(cluster.database, timedelta(seconds=1))
    assert second.is_running()


def test_a_sleeping_beat_stops_within_two_seconds(cluster: Cluster) -> None:
    beat = cluster.beat(settings={"pgbeat_poll": 60, "beat_max_loop_interval": 60})
    beat.wait_for_log("works on", 20)
    time.sleep(1)

    began = time.monotonic()
    beat.stop()

    assert time.monotonic() - began < 2


def test_p2_a_row_that_was_locked_at_its_submit_is_submitted_when_the_lock_is_gone(cluster: Cluster) -> None:
    """Although other rows are due meanwhile: the locked row is not forgotten."""
    insert(cluster.database, "held", schedule=None)
    insert_many(cluster.database, 8, "every 1s")
    beat = cluster.beat(inject=[Fault(f"{STORE}.mark_or_submit", "hang", "after", call=0, seconds=0.3)])
    eventually(lambda: len(jobs(cluster.database)) >= 8, 20, "a round")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now() where name = 'held'")
    eventually(lambda: row(cluster.database, "held")["marked_by"], 10, "it is marked", every=0.005)
    with closing(psycopg2.connect(cluster.database)) as holder:
        holder.cursor().execute("select 1 from pgbeat.periodic_task where name = 'held' for update")
        time.sleep(1.5)
    (released,) = sql(cluster.database, "select clock_timestamp() as at")

    eventually(lambda: jobs(cluster.database, "held"), 10, "it goes out")
    assert jobs(cluster.database, "held")[0]["created_at"] - released["at"] < timedelta(seconds=3)
    assert beat.is_running()


def test_p2_a_stop_in_the_middle_of_a_long_batch_sends_nothing_twice(cluster: Cluster) -> None:
    """Each message takes a while, so the batch would outlast the time that a stop gives it."""
    slow = Fault("celery_pgbeat.beat.scheduler:Scheduler.apply_async", "hang", "before", call=0, seconds=0.02)
    insert_many(cluster.database, 400, "every 1h")
    beat = cluster.beat(inject=[slow])
    eventually(lambda: row(cluster.database, "row-0400")["next_run_at"], 20, "planned")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now()")
    eventually(lambda: broker.depth(cluster.broker) > 20, 20, "the batch is under way")
    beat.stop()
    cluster.beat()
    eventually(
        lambda: len([job for job in jobs(cluster.database) if job["state"] == "sent"]) == 400, 20, "all are sent"
    )

    assert 400 == broker.depth(cluster.broker)
