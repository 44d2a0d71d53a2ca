"""Who hears that a job is to end: that job, and none that runs in its place by then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from billiard.exceptions import SoftTimeLimitExceeded

from celery_pgbeat.postgres.worker_queries import Start, StopRequest
from celery_pgbeat.worker import running as module
from celery_pgbeat.worker.context import WorkerContext
from celery_pgbeat.worker.running import SIGNAL, Running, StopSignal, send_stop_signal
from tests.harness.wait import eventually

SHORT = 0.05  # seconds in which a signal to oneself has long arrived
LONG = 5.0  # seconds that a job would sleep if nobody rang


class Rows:
    """The rows of jobs: which are asked to end, and how often that was read."""

    def __init__(self) -> None:
        self.asked: set[Start] = set()
        self.looks: list[Start] = []
        self.error: Exception | None = None

    def stop_request_of(self, start: Start) -> StopRequest | None:
        self.looks.append(start)
        if self.error is not None:
            raise self.error
        return StopRequest(start.token, "cancel") if start in self.asked else None

    def job(self, asked: bool = False) -> Running:
        start = Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node")
        if asked:
            self.asked.add(start)
        context = cast(WorkerContext, SimpleNamespace(connection=SimpleNamespace(reports=self)))
        return Running(start, {}, None, context)


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def stop_signal() -> Iterator[StopSignal]:
    before = signal.getsignal(SIGNAL)
    yield StopSignal()
    signal.signal(SIGNAL, before)


def signal_here(seconds: float = SHORT) -> None:
    """Ring up this very process, and be busy for a while."""
    send_stop_signal(os.getpid())
    time.sleep(seconds)


def test_a_job_that_is_asked_to_end_is_interrupted_once(rows: Rows, stop_signal: StopSignal) -> None:
    stop_signal.enter(rows.job(asked=True))
    with pytest.raises(SoftTimeLimitExceeded):
        signal_here(LONG)
    signal_here()
    signal_here()
    assert 1 == len(rows.looks)


def test_a_job_that_nobody_asked_is_left_alone_and_asked_for_again_at_the_next_ring(
    rows: Rows, stop_signal: StopSignal
) -> None:
    job = rows.job()
    stop_signal.enter(job)
    signal_here()
    rows.asked.add(job.start)
    with pytest.raises(SoftTimeLimitExceeded):
        signal_here(LONG)


def test_a_ring_for_a_job_that_has_ended_is_not_heard(rows: Rows, stop_signal: StopSignal) -> None:
    stop_signal.enter(rows.job(asked=True))
    stop_signal.exit()
    signal_here()
    assert [] == rows.looks


def test_a_ring_that_comes_while_the_next_job_runs_does_it_no_harm(rows: Rows, stop_signal: StopSignal) -> None:
    """The row of the first was read, and by the time that this is known the second one runs."""
    first, second = rows.job(asked=True), rows.job()
    stop_signal.enter(second)
    stop_signal._look(first)
    time.sleep(SHORT)
    eventually(lambda: rows.looks == [first.start, second.start], LONG, "a look at the second one's own row")
    assert not second.is_requested


def test_a_job_that_has_read_it_is_not_interrupted_as_well(
    rows: Rows, stop_signal: StopSignal, monkeypatch: Any
) -> None:
    job = rows.job(asked=True)
    stop_signal.enter(job)
    assert job.is_to_stop()
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    signal_here()


def test_a_job_that_looks_hears_it_by_its_next_look(rows: Rows, stop_signal: StopSignal) -> None:
    job = rows.job()
    stop_signal.enter(job)
    assert not job.is_to_stop()
    rows.asked.add(job.start)
    signal_here()
    eventually(lambda: job.is_requested, LONG, "the look that the send_stop_signal asked for")
    assert job.is_to_stop()


def test_a_job_that_has_stopped_looking_is_interrupted(rows: Rows, stop_signal: StopSignal, monkeypatch: Any) -> None:
    job = rows.job()
    stop_signal.enter(job)
    job.is_to_stop()
    rows.asked.add(job.start)
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    with pytest.raises(SoftTimeLimitExceeded):
        signal_here(LONG)


def test_a_time_limit_that_strikes_during_a_look_is_not_swallowed(rows: Rows) -> None:
    rows.error = SoftTimeLimitExceeded()
    with pytest.raises(SoftTimeLimitExceeded):
        rows.job().is_to_stop()


def test_a_process_that_does_not_listen_is_not_harmed() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    send_stop_signal(child.pid)
    child.communicate(b"\n", timeout=20)
    assert 0 == child.returncode


def test_a_process_that_is_gone_is_not_missed() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(20)
    send_stop_signal(child.pid)
