"""P1, P2, P3: `kill -9` at each step of a tick, and of a job's life in the worker."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from celery_pgbeat.postgres.database import Database
from tests.acceptance.decisions import decided, gaps, left_from
from tests.harness import broker, checker
from tests.harness.crash_points import MENDING, PLANNING, TICK, WORKER, CrashPoint, around
from tests.harness.faults import Fault
from tests.harness.jobs import make_job
from tests.harness.processes import Beat, Cluster
from tests.harness.rows import insert, insert_many, jobs, sql
from tests.harness.wait import eventually

LEASE, POLL = 2.0, 0.5  # seconds
BATCH = 4
MARGIN = 3.0  # seconds that a busy machine may add to them
SECOND = timedelta(seconds=1)
# A message between its publish and its confirm may be sent again, under the same id; nothing else may. Here is one for
# certain; at any other kill there may be some, because the delivery goes on beside a confirm, and beside a mark.
UNCONFIRMED = {CrashPoint("after", "publish"), CrashPoint("before", "confirm")}
STALL = "stall.trap"  # between submit and publish, for longer than the lease: what was submitted is given back


class Stage:
    """Brings a beat to a step by making it necessary, once more with each call."""

    def __init__(self, url: str, folder: Path) -> None:
        self.once: list[str] = []  # names that have one occurrence to run
        self.url = url
        self._folder = folder

    def set_for(self, step: str) -> None:
        """Make a step necessary; those that are not named here come every second by themselves."""
        name = f"{step}-{len(self.once)}"
        now = self._now()
        if step == "plan":
            self._insert(name, _text(now + 2 * SECOND))
        elif step == "postpone":
            self._insert(name, None, next_run_at=now, blackout=[f"{_text(now)} PT3S"])
        elif step == "resume_due":
            self._insert(name, _text(now + 4 * SECOND), enabled=False, paused_until=now + SECOND / 2)
        elif step == "recover":
            self._insert(name, None)
            sql(self.url, "select pgbeat.trigger(%(name)s)", name=name)
        elif step == "submit":
            self._insert(name, None, next_run_at=now)
        elif step == "judge":
            self._lose_a_message(name)
        elif step == "give_back":
            (self._folder / STALL).touch()
            self._insert(name, None, next_run_at=now)  # a row that its mark does not submit at once

    def is_over(self) -> bool:
        """Tell whether what was made necessary, and was not used for a death, has had its time too."""
        return not sql(
            self.url,
            "select 1 from pgbeat.periodic_task where name = any (%(names)s) "
            "and (next_run_at is not null or planned_revision <> revision or not enabled)",
            names=self.once,
        )

    def _insert(self, name: str, schedule: str | None, **columns: Any) -> None:
        insert(self.url, name, schedule, **columns)
        self.once.append(name)

    def _lose_a_message(self, name: str) -> None:
        """Make a job whose message was sent, and lost by the broker."""
        message = {
            "args": [name],
            "kwargs": {},
            "priority": None,
            "options": {},
            "schedule": None,
            "timezone": None,
            "sensitive": False,
        }
        with closing(Database(self.url)) as database:
            job = make_job(database, periodic_task=name, message=json.dumps(message))
        sql(
            self.url,
            "update pgbeat.active_job set check_at = 'epoch', busy_until = now() - interval '1 s' where id = %(job)s",
            job=job,
        )
        self.once.append(name)

    def _now(self) -> datetime:
        (row,) = sql(self.url, "select clock_timestamp() as at")
        at: datetime = row["at"]
        return at


def _text(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("beats", [1, 2])
@pytest.mark.parametrize(
    "steps", [pytest.param(TICK, id="tick"), pytest.param(PLANNING, id="plan"), pytest.param(MENDING, id="mend")]
)
def test_p2_a_beat_killed_around_any_step_loses_and_doubles_nothing(
    cluster: Cluster, tmp_path: Path, steps: Mapping[str, str], beats: int
) -> None:
    """Alone, it is started again; of two, the other goes on. What was due is dealt with before the next one dies."""
    points = around(steps)
    stall = Fault(TICK["submit"], "hang", "after", call=0, seconds=LEASE + 0.2, trap=str(tmp_path / STALL))
    cluster.settings = {"pgbeat_lease": LEASE, "pgbeat_poll": POLL, "pgbeat_batch": BATCH, "pgbeat_dead_after": 2}
    # A worker on a busy machine is silent at times, and that is not what this is about.
    worker = cluster.worker(settings={"pgbeat_dead_after": 30})
    insert_many(cluster.database, 6)
    sql(cluster.database, "update pgbeat.periodic_task set catchup = 'all'")
    insert(cluster.database, "waits", overlap="buffer_one", args=["waits", 1.2])
    others = [cluster.beat() for _ in range(beats - 1)]
    doomed = cluster.beat(inject=[stall, *(point.fault(tmp_path) for point in points)])
    stage = Stage(cluster.database, tmp_path)
    unconfirmed: set[str] = set()

    for point in points:
        if point in UNCONFIRMED:
            worker.freeze()  # else it has started the job before a beat can send it again
        killed_at = kill_at(point, doomed, stage, tmp_path)
        pending = sql(cluster.database, "select id::text from pgbeat.active_job where state = 'pending'")
        unconfirmed.update(job["id"] for job in pending)
        # Of two, the other one has to wait for the lease, as if the dead one had lived elsewhere.
        if others:
            sql(cluster.database, "update pgbeat.node set hostname = 'elsewhere'")
        doomed.start(wait=False)
        doomed.wait_for_log("works on", 30)
        eventually(
            lambda at=killed_at: not left_from(cluster.database, at),
            LEASE + POLL + MARGIN,
            f"what was due at a kill {point} is dealt with",
        )
        worker.resume()
    eventually(stage.is_over, 10, "the last rows of the stage are decided")
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false where name not like '%%-%%-%%'")
    eventually(lambda: not sql(cluster.database, "select id from pgbeat.active_job"), 20, "nothing is under way")

    runs = cluster.probe.runs()
    sent = [job for job in jobs(cluster.database) if job["state"] != "skipped"]
    assert all(beat.is_running() for beat in others)
    assert {1} == set(decided(cluster.database, SECOND).values())
    assert [] == gaps(cluster.database, SECOND)
    assert [] == checker.lost([(job["periodic_task"], job["scheduled_for"]) for job in sent], runs)
    assert [] == checker.doubled(runs)
    assert [] == checker.early(runs)
    doubled = re.findall(r"second message of job (\S+)", worker.log)
    assert set(doubled) <= unconfirmed
    assert len(UNCONFIRMED & set(points)) <= len(doubled) == len(set(doubled))
    assert Counter(stage.once) == Counter(run.label for run in runs if run.label in stage.once)


def kill_at(point: CrashPoint, doomed: Beat, stage: Stage, folder: Path) -> datetime:
    """Let a beat die at a point; return the database's time when it was dead."""
    point.set_trap(folder)

    def is_dead() -> bool:
        stage.set_for(point.step)
        return not doomed.is_running()

    eventually(is_dead, 20, f"a beat comes to the instant {point}", every=0.3)
    assert point.has_struck(folder), doomed.tail()
    doomed.end()
    (row,) = sql(stage.url, "select clock_timestamp() as at")
    at: datetime = row["at"]
    return at


def test_p2_a_beat_killed_between_two_writes_of_a_batch_repeats_only_unconfirmed_messages(
    cluster: Cluster,
) -> None:
    """A batch is confirmed in steps of 250 messages, each of which is written in two parts here, one for each queue."""
    rows, queues = 500, ["odd", "even"]
    cluster.settings = {"pgbeat_lease": LEASE, "pgbeat_poll": POLL}
    insert_many(cluster.database, rows, "every 1h")
    sql(
        cluster.database,
        "update pgbeat.periodic_task set queue = case when right(name, 1)::int % 2 = 1 then 'odd' else 'even' end",
    )
    doomed = cluster.beat(
        inject=[Fault("celery_pgbeat.beat.send.rendering.renderer:MessageBatch.send", "kill", call=4)]
    )
    planned = "select count(next_run_at) as rows from pgbeat.periodic_task"
    eventually(lambda: rows == sql(cluster.database, planned)[0]["rows"], 20, "planned")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now()")
    eventually(lambda: not doomed.is_running(), 20, "it dies")
    assert 250 == submitted(cluster.database)
    unconfirmed = sum(broker.depth(cluster.broker, queue) for queue in queues) - 250
    assert 0 < unconfirmed < 250

    cluster.beat()
    eventually(lambda: rows == submitted(cluster.database), 20, "all are sent")
    times = Counter(message.id for queue in queues for message in broker.drain(cluster.broker, queue))
    assert {1: rows - unconfirmed, 2: unconfirmed} == Counter(times.values())


def submitted(url: str) -> int:
    return len([job for job in jobs(url) if job["state"] == "sent"])


PICKED_UP_WITHIN = 20  # seconds; a job whose message is gone is sent again after that
# What becomes of a job whose process dies there: the attempts that run, and the final state.
FATES: dict[str, list[tuple[list[int], str]]] = {
    "before start": [([0], "succeeded")],  # on_lost = rerun here: its message is gone, and the body was not reached
    "after start": [([0], "succeeded")],
    "before finish_many": [([0], "lost")],
    "after finish_many": [([0], "succeeded")],
    # Celery has sent the next attempt already: lost before that starts, or that attempt reports the end.
    "before retry": [([0], "lost"), ([0, 1], "succeeded")],
    "after retry": [([0, 1], "succeeded")],
}


@pytest.mark.parametrize(("pool", "beats"), [("prefork", 1), ("solo", 2)])
def test_p3_p5_a_job_killed_around_any_report_starts_each_attempt_once_and_ends(
    cluster: Cluster, tmp_path: Path, pool: str, beats: int
) -> None:
    """With `prefork` it is one process of the pool that dies; the whole worker, which is started again, with `solo`.

    Finishes are written by a worker's main process, whatever the pool.
    """
    points = around(WORKER)
    cluster.settings = {"pgbeat_lease": LEASE, "pgbeat_poll": POLL, "pgbeat_dead_after": 3}
    # A process that is started again takes its time: until then the message of a retry must not count as lost.
    cluster.settings["pgbeat_pickup_deadline"] = PICKED_UP_WITHIN
    worker = cluster.worker(pool=pool, inject=[point.fault(tmp_path) for point in points])
    for _ in range(beats):
        cluster.beat()

    for point in points:
        name = str(point)
        if point.step == "retry":
            job = {"task": "app.flaky", "args": [name, 1]}
        else:
            job = {"task": "app.probe", "on_lost": "rerun" if point.step == "start" else "give_up"}
        point.set_trap(tmp_path)
        insert(cluster.database, name, None, next_run_at="2026-01-01T00:00:00Z", **job)
        eventually(lambda here=point: here.has_struck(tmp_path), 20, f"a process comes to the instant {point}")
        if pool == "solo" or point.step == "finish_many":
            worker.wait(10)
            worker.end()
            worker.start()
        eventually(
            lambda name=name: is_final(cluster.database, name),
            4 * PICKED_UP_WITHIN,
            f"the end of the job killed {point}",
        )

    runs = cluster.probe.runs()
    assert [] == checker.doubled(runs)
    for name, fates in FATES.items():
        (job,) = jobs(cluster.database, name)
        assert ([run.attempt for run in runs if run.label == name], job["state"]) in fates, name


def is_final(url: str, name: str) -> bool:
    return bool(jobs(url, name)) and not sql(
        url, "select id from pgbeat.active_job where periodic_task = %(name)s", name=name
    )
