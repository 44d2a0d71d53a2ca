from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from celery_pgbeat.beat import database_clock
from celery_pgbeat.beat.database_clock import DatabaseClock

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
DEAD_AFTER = timedelta(seconds=30)


class Time:
    """Both clocks, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.boot = 1000.0
        self.database = NOON
        monkeypatch.setattr(database_clock, "boottime", lambda: self.boot)

    def passes(self, watch: DatabaseClock, seconds: float, step: float = 0.0) -> None:
        """Let time pass with a look each second; at the end the database's clock steps."""
        for _ in range(int(seconds)):
            self.boot += 1
            self.database += timedelta(seconds=1)
            watch.saw(self.database)
        if step:
            self.boot += 1
            self.database += timedelta(seconds=1 + step)
            watch.saw(self.database)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def test_a_beat_judges_only_after_it_was_in_contact_for_dead_after(time: Time) -> None:
    watch = DatabaseClock(DEAD_AFTER)
    time.passes(watch, 30)
    assert not watch.may_judge

    time.passes(watch, 1)
    assert watch.may_judge


@pytest.mark.parametrize("step", [3.0, -3.0, 3600.0, -3600.0])
def test_after_a_step_of_the_databases_clock_a_beat_waits_again_before_it_judges(time: Time, step: float) -> None:
    watch = DatabaseClock(DEAD_AFTER)
    time.passes(watch, 40, step=step)
    assert not watch.may_judge

    time.passes(watch, 31)
    assert watch.may_judge


@pytest.mark.parametrize(("step", "set_back"), [(0.0, False), (3600.0, False), (-1.0, False), (-3.0, True)])
def test_a_beat_sees_that_the_databases_clock_was_set_back(time: Time, step: float, set_back: bool) -> None:
    watch = DatabaseClock(DEAD_AFTER)
    time.passes(watch, 5)
    watch.lost()
    time.boot += 60

    assert watch.saw(time.database + timedelta(seconds=60 + step)) is set_back


def test_after_an_outage_a_beat_waits_again_before_it_judges(time: Time) -> None:
    watch = DatabaseClock(DEAD_AFTER)
    time.passes(watch, 40)
    watch.lost()

    time.passes(watch, 30)
    assert not watch.may_judge


def test_the_time_that_a_beat_was_stopped_is_no_contact(time: Time) -> None:
    watch = DatabaseClock(DEAD_AFTER)
    time.passes(watch, 40)
    time.boot += 60
    time.database += timedelta(seconds=60)
    watch.saw(time.database)

    assert not watch.may_judge


def test_the_databases_time_goes_on_between_two_looks(time: Time) -> None:
    watch = DatabaseClock(DEAD_AFTER)
    watch.saw(NOON)
    time.boot += 2.5

    assert NOON + timedelta(seconds=2.5) == watch.database_time


def test_the_databases_time_goes_on_while_it_does_not_answer(time: Time) -> None:
    watch = DatabaseClock(DEAD_AFTER)
    time.passes(watch, 2)
    watch.lost()
    time.boot += 7.5

    assert time.database + timedelta(seconds=7.5) == watch.database_time


def test_one_thread_may_note_an_outage_while_another_reads_may_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = DatabaseClock(DEAD_AFTER)
    watch.saw(NOON)

    def lost_meanwhile() -> float:
        watch.lost()
        return 1e9

    monkeypatch.setattr(database_clock, "boottime", lost_meanwhile)
    assert isinstance(watch.may_judge, bool)
    assert not watch.may_judge
