"""The courier: never in the way of who reports, nothing lost while Postgres is away."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, cast

import pytest

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.reports import Finish, Reports, Start
from celery_pgbeat.worker import courier as module
from celery_pgbeat.worker.courier import Courier
from celery_pgbeat.worker.finishes import LINGER
from celery_pgbeat.worker.letterbox import Letterbox

SECONDS = 5.0


class Postgres:
    """Takes what is delivered, or is away."""

    def __init__(self) -> None:
        self.delivered: list[Any] = []
        self.tries = 0
        self.statements = 0  # by which finishes were written
        self.away = False
        self._heard = threading.Condition()

    def hear(self, word: Any) -> None:
        with self._heard:
            self.tries += 1
            self._heard.notify_all()
            if self.away:
                raise DatabaseUnavailable("Postgres is not usable:")
            if isinstance(word, Exception):
                raise word
            self.delivered.append(word)

    def finish_many(self, finishes: list[Finish]) -> set[uuid.UUID]:
        with self._heard:
            self.tries += 1
            self._heard.notify_all()
            if self.away:
                raise DatabaseUnavailable("Postgres is not usable:")
            self.delivered += finishes
            self.statements += 1
        return set()

    def wait(self, until: Callable[[], bool]) -> None:
        with self._heard:
            assert self._heard.wait_for(until, SECONDS)

    def report(self, word: Any) -> Callable[[Reports], object]:
        return lambda reports: cast(Postgres, reports).hear(word)


class Rounds:
    def __init__(self, word: str = "", every: float = 0.01) -> None:
        self.every = every
        self.word = word

    def go(self, reports: Any) -> None:
        reports.hear(f"{self.word}round")

    def end(self, reports: Any) -> None:
        reports.hear(f"{self.word}end")


def ended() -> Finish:
    """Have a job end."""
    return Finish(Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node"), "succeeded")


@pytest.fixture
def letterbox() -> Iterator[Letterbox]:
    made = Letterbox()
    yield made
    made.close()


@pytest.fixture
def postgres() -> Postgres:
    return Postgres()


@pytest.fixture
def courier(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[Courier]:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.01)
    made = Courier(cast(Reports, postgres))
    yield made
    postgres.away = False
    made.stop(SECONDS)


def test_reports_arrive_in_order_and_at_once(courier: Courier, postgres: Postgres) -> None:
    for number in range(100):
        courier.put(postgres.report(number))
    postgres.wait(lambda: len(postgres.delivered) == 100)
    assert list(range(100)) == postgres.delivered


def test_nothing_is_lost_while_postgres_is_away(courier: Courier, postgres: Postgres) -> None:
    postgres.away = True
    for number in range(3):
        courier.put(postgres.report(number))
    postgres.wait(lambda: postgres.tries > 10)
    postgres.away = False
    postgres.wait(lambda: len(postgres.delivered) == 3)
    assert [0, 1, 2] == postgres.delivered


def test_an_outage_is_told_once_and_its_end_too(
    courier: Courier, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    postgres.away = True
    courier.put(postgres.report("x"))
    postgres.wait(lambda: postgres.tries > 5)
    postgres.away = False
    postgres.wait(lambda: bool(postgres.delivered))
    courier.stop(SECONDS)
    assert 1 == caplog.text.count("Reports of this worker wait")
    assert 1 == caplog.text.count("Postgres is back")


def test_a_report_that_postgres_refuses_is_dropped_and_the_next_one_delivered(
    courier: Courier, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    courier.put(postgres.report(ValueError("poison")))
    courier.put(postgres.report("next"))
    postgres.wait(lambda: postgres.delivered == ["next"])
    assert "A report could not be delivered and is dropped" in caplog.text


def test_who_reports_never_waits(courier: Courier, postgres: Postgres) -> None:
    stuck = threading.Event()
    courier.put(lambda _: stuck.wait(SECONDS))
    before = monotonic()
    courier.put(postgres.report("x"))
    assert monotonic() - before < 1
    stuck.set()


def test_stopping_delivers_what_waits(courier: Courier, postgres: Postgres) -> None:
    courier.put(postgres.report("last"))
    courier.stop(SECONDS)
    assert ["last"] == postgres.delivered


def test_stopping_without_postgres_ends_in_time_and_says_what_is_lost(
    courier: Courier, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.away = True
    courier.put(postgres.report("x"))
    before = monotonic()
    courier.stop(0.2)
    assert monotonic() - before < 2
    assert "1 reports of this worker are lost" in caplog.text


def test_rounds_go_on_beside_reports_and_are_ended(postgres: Postgres) -> None:
    courier = Courier(cast(Reports, postgres), Rounds())
    courier.start()
    postgres.wait(lambda: postgres.delivered.count("round") >= 3)
    courier.put(postgres.report("x"))
    postgres.wait(lambda: "x" in postgres.delivered)
    courier.stop(SECONDS)
    assert "end" == postgres.delivered[-1]


def test_each_of_several_rounds_has_its_own_time(postgres: Postgres) -> None:
    courier = Courier(cast(Reports, postgres), Rounds("often-"), Rounds("seldom-", every=60))
    courier.start()
    postgres.wait(lambda: postgres.delivered.count("often-round") >= 3)
    courier.stop(SECONDS)
    assert 1 == postgres.delivered.count("seldom-round")
    assert ["often-end", "seldom-end"] == postgres.delivered[-2:]


def test_a_courier_that_nobody_gave_anything_has_no_thread(courier: Courier) -> None:
    before = threading.active_count()
    courier.stop(SECONDS)
    assert before == threading.active_count()


def test_a_lone_finish_is_written_without_delay_and_those_of_a_busy_worker_together(
    courier: Courier, postgres: Postgres
) -> None:
    told = [ended() for _ in range(200)]
    before = monotonic()
    courier.put(told[0])
    postgres.wait(lambda: postgres.delivered == told[:1])
    for finish in told[1:]:
        courier.put(finish)
    postgres.wait(lambda: postgres.delivered == told)
    assert postgres.statements <= 2 + (monotonic() - before) / LINGER


def test_the_finishes_of_other_processes_are_written_too(postgres: Postgres, letterbox: Letterbox) -> None:
    courier = Courier(cast(Reports, postgres), letterbox=letterbox)
    courier.start()
    told = [ended() for _ in range(3)]
    child = os.fork()
    if child == 0:
        os._exit(0 if all(letterbox.post(finish) for finish in told) else 1)
    assert 0 == os.waitpid(child, 0)[1]
    postgres.wait(lambda: postgres.delivered == told)
    courier.stop(SECONDS)


def test_what_a_process_has_told_comes_before_the_report_of_its_death(postgres: Postgres, letterbox: Letterbox) -> None:
    """However late its letter is found: the thread is busy when it is posted, and then finds the report first."""
    courier = Courier(cast(Reports, postgres), letterbox=letterbox)
    busy, go_on = threading.Event(), threading.Event()

    def be_busy(_: Reports) -> None:
        busy.set()
        go_on.wait(SECONDS)

    courier.put(be_busy)
    assert busy.wait(SECONDS)
    before, told = ended(), ended()
    courier.put(before)
    letterbox.post(told)
    courier.put(postgres.report("dead"))
    go_on.set()
    postgres.wait(lambda: postgres.delivered == [before, told, "dead"])
    courier.stop(SECONDS)


def test_finishes_wait_for_postgres_and_count_as_unwritten_meanwhile(courier: Courier, postgres: Postgres) -> None:
    postgres.away = True
    told = [ended(), ended()]
    for finish in told:
        courier.put(finish)
    postgres.wait(lambda: postgres.tries > 5)
    assert [finish.start for finish in told] == courier.unwritten()
    postgres.away = False
    postgres.wait(lambda: postgres.delivered == told)


def test_stopping_writes_what_has_ended_and_what_has_just_been_told(postgres: Postgres, letterbox: Letterbox) -> None:
    courier = Courier(cast(Reports, postgres), Rounds(every=60), letterbox=letterbox)
    courier.put(ended())
    postgres.wait(lambda: len(postgres.delivered) == 2)
    told = [ended(), ended()]
    letterbox.post(told[0])
    courier.put(told[1])
    courier.stop(SECONDS)
    assert set(told) == set(postgres.delivered[2:-1])
    assert "end" == postgres.delivered[-1]


def test_stopping_without_postgres_says_how_many_finishes_are_lost(
    courier: Courier, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.away = True
    courier.put(ended())
    courier.stop(0.2)
    assert "1 reports of this worker are lost" in caplog.text


def test_what_was_left_before_a_stop_is_delivered_however_busy_the_courier_was(
    courier: Courier, postgres: Postgres
) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def be_busy(_: Reports) -> None:
        busy.set()
        go_on.wait(SECONDS)

    courier.put(be_busy)
    assert busy.wait(SECONDS)
    finish = ended()
    courier.put(finish)
    courier.put(postgres.report("last"))
    threading.Timer(0.1, go_on.set).start()
    courier.stop(SECONDS)
    assert [finish, "last"] == postgres.delivered


def test_what_is_left_after_a_stop_is_delivered_all_the_same(courier: Courier, postgres: Postgres) -> None:
    courier.put(postgres.report("last"))
    courier.stop(SECONDS)
    courier.put(postgres.report("after all"))
    postgres.wait(lambda: postgres.delivered == ["last", "after all"])
