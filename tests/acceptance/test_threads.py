"""If a thread of a beat ends, that is logged and it starts again; no error of user code ends one."""

from __future__ import annotations

import ctypes
import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from celery_pgbeat.beat.loop import BeatLoop
from celery_pgbeat.beat.scheduler import Scheduler
from tests.harness.processes import Cluster
from tests.harness.rows import insert, insert_many, jobs, sql
from tests.harness.scrape import free_port
from tests.harness.wait import eventually


def test_p6_a_base_exception_while_sending_refuses_its_own_job_and_ends_no_beat(cluster: Cluster) -> None:
    cluster.settings = {"pgbeat_lease": 2, "pgbeat_poll": 0.5, "pgbeat_heartbeat": 1}
    insert_many(cluster.database, 10)
    bad = {"quits": "no licence", "cancelled": "cancelled", "interrupted": "interrupted"}
    for name in bad:
        insert(
            cluster.database, name, None, task=f"app.{name}", args=[], next_run_at="2026-01-01T00:00:00Z", catchup="all"
        )
    beats = [cluster.beat(app="tests.acceptance.quitting_app", wait=False) for _ in range(3)]
    for beat in beats:
        beat.wait_for_log("works on", 60)

    def given_up() -> bool:
        return all([job["state"] for job in jobs(cluster.database, name)] == ["lost"] for name in bad)

    eventually(given_up, 40, "each bad one is refused three times")
    (known,) = sql(cluster.database, "select clock_timestamp() as at")
    sent = "select 1 from pgbeat.job where sent_at > %(at)s and periodic_task like 'row-%%'"
    eventually(lambda: len(sql(cluster.database, sent, at=known["at"])) >= 30, 30, "the good ones go on")

    for name, why in bad.items():
        (job,) = jobs(cluster.database, name)
        assert why in job["error"]
    alive = "select 1 from pgbeat.node where role = 'beat' and last_seen_at > now() - interval '5 s'"
    eventually(lambda: 3 == len(sql(cluster.database, alive)), 10, "three beats give signs of life")
    assert all(beat.is_running() and "ended without being asked to" not in beat.log for beat in beats)


def probe(_name: str) -> None:
    """Do nothing."""


class Beat:
    """A beat in this process, with every thread that one may have, and its ticks."""

    def __init__(self, url: str) -> None:
        app = Celery("threads", broker="memory://", set_as_current=False)
        app.conf.update(
            pgbeat_url=url,
            pgbeat_lease=1,
            pgbeat_poll=0.1,
            pgbeat_heartbeat=0.1,
            pgbeat_dead_after=0.3,
            pgbeat_alert_after=3600,
            pgbeat_alert_webhook=f"http://127.0.0.1:{free_port()}/",
            pgbeat_metrics_port=free_port(),
            result_expires=None,
        )
        app.task(probe, name="app.probe", shared=False)  # of this app alone: the other tests' apps have their own
        self.scheduler = Scheduler(app)
        self._ended = threading.Event()
        self._ticks = threading.Thread(target=self._tick)
        self._ticks.start()

    @property
    def loop(self) -> BeatLoop:
        loop = self.scheduler._loop
        assert loop is not None
        return loop

    def close(self) -> None:
        self._ended.set()
        self._ticks.join()
        self.scheduler.close()

    def _tick(self) -> None:
        while not self._ended.is_set():
            self.scheduler.tick()


@pytest.fixture
def beat(migrated_database: str) -> Iterator[Beat]:
    insert(migrated_database, "row", "every 1s", overlap="allow")
    made = Beat(migrated_database)
    yield made
    made.close()


def thread(name: str) -> threading.Thread | None:
    return next((one for one in threading.enumerate() if one.name == name), None)


def strike(beat: Beat, name: str) -> None:
    """Raise SystemExit in a thread, wherever that is, until it has ended.

    Not at once again: the next one would strike the thread while it is ending, and while that is logged.
    """
    victim = thread(name)
    assert victim is not None
    assert victim.ident is not None
    until = time.monotonic() + 30
    while victim.is_alive():
        assert time.monotonic() < until, f"{name} does not end"
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(victim.ident), ctypes.py_object(SystemExit))
        if name == "pgbeat-webhook":  # it waits in C for something to post
            webhook: Any = beat.loop.wiring.instruments._alarm
            webhook._webhook.post({})
        victim.join(3)


def works_on(url: str, beat: Beat) -> None:
    (known,) = sql(url, "select clock_timestamp() as at")
    sent = "select 1 from pgbeat.job where sent_at > %(at)s"
    eventually(lambda: sql(url, sent, at=known["at"]), 20, f"{beat} sends")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("name", ["pgbeat-delivery", "pgbeat-alarm", "pgbeat-webhook", "pgbeat-metrics"])
def test_a_thread_of_a_beat_that_ends_is_logged_and_started_again(
    beat: Beat, migrated_database: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, logger="celery_pgbeat.process.threads")
    works_on(migrated_database, beat)
    eventually(lambda: thread(name) is not None, 20, f"{name} runs")

    strike(beat, name)
    eventually(lambda: thread(name) is not None, 20, f"{name} runs again")

    works_on(migrated_database, beat)
    (record,) = [record for record in caplog.records if record.name == "celery_pgbeat.process.threads"]
    assert f"The thread {name} ended without being asked to" in record.message
    assert record.exc_info or name == "pgbeat-metrics"  # which its library has started


def test_the_thread_that_runs_the_cycles_is_started_again_by_celerys_next_tick(
    beat: Beat, migrated_database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.ERROR, logger="celery_pgbeat.process.threads")
    works_on(migrated_database, beat)
    guarded, struck = BeatLoop._guarded, threading.Event()

    def end_once(self: BeatLoop, step: Any) -> None:
        if struck.is_set():
            return guarded(self, step)
        struck.set()
        raise SystemExit

    monkeypatch.setattr(BeatLoop, "_guarded", end_once)
    assert struck.wait(20)

    works_on(migrated_database, beat)
    (record,) = [record for record in caplog.records if record.name == "celery_pgbeat.process.threads"]
    assert "The thread pgbeat ended without being asked to: SystemExit()" in record.message
    assert record.exc_info


class Stopped:
    """A loop whose cycle a signal interrupts."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.calls: list[str] = []
        self.stopped = False
        self._scheduler = scheduler

    def run_cycle(self) -> None:
        """Run the signal handler of Celery, which may raise its SystemExit elsewhere."""
        self._scheduler.close()
        self.calls.append("the handler returned")

    def ask_to_stop(self) -> None:
        """Note it."""
        self.stopped = True
        self.calls.append("asked")

    def stop(self, _within: float) -> None:
        """Note it; another signal comes meanwhile."""
        self.calls.append("stopping")
        self._scheduler.close()


def test_a_signal_handler_waits_for_nothing_and_the_tick_that_it_ends_gives_everything_back() -> None:
    scheduler: Any = Scheduler(Celery(broker="memory://", set_as_current=False), lazy=True)
    scheduler._loop = loop = Stopped(scheduler)
    with pytest.raises(SystemExit):
        scheduler.tick()
    assert ["asked", "the handler returned", "stopping", "asked"] == loop.calls


@pytest.mark.skipif(find_spec("gevent") is None, reason="gevent is not installed")
@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]])
def test_a_beat_of_an_app_that_gevent_has_patched_gives_everything_back_when_it_is_stopped(
    tmp_path: Path, migrated_database: str, redis_url: str, signals: list[signal.Signals]
) -> None:
    cluster = Cluster(tmp_path, migrated_database, redis_url)
    beat = cluster.beat(app="tests.acceptance.gevent_app")
    try:
        beat.wait_for_log("works on", 40)
        insert(migrated_database, "nightly", "every 1s")
        eventually(lambda: jobs(migrated_database, "nightly"), 20, "a job")
        for number in signals:
            with suppress(ProcessLookupError):
                beat.signal(number)
        assert 0 == beat.wait(10)
        assert "Traceback" not in beat.log
        assert [] == sql(migrated_database, "select from pgbeat.node")
        assert [] == sql(migrated_database, "select from pgbeat.periodic_task where marked_by is not null")
    finally:
        cluster.end()
