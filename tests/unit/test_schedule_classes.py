"""Schedule classes of an app's own: taken as their parent, asked by `to_pgbeat`, or refused."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from celery.schedules import BaseSchedule, crontab, schedstate, schedule

from celery_pgbeat import Timing, cron, every
from celery_pgbeat.declare import timing_of
from celery_pgbeat.declare.entry import entry_of
from celery_pgbeat.errors import InvalidSchedule


class Empty(crontab):
    """Adds nothing."""


class Nightly(Empty):
    """Sets the fields, and has something beside them."""

    def __init__(self, hour: int = 3) -> None:
        super().__init__(minute=0, hour=hour)

    def __repr__(self) -> str:
        return "Nightly()"

    def in_words(self) -> str:
        return "at night"


class Named:
    owner = "ops"


class Slow(Named, schedule):
    """A parent of another kind beside Celery's."""


class QuarterPast(schedule):
    def is_due(self, last_run_at: datetime) -> schedstate:
        return schedstate(False, 900)


class HalfPast(Empty):
    def remaining_estimate(self, last_run_at: datetime) -> timedelta:
        return timedelta(minutes=30)


class Lunar(BaseSchedule):
    pass


class Asked(QuarterPast):
    """Says in a method what it is."""

    said: Any = "*/15 * * * *"

    def to_pgbeat(self) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def asked(said: Any) -> Asked:
    made = Asked(60)
    made.said = said
    return made


@pytest.mark.parametrize(
    ("own", "text"),
    [
        (Empty(minute=5, hour="8-17"), "crontab: 5 8-17 * * *"),
        (Nightly(), "crontab: 0 3 * * *"),
        (Slow(timedelta(hours=2)), "every 2h"),
        (Slow(timedelta(days=1), relative=True), "P1D"),
    ],
)
def test_a_subclass_that_replaces_nothing_is_taken_as_its_parent(own: Any, text: str) -> None:
    assert text == timing_of(own).text


@pytest.mark.parametrize(
    ("own", "replaced"),
    [
        (QuarterPast(60), "is_due"),
        (HalfPast(), "remaining_estimate"),
        (type("Fixed", (crontab,), {"nowfun": None, "minute": {1}})(), "minute, nowfun"),
        (type("Proxy", (crontab,), {"__getattribute__": object.__getattribute__})(), "__getattribute__"),
        (Lunar(), "its own methods"),
    ],
)
def test_a_class_that_decides_in_python_is_refused_with_the_way_out(own: Any, replaced: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        timing_of(own)

    said = str(refused.value)
    assert f"decides in Python when it is due ({replaced}), and a row can only hold text" in said
    assert "give it a method to_pgbeat() that returns text, cron(...) or every(...)" in said


@pytest.mark.parametrize(
    ("said", "timing"),
    [
        ("*/15 * * * *", Timing("*/15 * * * *", "Europe/Berlin")),
        (cron("0 9 * * *", timezone="Asia/Tokyo"), Timing("0 9 * * *", "Asia/Tokyo")),
        (every(minutes=15), Timing("every 15m", "Europe/Berlin")),
        (timedelta(minutes=15), Timing("every 15m", "Europe/Berlin")),
        (crontab(minute=0, hour=3), Timing("crontab: 0 3 * * *", "Europe/Berlin")),
    ],
)
def test_a_class_says_in_a_method_which_row_it_is(said: Any, timing: Timing) -> None:
    assert timing == timing_of(asked(said), "Europe/Berlin")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, r"Asked.to_pgbeat\(\) returned None: return text, cron"),
        (asked("@daily"), r"Asked.to_pgbeat\(\) returned an Asked: return text, cron"),
        (object(), "an object is not a schedule"),
        (LookupError("no such plan"), r"Asked.to_pgbeat\(\) raised LookupError: no such plan"),
    ],
)
def test_what_the_method_says_wrongly_refuses_this_entry_alone(said: Any, why: str) -> None:
    with pytest.raises(InvalidSchedule, match=why):
        timing_of(asked(said))


def test_any_object_with_the_method_is_a_schedule_in_beat_schedule_too() -> None:
    class Plan:
        def to_pgbeat(self) -> str:
            return "@hourly"

    app = Celery("shop", set_as_current=False)
    app.conf.beat_schedule = {"sync": {"task": "shop.sync", "schedule": Plan()}}

    entry = entry_of("sync", app.conf.beat_schedule["sync"])
    assert "@hourly" == timing_of(entry.schedule).text
    app.close()
