"""The courier: never in the way of who reports, nothing lost while Postgres is away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, cast

import pytest

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.reports import Reports
from celery_pgbeat.worker import courier as module
from celery_pgbeat.worker.courier import Courier

SECONDS = 5.0


class Postgres:
    """Takes what is delivered, or is away."""

    def __init__(self) -> None:
        self.delivered: list[Any] = []
        self.tries = 0
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
