"""What the main process does about asks: only for what runs, in the thread where it may, and to the end."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from celery.worker import state

from celery_pgbeat.postgres.worker_queries import Start, StopRequest, WorkerQueries
from celery_pgbeat.worker import stop_requests as module
from celery_pgbeat.worker.kept import Report
from celery_pgbeat.worker.message import ReceivedJobs
from celery_pgbeat.worker.stop_requests import KILL_AFTER, StopRequests


class Result:
    """What a pool promises of a request."""

    over = False

    def ready(self) -> bool:
        return self.over


class Request(SimpleNamespace):
    """One request that a pool process has accepted."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, worker: House, pid: int) -> None:
        self.result = Result()
        super().__init__(worker_pid=pid, _apply_result=lambda: self.result)
        self._worker = worker

    def terminate(self, pool: Any) -> None:
        self._worker.done.append(("terminate", self.worker_pid))
        state.active_requests.discard(self)
        if self._worker.backend_is_away:
            raise ConnectionError("away")


class House:
    """A worker's main process, its pool and the rows of its jobs, with what was done in them."""

    def __init__(self, has_processes: bool = True) -> None:
        self.done: list[tuple[str, Any]] = []
        self.soon: list[tuple[Any, ...]] = []
        self.asked_for: list[str] = []
        self.rows: dict[uuid.UUID, Any] = {}
        self.backend_is_away = False
        self.received_jobs = ReceivedJobs()
        self.requests: dict[Start, Request] = {}
        self.pool = SimpleNamespace(
            uses_semaphore=has_processes,
            terminate_job=lambda pid, number: self.done.append((f"kill {int(number)}", pid)),
        )
        consumer = SimpleNamespace(pool=self.pool, call_soon=lambda *call: self.soon.append(call))
        self.box: list[Report] = []
        self.duty = StopRequests("node", self.received_jobs, consumer, lambda report, _: self.box.append(report))

    def run(self, ask: str | None = None) -> Start:
        """Have a job run; its process has the number of jobs that ran before it."""
        start = Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node")
        request = self.requests[start] = Request(self, len(self.requests))
        self.received_jobs.add(request, start)
        state.active_requests.add(request)
        if ask is not None:
            self.rows[start.token] = ask
        return start

    def turn(self) -> None:
        """One round of the report_thread's thread, then what it left to the thread of the consumer."""
        self.duty.run(cast(WorkerQueries, self))
        self.deliver()
        calls, self.soon = self.soon, []
        for function, *arguments in calls:
            function(*arguments)

    def deliver(self) -> None:
        """What the report_thread does with what was left in its box."""
        while self.box:
            self.box.pop(0)(cast(WorkerQueries, self))

    # What the reports are asked.

    def stop_requests(self, worker: str) -> list[StopRequest]:
        self.asked_for.append(worker)
        return [StopRequest(token, kind) for token, kind in self.rows.items()]

    def finish(self, start: Start, state: str, error: str) -> bool:
        self.rows.pop(start.token, None)
        self.done.append((state, error))
        return True


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    made = House()
    monkeypatch.setattr(module, "send_stop_signal", lambda pid: made.done.append(("send_stop_signal", pid)))
    yield made
    state.active_requests.clear()


def test_a_worker_that_runs_nothing_asks_nothing(house: House) -> None:
    house.turn()
    assert [] == house.asked_for


def test_who_is_asked_to_cancel_is_rung_up_in_each_round_until_he_has_ended(house: House) -> None:
    house.run()
    start = house.run("cancel")
    house.turn()
    house.turn()
    state.active_requests.discard(house.requests[start])
    house.turn()
    assert [("send_stop_signal", 1)] * 2 == house.done


def test_an_ask_of_a_start_that_does_not_run_here_is_nobody_s(house: House) -> None:
    house.run()
    house.rows[uuid.uuid4()] = "terminate"
    house.turn()
    assert [] == house.done


def test_what_is_asked_is_logged_once_a_job(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    start = house.run("cancel")
    house.turn()
    house.turn()
    assert [f"Job {start.job} is asked to stop (cancel)"] == [each.message for each in caplog.records]


def test_a_terminated_start_is_reported_once_its_process_is_gone(house: House) -> None:
    start = house.run("terminate")
    house.turn()
    assert house.duty.is_ending(start)
    house.turn()
    assert [("terminate", 0)] == house.done
    house.requests[start].result.over = True
    house.turn()
    assert [("terminate", 0), ("revoked", "its process was ended")] == house.done
    assert not house.duty.is_ending(start)


def test_a_start_that_has_ended_before_the_consumer_comes_to_it_is_not_terminated(house: House) -> None:
    start = house.run("terminate")
    house.duty.run(cast(WorkerQueries, house))
    state.active_requests.discard(house.requests[start])
    house.turn()
    assert [] == house.done


def test_a_process_that_does_not_end_is_killed_once_its_time_is_over(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    start = house.run("terminate")
    house.turn()
    now = KILL_AFTER - 1
    house.turn()
    assert [("terminate", 0)] == house.done
    now = KILL_AFTER
    house.turn()
    house.turn()
    assert [("terminate", 0), ("kill 9", 0)] == house.done
    house.requests[start].result.over = True
    house.turn()
    assert ("revoked", "its process was ended") == house.done[-1]


def test_a_process_that_has_answered_when_its_time_is_over_is_not_killed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may run another job by now."""
    now = 0.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    start = house.run("terminate")
    house.turn()
    now = KILL_AFTER
    house.duty.run(cast(WorkerQueries, house))
    house.requests[start].result.over = True
    house.turn()
    assert [("terminate", 0), ("revoked", "its process was ended")] == house.done


def test_a_result_backend_that_is_away_does_not_end_the_consumer(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.backend_is_away = True
    start = house.run("terminate")
    house.turn()
    house.requests[start].result.over = True
    house.turn()
    assert ("revoked", "its process was ended") == house.done[-1]
    assert f"Job {start.job} was terminated, and Celery could not record that" in caplog.text


def test_what_was_being_ended_when_the_worker_ends_is_reported(house: House) -> None:
    house.run("terminate")
    house.turn()
    house.duty.shutdown(cast(WorkerQueries, house))
    assert ("revoked", "its process was ended") == house.done[-1]


def test_a_pool_without_processes_says_once_that_it_terminates_nobody(caplog: pytest.LogCaptureFixture) -> None:
    house = House(has_processes=False)
    house.run("terminate")
    house.run("terminate")
    house.run("cancel")
    house.turn()
    house.turn()
    state.active_requests.clear()
    assert [] == house.done
    assert 1 == caplog.text.count("cannot terminate jobs")
