"""The harness itself, with Celery's own beat in the place of the product's."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from celery import Celery

from celery_pgbeat.embedded import Postgres
from tests.harness import faults, processes
from tests.harness.broker import both_brokers, depth, drain
from tests.harness.checker import doubled
from tests.harness.clock import Clock
from tests.harness.faults import Fault
from tests.harness.probe import Probe, begin, end
from tests.harness.processes import Cluster
from tests.harness.wait import eventually

# Neither our scheduler nor our tracker: this is about the harness.
PLAIN = {"beat_scheduler": "celery.beat:Scheduler", "imports": []}
EACH_SECOND = {"beat_schedule": {"tick": {"task": "app.probe", "schedule": 1.0, "args": ["tick"]}}}


@pytest.fixture(params=[False, True], ids=["executed", "forked"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path, database: str, broker_url: str) -> Any:
    """A cluster on an empty database."""
    made = Cluster(tmp_path, database, broker_url, forks=request.param)
    made.settings.update(PLAIN)
    yield made
    made.end()


def send(cluster: Cluster, task: str, *arguments: Any, **options: Any) -> str:
    with Celery(broker=cluster.broker) as app:
        return str(app.send_task(task, arguments, **options).id)


def test_waiting_returns_what_was_found() -> None:
    found = iter([None, [], "there"])
    assert eventually(lambda: next(found), 5, "it", every=0) == "there"


def test_waiting_in_vain_says_for_what() -> None:
    with pytest.raises(AssertionError, match=r"the bus: not within 0.01 s \(last seen: 0\)"):
        eventually(lambda: 0, 0.01, "the bus")


@both_brokers
def test_a_beat_and_a_worker_run_a_probe(cluster: Cluster) -> None:
    worker = cluster.worker()
    cluster.beat(settings=EACH_SECOND)
    runs = eventually(lambda: [run for run in cluster.probe.runs("tick") if run.finished_at], 20, "a run")
    assert runs[0].started_at <= runs[0].finished_at
    assert (runs[0].failed, runs[0].attempt, runs[0].worker) == (False, 0, f"worker-1@{os.uname().nodename}")
    assert runs[0].pid != worker.pid
    assert doubled(cluster.probe.runs()) == []


def test_a_header_of_the_product_reaches_the_record(cluster: Cluster) -> None:
    cluster.worker()
    instant = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
    header = {"periodic_task": "nightly", "scheduled_for": instant.isoformat(), "origin": "schedule"}
    job = send(cluster, "app.probe", "x", headers={"pgbeat": header})
    (run,) = eventually(cluster.probe.runs, 20, "the run")
    assert (run.job, run.periodic_task, run.scheduled_for, run.origin) == (job, "nightly", instant, "schedule")


def test_the_tasks_fail_retry_die_and_resist_as_their_arguments_say(cluster: Cluster) -> None:
    cluster.worker(concurrency=4)
    send(cluster, "app.probe", "fails", 0, True)
    send(cluster, "app.flaky", "flaky", 2)
    send(cluster, "app.stubborn", "stubborn", 1.5, soft_time_limit=1)
    eventually(lambda: len(cluster.probe.runs("flaky")) == 3, 30, "three attempts")
    stubborn = eventually(lambda: [run for run in cluster.probe.runs("stubborn") if run.finished_at], 10, "its end")[0]
    assert stubborn.finished_at - stubborn.started_at >= timedelta(seconds=1.5)
    assert [True] == [run.failed for run in cluster.probe.runs("fails")]
    assert [0, 1, 2] == [run.attempt for run in cluster.probe.runs("flaky")]
    assert len({run.job for run in cluster.probe.runs("flaky")}) == 1
    send(cluster, "app.die", "dies")
    dead = eventually(lambda: cluster.probe.runs("dies"), 10, "the start")
    assert [None] == [run.finished_at for run in dead]


def test_a_killed_worker_leaves_no_child_and_can_be_started_again(cluster: Cluster) -> None:
    worker = cluster.worker()
    send(cluster, "app.probe", "long", 60)
    (run,) = eventually(cluster.probe.runs, 20, "the run")
    worker.kill()
    assert not worker.is_running()
    eventually(lambda: not Path(f"/proc/{run.pid}").exists(), 5, "the child's end")
    worker.start()
    send(cluster, "app.probe", "again")
    eventually(lambda: cluster.probe.runs("again"), 20, "a run of its second life")


def test_a_worker_stops_in_good_order(cluster: Cluster) -> None:
    worker = cluster.worker()
    send(cluster, "app.probe", "slow", 2)
    eventually(cluster.probe.runs, 20, "the run")
    assert worker.stop() == 0
    assert [False] == [run.failed for run in cluster.probe.runs()]


def test_a_frozen_worker_starts_nothing_until_it_is_resumed(cluster: Cluster) -> None:
    worker = cluster.worker()
    worker.freeze()
    send(cluster, "app.probe", "later")
    with pytest.raises(AssertionError, match="not within 1"):
        eventually(cluster.probe.runs, 1, "a run")
    worker.resume()
    eventually(cluster.probe.runs, 20, "a run")


@pytest.mark.parametrize("cluster", [False], indirect=True)  # /proc shows only the environment of an executed one
def test_settings_reach_the_process_and_pgbeat_variables_of_the_shell_do_not(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://nowhere.invalid")
    monkeypatch.setenv("PGBEAT_LEASE", "77")
    cluster.settings["timezone"] = "Asia/Tokyo"
    worker = cluster.worker(settings={"worker_prefetch_multiplier": 3}, environment={"PROBE_EXTRA": "1"})
    assert "nowhere.invalid" not in worker.log
    environment = Path(f"/proc/{worker.pid}/environ").read_text()
    assert "PGBEAT_LEASE" not in environment
    assert "PROBE_EXTRA=1" in environment
    assert '{"beat_scheduler": "celery.beat:Scheduler", "imports": [], "timezone": "Asia/Tokyo"' in environment


def test_a_wait_for_the_log_ends_early_if_the_process_does(cluster: Cluster) -> None:
    with pytest.raises(AssertionError, match=r"ended without 'beat: Starting...' in its log:[\s\S]*no_such_scheduler"):
        cluster.beat(settings={"beat_scheduler": "no_such_scheduler:Scheduler"})


def test_a_failed_test_shows_the_logs(cluster: Cluster) -> None:
    cluster.beat()
    [(title, tail)] = cluster.tails()
    assert title == "log of beat-1"
    assert "beat: Starting..." in tail


def test_a_beat_kills_itself_after_the_call_that_was_named(cluster: Cluster) -> None:
    fault = Fault("celery.beat:Scheduler.apply_async", "kill", "after", call=2)
    beat = cluster.beat(settings=EACH_SECOND, inject=[fault])
    assert beat.wait(20) == -signal.SIGKILL
    assert "fault: kill after celery.beat:Scheduler.apply_async" in beat.log
    assert depth(cluster.broker) == 2


def test_a_beat_stops_itself_before_the_call_that_was_named(cluster: Cluster) -> None:
    beat = cluster.beat(settings=EACH_SECOND, inject=[Fault("celery.beat:Scheduler.apply_async", "stop")])
    beat.wait_for_log("fault: stop before", 20)
    assert beat.is_running()
    assert depth(cluster.broker) == 0
    beat.resume()
    eventually(lambda: depth(cluster.broker), 20, "the message")


class Victim:
    calls = 0

    def work(self) -> int:
        type(self).calls += 1
        return self.calls


def test_faults_raise_and_hang_at_their_call_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, call, when in (("raise", 2, "before"), ("hang", 3, "after")):
        monkeypatch.setattr(Victim, "work", Victim.work)  # remembered, to be put back
        faults.apply(faults.encode([Fault(f"{__name__}:Victim.work", kind, when, call, seconds=0.01)]))
    victim = Victim()
    assert victim.work() == 1
    with pytest.raises(faults.Injected):
        victim.work()
    assert victim.work() == 2


def test_a_trap_works_once_and_only_after_the_statement_has_returned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    monkeypatch.setattr(Victim, "work", Victim.work)
    monkeypatch.setattr(Victim, "calls", -1)
    fault = Fault(f"{__name__}:Victim.work", "raise", "after", call=0, trap=str(trap), answered=True)
    faults.apply(faults.encode([fault]))
    trap.touch()
    assert Victim().work() == 0
    with pytest.raises(faults.Injected):
        Victim().work()
    assert not trap.exists()
    assert Victim().work() == 2


@both_brokers
def test_messages_are_counted_and_read(cluster: Cluster) -> None:
    assert depth(cluster.broker) == 0
    assert drain(cluster.broker) == []
    job = send(cluster, "app.probe", "ü", priority=7, headers={"mine": 1})
    send(cluster, "app.probe", "second")
    eventually(lambda: depth(cluster.broker) == 2, 5, "two messages")
    messages = drain(cluster.broker)
    (first,) = [message for message in messages if message.id == job]
    assert len(messages) == 2
    assert (first.task, first.args, first.kwargs) == ("app.probe", ["ü"], {})
    assert first.headers["mine"] == 1
    assert first.properties["priority"] == 7
    assert depth(cluster.broker) == 0


def test_a_record_waits_for_a_database_that_is_away_and_keeps_the_instant(own_postgres: Postgres) -> None:
    probe = Probe(own_postgres.url).create()
    values = dict.fromkeys(("periodic_task", "origin", "scheduled_for", "worker"))
    values |= {"job": "j", "label": "x", "attempt": 0, "pid": 1}
    run = begin(own_postgres.url, values)
    own_postgres.shut_down()
    after = datetime.now(timezone.utc)
    ending = threading.Thread(target=end, args=(own_postgres.url, run), kwargs={"failed": False})
    ending.start()
    ending.join(2)
    own_postgres.start()
    ending.join(10)
    [found] = probe.runs()
    assert found.finished_at is not None
    assert abs(found.finished_at - after) < timedelta(seconds=1)


def test_the_clock_is_set_advanced_and_set_running(database: str) -> None:
    execute(database, "create schema pgbeat")
    execute(database, "create function pgbeat.now() returns timestamptz language sql stable as 'select now()'")
    Probe(database).create()
    clock = Clock(database)
    assert abs(clock.now() - datetime.now(timezone.utc)) < timedelta(seconds=5)
    night = datetime(2027, 3, 28, 0, 59, tzinfo=timezone.utc)
    clock.stand_at(night)
    assert clock.now() == night == clock.now()
    clock.advance(timedelta(minutes=2))
    assert clock.now() == night + timedelta(minutes=2)
    assert execute(database, "select probe_now()") == night + timedelta(minutes=2)
    clock.run_from(night)
    first = clock.now()
    assert night < first < night + timedelta(seconds=5)
    assert clock.now() > first
    clock.advance(timedelta(days=-1))
    assert night - timedelta(days=1) < clock.now() < night - timedelta(days=1) + timedelta(seconds=5)
    assert execute(database, "select provolatile from pg_proc where oid = 'pgbeat.now'::regproc") == "s"


def test_each_test_has_a_database_of_its_own(database: str, redis_url: str) -> None:
    assert database.rpartition("/")[2].startswith("pgbeat_")
    assert execute(database, "select count(*) from pg_class where relnamespace = 'public'::regnamespace") == 0


def test_the_root_is_that_of_the_repository() -> None:
    assert (processes.ROOT / "pyproject.toml").exists()


def execute(url: str, statement: str) -> Any:
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0] if cursor.description else None
