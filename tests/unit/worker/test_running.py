"""The stop signal interrupts the job that is to stop, and no job that runs in its place by then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any, cast

import pytest
from billiard.exceptions import SoftTimeLimitExceeded

from celery_pgbeat.postgres.worker_queries import Start, StopRequest
from celery_pgbeat.worker.stop import running as module
from celery_pgbeat.worker.stop.running import SIGNAL, JobContext, Running, StopSignal, send_stop_signal
from tests.harness.wait import eventually

SHORT = 0.05  # seconds in which a signal to oneself has long arrived
LONG = 5.0  # seconds that a job sleeps if no signal comes


class Rows:
    """The rows of jobs: which have a stop request, and how often that was read."""

    def __init__(self) -> None:
        self.requested: set[Start] = set()
        self.looks: list[Start] = []
        self.error: Exception | None = None

    def stop_request_of(self, start: Start) -> StopRequest | None:
        self.looks.append(start)
        if self.error is not None:
            raise self.error
        return StopRequest(start.token, "cancel") if start in self.requested else None

    def job(self, requested: bool = False) -> Running:
        start = Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node")
        if requested:
            self.requested.add(start)
        return Running(start, {}, None, cast(JobContext, self))


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def stop_signal() -> Iterator[StopSignal]:
    before = signal.getsignal(SIGNAL)
    yield StopSignal()
    signal.signal(SIGNAL, before)


def signal_here(seconds: float = SHORT) -> None:
    """Send the signal to this process, and be busy for a while."""
    send_stop_signal(os.getpid())
    time.sleep(seconds)


def test_a_job_with_a_stop_request_is_interrupted_once(rows: Rows, stop_signal: StopSignal) -> None:
    stop_signal.enter(rows.job(requested=True))
    with pytest.raises(SoftTimeLimitExceeded):
        signal_here(LONG)
    signal_here()
    signal_here()
    assert 1 == len(rows.looks)


def test_a_job_without_a_stop_request_goes_on_and_its_row_is_read_again_at_the_next_signal(
    rows: Rows, stop_signal: StopSignal
) -> None:
    job = rows.job()
    stop_signal.enter(job)
    signal_here()
    rows.requested.add(job.start)
    with pytest.raises(SoftTimeLimitExceeded):
        signal_here(LONG)


def test_a_signal_for_a_job_that_has_ended_is_ignored(rows: Rows, stop_signal: StopSignal) -> None:
    stop_signal.enter(rows.job(requested=True))
    stop_signal.exit()
    signal_here()
    assert [] == rows.looks


def test_a_signal_that_arrives_while_the_next_job_runs_does_not_stop_that_job(
    rows: Rows, stop_signal: StopSignal
) -> None:
    """The row of the first job was read, and the second job runs when the result arrives."""
    first, second = rows.job(requested=True), rows.job()
    stop_signal.enter(second)
    stop_signal._look(first)
    time.sleep(SHORT)
    eventually(lambda: rows.looks == [first.start, second.start], LONG, "a read of the second one's own row")
    assert not second.is_requested


def test_a_job_that_has_read_its_stop_request_is_not_interrupted_too(
    rows: Rows, stop_signal: StopSignal, monkeypatch: Any
) -> None:
    job = rows.job(requested=True)
    stop_signal.enter(job)
    assert job.is_to_stop()
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    signal_here()


def test_a_job_that_reads_its_row_sees_the_request_at_its_next_read(rows: Rows, stop_signal: StopSignal) -> None:
    job = rows.job()
    stop_signal.enter(job)
    assert not job.is_to_stop()
    rows.requested.add(job.start)
    signal_here()
    eventually(lambda: job.is_requested, LONG, "the read that the signal started")
    assert job.is_to_stop()


def test_a_job_that_has_stopped_reading_its_row_is_interrupted(
    rows: Rows, stop_signal: StopSignal, monkeypatch: Any
) -> None:
    job = rows.job()
    stop_signal.enter(job)
    job.is_to_stop()
    rows.requested.add(job.start)
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    with pytest.raises(SoftTimeLimitExceeded):
        signal_here(LONG)


def test_a_time_limit_that_is_raised_during_a_read_is_not_swallowed(rows: Rows) -> None:
    rows.error = SoftTimeLimitExceeded()
    with pytest.raises(SoftTimeLimitExceeded):
        rows.job().is_to_stop()


def test_a_process_without_the_handler_ignores_the_signal() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    send_stop_signal(child.pid)
    child.communicate(b"\n", timeout=20)
    assert 0 == child.returncode


def test_a_signal_to_a_process_that_has_exited_is_no_error() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(20)
    send_stop_signal(child.pid)
