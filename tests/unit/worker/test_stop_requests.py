"""The main process carries out stop requests: only of jobs that run, and in the right thread."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from celery.worker import state

from celery_pgbeat.postgres.worker_queries import Start, StopRequest, WorkerQueries
from celery_pgbeat.worker.report.refusals import Refusals
from celery_pgbeat.worker.report.report_queue import ReportQueue
from celery_pgbeat.worker.start.message import ReceivedJobs
from celery_pgbeat.worker.stop import stop_requests as module
from celery_pgbeat.worker.stop.stop_requests import KILL_AFTER, StopRequests


class Result:
    """The result of a request, as a pool returns it."""

    over = False

    def ready(self) -> bool:
        return self.over


class Request(SimpleNamespace):
    """One request that a pool process has accepted."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, worker: MainProcess, pid: int) -> None:
        self.result = Result()
        super().__init__(worker_pid=pid, _apply_result=lambda: self.result)
        self._worker = worker

    def terminate(self, pool: Any) -> None:
        self._worker.done.append(("terminate", self.worker_pid))
        state.active_requests.discard(self)
        if self._worker.backend_is_away:
            raise ConnectionError("away")


class MainProcess:
    """A worker's main process, its pool and the rows of its jobs, with what was done in them."""

    def __init__(self, has_processes: bool = True) -> None:
        self.done: list[tuple[str, Any]] = []
        self.soon: list[tuple[Any, ...]] = []
        self.reads: list[str] = []
        self.rows: dict[uuid.UUID, Any] = {}
        self.backend_is_away = False
        self.received_jobs = ReceivedJobs()
        self.requests: dict[Start, Request] = {}
        self.pool = SimpleNamespace(
            uses_semaphore=has_processes,
            terminate_job=lambda pid, number: self.done.append((f"kill {int(number)}", pid)),
        )
        consumer = SimpleNamespace(pool=self.pool, call_soon=lambda *call: self.soon.append(call))
        self.queue = ReportQueue(Refusals(lambda: 0))
        self.duty = StopRequests("node", self.received_jobs, consumer, self.queue.add)

    def run(self, kind: str | None = None) -> Start:
        """Have a job run; its process has the number of jobs that ran before it."""
        start = Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node")
        request = self.requests[start] = Request(self, len(self.requests))
        self.received_jobs.add(request, start)
        state.active_requests.add(request)
        if kind is not None:
            self.rows[start.token] = kind
        return start

    def run_duty(self) -> None:
        """Run the duty once and write its reports, then do what it left to the thread of the consumer."""
        self.duty.run(cast(WorkerQueries, self))
        self.queue.write(cast(WorkerQueries, self))
        calls, self.soon = self.soon, []
        for function, *arguments in calls:
            function(*arguments)

    # The queries.

    def stop_requests(self, worker: str) -> list[StopRequest]:
        self.reads.append(worker)
        return [StopRequest(token, kind) for token, kind in self.rows.items()]

    def finish(self, start: Start, state: str, error: str) -> bool:
        self.rows.pop(start.token, None)
        self.done.append((state, error))
        return True


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Iterator[MainProcess]:
    made = MainProcess()
    monkeypatch.setattr(module, "send_stop_signal", lambda pid: made.done.append(("send_stop_signal", pid)))
    yield made
    state.active_requests.clear()


def test_a_worker_that_runs_no_job_reads_no_requests(main: MainProcess) -> None:
    main.run_duty()
    assert [] == main.reads


def test_a_job_that_is_cancelled_gets_the_signal_at_each_check_until_it_has_ended(main: MainProcess) -> None:
    main.run()
    start = main.run("cancel")
    main.run_duty()
    main.run_duty()
    state.active_requests.discard(main.requests[start])
    main.run_duty()
    assert [("send_stop_signal", 1)] * 2 == main.done


def test_a_request_for_a_start_that_does_not_run_here_is_ignored(main: MainProcess) -> None:
    main.run()
    main.rows[uuid.uuid4()] = "terminate"
    main.run_duty()
    assert [] == main.done


def test_a_request_is_logged_once_a_job(main: MainProcess, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    start = main.run("cancel")
    main.run_duty()
    main.run_duty()
    assert [f"Job {start.job} is asked to stop (cancel)"] == [each.message for each in caplog.records]


def test_a_terminated_start_is_reported_after_its_process_has_exited(main: MainProcess) -> None:
    start = main.run("terminate")
    main.run_duty()
    assert main.duty.is_ending(start)
    main.run_duty()
    assert [("terminate", 0)] == main.done
    main.requests[start].result.over = True
    main.run_duty()
    assert [("terminate", 0), ("revoked", "its process was ended")] == main.done
    assert not main.duty.is_ending(start)


def test_a_start_that_ends_before_the_consumer_terminates_it_is_not_terminated(main: MainProcess) -> None:
    start = main.run("terminate")
    main.duty.run(cast(WorkerQueries, main))
    state.active_requests.discard(main.requests[start])
    main.run_duty()
    assert [] == main.done


def test_a_process_that_does_not_end_is_killed_once_its_time_is_over(
    main: MainProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    start = main.run("terminate")
    main.run_duty()
    now = KILL_AFTER - 1
    main.run_duty()
    assert [("terminate", 0)] == main.done
    now = KILL_AFTER
    main.run_duty()
    main.run_duty()
    assert [("terminate", 0), ("kill 9", 0)] == main.done
    main.requests[start].result.over = True
    main.run_duty()
    assert ("revoked", "its process was ended") == main.done[-1]


def test_a_process_that_has_returned_a_result_in_time_is_not_killed(
    main: MainProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may run another job by now."""
    now = 0.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    start = main.run("terminate")
    main.run_duty()
    now = KILL_AFTER
    main.duty.run(cast(WorkerQueries, main))
    main.requests[start].result.over = True
    main.run_duty()
    assert [("terminate", 0), ("revoked", "its process was ended")] == main.done


def test_a_result_backend_that_is_away_does_not_end_the_consumer(
    main: MainProcess, caplog: pytest.LogCaptureFixture
) -> None:
    main.backend_is_away = True
    start = main.run("terminate")
    main.run_duty()
    main.requests[start].result.over = True
    main.run_duty()
    assert ("revoked", "its process was ended") == main.done[-1]
    assert f"Job {start.job} was terminated, and Celery could not record that" in caplog.text


def test_a_termination_under_way_is_reported_when_the_worker_ends(main: MainProcess) -> None:
    main.run("terminate")
    main.run_duty()
    main.duty.shutdown(cast(WorkerQueries, main))
    assert ("revoked", "its process was ended") == main.done[-1]


def test_a_pool_without_processes_logs_once_that_it_cannot_terminate_jobs(caplog: pytest.LogCaptureFixture) -> None:
    main = MainProcess(has_processes=False)
    main.run("terminate")
    main.run("terminate")
    main.run("cancel")
    main.run_duty()
    main.run_duty()
    state.active_requests.clear()
    assert [] == main.done
    assert 1 == caplog.text.count("cannot terminate jobs")
