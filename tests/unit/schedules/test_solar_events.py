"""Solar events: Celery's nine, where ephem is installed."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from tests.harness.schedule_texts import TICK, UTC

BASE = datetime(2026, 12, 7, tzinfo=UTC)


def test_without_ephem_the_refusal_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ephem", None)

    with pytest.raises(InvalidSchedule, match=r"a solar event needs the extra celery-pgbeat\[solar\]"):
        parse("solar: dusk_civil 1 2")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("solar: sunset", "a solar event is written 'solar: sunset 52.52 13.40'"),
        ("solar: moonrise 1 2", "event 'moonrise' is not one of dawn_astronomical, "),
        ("solar: sunset 91 2", r"latitude 91 is not in -90\.\.90"),
        ("solar: sunset 1 181", r"longitude 181 is not in -180\.\.180"),
        ("solar: sunset north 2", "latitude 'north' is not a number of degrees"),
        ("solar: sunset nan 2", r"latitude nan is not in -90\.\.90"),
    ],
)
def test_a_wrong_event_or_place_is_refused(text, reason):
    with pytest.raises(InvalidSchedule, match=reason):
        parse(text)


def test_sunset_in_berlin_is_the_one_that_celery_computes():
    pytest.importorskip("ephem")
    from celery.schedules import solar

    schedule = parse("solar: sunset 52.52 13.40")
    celerys = solar("sunset", 52.52, 13.40, nowfun=lambda: BASE)
    theirs = BASE + celerys.remaining_estimate(BASE)
    found = schedule.next(BASE)

    assert found is not None
    assert abs(found - theirs) < timedelta(seconds=2)
    assert schedule.text == "solar: sunset 52.52 13.4"


def test_a_polar_night_is_waited_out():
    pytest.importorskip("ephem")
    schedule = parse("solar: sunrise 70 20")
    found = list(schedule.occurrences(BASE, limit=3))

    assert ["2027-01-17", "2027-01-18", "2027-01-19"] == [f"{instant:%Y-%m-%d}" for instant in found]
    assert all(schedule.next(instant - TICK) == instant and schedule.matches(instant) for instant in found)
    assert schedule.previous(found[1]) == found[0]
    assert schedule.count(BASE, found[2]) == 3


@pytest.mark.parametrize("edge", ["0001-01-01", "0002-01-02", "9998-12-31", "9999-12-31T23:59:59"])
def test_the_ends_of_the_calendar_are_no_error(edge):
    pytest.importorskip("ephem")
    schedule, instant = parse("solar: sunset 52.52 13.40"), datetime.fromisoformat(edge).replace(tzinfo=UTC)
    found, before = schedule.next(instant), schedule.previous(instant)

    assert found is None or found > instant
    assert before is None or before < instant
    schedule.matches(instant)
