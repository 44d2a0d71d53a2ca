"""What a beat logs of an outage and of its errors: one line while it lasts, one when it is over."""

from __future__ import annotations

import gc
import itertools
import logging
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from sqlalchemy.exc import OperationalError, ProgrammingError

from celery_pgbeat.beat.loop import COLLECTED_AFTER, SWITCH_INTERVAL, BeatLoop
from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.beat.steps import Steps
from celery_pgbeat.beat.wiring import Wiring
from celery_pgbeat.errors import DatabaseBusy, DatabaseUnavailable
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings

NOWHERE = "postgresql://127.0.0.1:1/nowhere"


class Cycles:
    """A dispatcher and its delivery, which fails in the background: a cycle raises the error of an earlier batch."""

    def __init__(self) -> None:
        self.is_failing = False
        self.broker_problem: str | None = None
        self.faults: list[Exception | None] = []
        self.checked = 0

    def run_cycle(self) -> float:
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        return 0.0

    def drain(self, _within: float) -> bool:
        return True

    def check(self) -> None:
        self.checked += 1
        raise RuntimeError("the last confirm failed")


@pytest.fixture
def cycles() -> Cycles:
    return Cycles()


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def loop(cycles: Cycles, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> Iterator[BeatLoop]:
    made = loop_of(cycles, waits, monkeypatch)
    yield made
    made.wiring.wakeup.close()


def loop_of(cycles: Cycles, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> BeatLoop:
    """Return a loop whose cycles are these, with nothing behind it."""
    app = Celery("loop", broker="memory://", set_as_current=False)
    app.conf.pgbeat_url = NOWHERE
    wiring = Wiring(Scheduler(app, lazy=True), Settings(url=NOWHERE))
    made = BeatLoop(wiring, 1.0)
    janitor = SimpleNamespace(run_cycle=lambda: None, stop=lambda: None)
    parts: Any = SimpleNamespace(janitor=janitor, dispatcher=cycles, delivery=cycles, steps=Steps(wiring.database))
    for part, stand_in in (("_beat", parts), ("_wait", waits.append)):
        monkeypatch.setattr(made, part, stand_in)
    for step in ("_check_schema", "_check_app", "_sync_code"):
        monkeypatch.setattr(made, step, lambda *_: None)
    return made


def test_a_signal_at_any_line_of_a_cycle_stops_the_beat(
    cycles: Cycles, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    cycles.check = lambda: None  # type: ignore[method-assign]
    for line in itertools.count(1):
        made = loop_of(cycles, waits, monkeypatch)
        made.run_cycle()
        came: list[int] = []
        thread = threading.Thread(target=cycle_with_a_signal, args=(made, line, came), daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive(), f"the handler waits forever for line {line}"
        made.stop(5)
        assert made._ended.is_set()
        made.wiring.wakeup.close()
        if not came:
            break
    assert line > 5, "a cycle has lines"


def cycle_with_a_signal(loop: BeatLoop, line: int, came: list[int]) -> None:
    """Run a cycle, at whose line of this number the handler of Celery's beat runs."""
    lines = itertools.count(1)

    def trace(*event: Any) -> Any:
        if event[1] == "line" and next(lines) == line:
            sys.settrace(None)
            came.append(line)
            loop.stop(5)
            raise SystemExit
        return trace

    sys.settrace(trace)
    try:
        loop.run_cycle()
    except SystemExit:
        pass
    finally:
        sys.settrace(None)


def test_the_threads_of_a_beat_do_not_wait_long_for_each_other(loop: BeatLoop, cycles: Cycles) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)  # Python's own; another loop of this process may have lowered it
    cycles.check = lambda: None  # type: ignore[method-assign]
    try:
        loop.run_cycle()
        assert SWITCH_INTERVAL >= sys.getswitchinterval()
    finally:
        loop.stop(5)
        sys.setswitchinterval(before)


@pytest.mark.parametrize(("before", "after"), [(700, COLLECTED_AFTER), (50_000, 50_000), (0, 0)])
def test_a_beat_collects_garbage_less_often_unless_it_is_collected_even_less_often_or_never(
    loop: BeatLoop, cycles: Cycles, before: int, after: int
) -> None:
    own = gc.get_threshold()
    gc.set_threshold(before, *own[1:])
    cycles.check = lambda: None  # type: ignore[method-assign]
    try:
        loop.run_cycle()
        assert (after, *own[1:]) == gc.get_threshold()
    finally:
        loop.stop(5)
        gc.set_threshold(*own)


def test_a_delivery_that_keeps_failing_is_logged_once_and_its_recovery_once(
    loop: BeatLoop, cycles: Cycles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="celery_pgbeat.beat.loop")
    cycles.is_failing = True
    cycles.faults = [RuntimeError("no confirm"), None, RuntimeError("no confirm"), None, RuntimeError("no confirm")]
    for _ in range(5):
        loop._guarded(loop._run_cycle)
    assert ["A cycle failed; trying again"] == caplog.messages

    cycles.is_failing = False
    loop._guarded(loop._run_cycle)
    assert ["A cycle failed; trying again", "Working again"] == caplog.messages


def test_the_pause_grows_until_a_delivery_has_succeeded(
    loop: BeatLoop, cycles: Cycles, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("celery_pgbeat.beat.loop.random.uniform", lambda _low, high: high)
    cycles.is_failing = True
    cycles.faults = [RuntimeError("no confirm"), None, RuntimeError("no confirm"), None, RuntimeError("no confirm")]
    for _ in range(5):
        loop._guarded(loop._run_cycle)
    first, second, third = waits
    assert (first * 2, first * 4) == (second, third)

    cycles.is_failing = False
    loop._guarded(loop._run_cycle)
    cycles.faults = [RuntimeError("no confirm")]
    loop._guarded(loop._run_cycle)
    assert first == waits[-1]


def test_an_error_of_the_last_delivery_is_logged_when_the_beat_stops(
    loop: BeatLoop, cycles: Cycles, caplog: pytest.LogCaptureFixture
) -> None:
    loop._guarded(loop._give_back)

    assert 1 == cycles.checked
    assert ["A cycle failed; trying again"] == caplog.messages


def test_an_error_of_the_last_delivery_is_logged_even_if_the_rows_cannot_be_given_back(
    loop: BeatLoop, cycles: Cycles, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise RuntimeError("no row is unmarked")

    assert loop._beat is not None
    monkeypatch.setattr(loop._beat.janitor, "stop", refuse)
    loop._guarded(loop._give_back)

    assert 1 == cycles.checked
    assert "no row is unmarked" in caplog.text
    assert "the last confirm failed" in caplog.text


def test_an_outage_is_logged_in_whole_sentences(
    loop: BeatLoop, cycles: Cycles, caplog: pytest.LogCaptureFixture
) -> None:
    refused = OperationalError("select", None, Exception("connection refused"), connection_invalidated=True)
    cycles.faults = [Database(NOWHERE).translated(refused)]
    loop._guarded(loop._run_cycle)
    (line,) = caplog.messages
    assert line.endswith(" is not usable: connection refused. Nothing is sent meanwhile.")


def test_a_beat_without_postgres_closes_its_connections_for_the_pause(
    loop: BeatLoop, cycles: Cycles, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []
    closed: list[bool] = []
    monkeypatch.setattr(loop.wiring.wakeup, "pause", paused.append)
    monkeypatch.setattr(loop.wiring.database, "close", lambda: closed.append(True))
    cycles.faults = [DatabaseUnavailable("too many connections"), DatabaseBusy("a lock"), RuntimeError("a defect")]

    for _ in range(3):
        loop._guarded(loop._run_cycle)

    assert (3, [waits[0]], [True]) == (len(waits), paused, closed)


def test_a_statement_that_postgres_ended_is_not_logged_as_an_outage(
    loop: BeatLoop, cycles: Cycles, caplog: pytest.LogCaptureFixture
) -> None:
    cycles.faults = [DatabaseBusy("Postgres at x ended a statement: canceling statement due to lock timeout.")]
    loop._guarded(loop._run_cycle)
    assert [
        "Postgres at x ended a statement: canceling statement due to lock timeout. It is tried again."
    ] == caplog.messages


def test_a_missing_privilege_is_one_line_that_says_where_the_grants_are(
    loop: BeatLoop, cycles: Cycles, caplog: pytest.LogCaptureFixture
) -> None:
    class Denied(Exception):
        sqlstate = "42501"

    refused = [ProgrammingError("select", None, Denied("permission denied for table node")) for _ in range(3)]
    cycles.faults = [*refused]
    for _ in refused:
        loop._guarded(loop._run_cycle)

    (record,) = caplog.records
    assert record.exc_info is None
    assert record.getMessage() == (
        "Postgres refuses a statement of this beat: permission denied for table node. As this user, `celery-pgbeat "
        "doctor` lists the missing grants; `celery-pgbeat sql --roles` prints all of them. Nothing is sent meanwhile."
    )
