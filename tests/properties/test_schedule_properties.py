"""What holds for every schedule, whatever its kind, its zone and its DST rule."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import Schedule, parse
from celery_pgbeat.schedules.cron.fields import DAY, HOUR, MINUTE, MONTH, WEEKDAY, read_field
from tests.harness.schedule_texts import (
    LEAPS,
    TICK,
    UTC,
    any_text,
    calendars,
    chain,
    cron5,
    crontabs,
    dsts,
    gap_at,
    hours,
    instants,
    iso_texts,
    minutes,
    minutes_of,
    readings,
    rrules,
    zones,
)

ANCHOR = datetime(2020, 2, 29, 1, 30, tzinfo=UTC)
thorough = settings(max_examples=300, deadline=None, database=None)


def made(text: str, zone: str, dst: str) -> Schedule:
    try:
        return parse(text, zone, dst=dst, anchor=ANCHOR, name="a row")
    except InvalidSchedule as refused:
        assume("never" not in refused.reason)
        raise


@thorough
@given(any_text, zones, dsts, instants)
def test_occurrences_rise_and_each_is_found_again_from_just_before(text, zone, dst, after):
    schedule = made(text, zone, dst)

    found = chain(schedule, after)

    assert sorted(set(found)) == found
    for instant in found:
        assert instant > after
        assert instant.tzinfo is UTC
        assert schedule.next(instant - TICK) == instant
        assert schedule.matches(instant)


@thorough
@given(any_text, zones, dsts, instants)
def test_previous_walks_the_same_instants_backwards(text, zone, dst, after):
    schedule = made(text, zone, dst)
    found = chain(schedule, after, 8)
    assume(found)

    back = [found[-1]]
    while (earlier := schedule.previous(back[-1])) is not None and earlier > after:
        back.append(earlier)

    assert found == back[::-1]


@thorough
@given(any_text, zones, dsts, instants, st.integers(0, 40))
def test_count_equals_what_enumeration_gives(text, zone, dst, after, number):
    schedule = made(text, zone, dst)
    found = chain(schedule, after, number + 1)
    assume(found)

    assert len(found) == schedule.count(after, found[-1])
    assert len(found) - 1 == schedule.count(after, found[-1] - TICK)
    assert len(found) - 1 == schedule.count(found[0], found[-1])


@thorough
@given(any_text, zones, dsts, instants, st.integers(0, 5_000))
def test_a_later_argument_never_gives_an_earlier_next(text, zone, dst, after, minutes_later):
    schedule = made(text, zone, dst)
    sooner, later = schedule.next(after), schedule.next(after + timedelta(minutes=minutes_later))

    assert later is None or (sooner is not None and sooner <= later)


@thorough
@given(any_text, zones, dsts)
def test_the_canonical_text_means_the_same_and_is_its_own_canonical_text(text, zone, dst):
    schedule = made(text, zone, dst)
    again = parse(schedule.text, zone, dst=dst, anchor=ANCHOR, name="another row")

    assert schedule == again
    assert schedule.text == again.text
    assert chain(schedule, ANCHOR, 5) == chain(again, ANCHOR, 5)


@thorough
@given(any_text, zones)
def test_every_schedule_can_be_described(text, zone):
    assert made(text, zone, "default").describe()


def slowly(text: str, zone: ZoneInfo, dst: str, first: datetime, last: datetime) -> list[datetime]:
    """Return the occurrences in [first, last] by looking at each minute, by the words of the specification."""
    words = text.removeprefix("crontab: ").split()
    values = [read_field(field, word) for field, word in zip((MINUTE, HOUR, DAY, MONTH, WEEKDAY), words, strict=True)]
    real_time = words[0].startswith("*") or words[1].startswith("*")
    found = set()
    begin, end = (moment.astimezone(zone).replace(tzinfo=None) for moment in (first, last))
    for naive in minutes_of(begin - timedelta(days=2), end + timedelta(days=2)):
        minute, hour, _, month, weekday = (value.numbers for value in values)
        if not (minute >> naive.minute & 1 and hour >> naive.hour & 1 and month >> naive.month & 1):
            continue
        on_day, on_weekday = values[2].numbers >> naive.day & 1, weekday >> naive.isoweekday() % 7 & 1
        both = "crontab" in text or words[2].startswith(("*", "?")) or words[4].startswith(("*", "?"))
        if not (on_day and on_weekday if both else on_day or on_weekday):
            continue
        shown = readings(zone, naive)
        if len(shown) > 1 and not (dst == "all" or (dst == "default" and real_time)):
            shown = shown[:1]
        if not shown and not real_time and dst != "skip":
            after, length = gap_at(zone, naive)
            shown = [after] if length < timedelta(hours=3) else []
        found.update(shown)
    return sorted(instant for instant in found if first <= instant <= last)


plain_days = st.sampled_from(("*", "*", "*", "1-20", "*/2", "29,30"))
plain = st.tuples(minutes, hours, plain_days, st.just("*"), st.sampled_from(("*", "*", "*", "0", "1-5", "*/2")))


@settings(max_examples=120, deadline=None, database=None)
@given(plain.map(" ".join), st.sampled_from(("", "crontab: ")), zones, dsts, st.sampled_from(range(15)))
def test_no_occurrence_is_lost_or_added_around_a_change_of_the_clocks(fields, prefix, zone, dst, leap):
    text, info = prefix + fields, ZoneInfo(zone)
    first, last = LEAPS[leap] - timedelta(hours=20), LEAPS[leap] + timedelta(hours=20)
    schedule = parse(text, zone, dst=dst)

    assert slowly(text, info, dst, first, last) == list(schedule.occurrences(first - TICK, last))


def placed(naive: datetime, zone: ZoneInfo, kind: str, dst: str) -> list[datetime]:
    """Return the instants that a reading becomes, by the rule of a kind that is not cron."""
    shown = readings(zone, naive)
    if not shown and (kind == "calendar" or dst == "skip"):
        return []
    if not shown:  # zoneinfo's fold=0 in a gap is the offset before it: shifted by the gap's length
        return [naive.replace(tzinfo=zone).astimezone(UTC)]
    return shown if dst == "all" else shown[:1]


few_a_minute = calendars.filter(lambda text: "*:*:" not in text)
wall_dates = st.one_of(few_a_minute, rrules, iso_texts.filter(lambda text: "T" not in text.rsplit("/", 1)[1]))


@settings(max_examples=150, deadline=None, database=None)
@given(wall_dates, zones, dsts, st.sampled_from(LEAPS))
def test_dates_in_a_zone_are_the_dates_of_utc_read_on_the_clock_of_that_zone(text, zone, dst, leap):
    info, first, last = ZoneInfo(zone), leap - timedelta(hours=30), leap + timedelta(hours=30)
    shown = parse(text, "UTC").occurrences(first - timedelta(days=2), last + timedelta(days=2))
    kind = parse(text).kind
    expected = {instant for moment in shown for instant in placed(moment.replace(tzinfo=None), info, kind, dst)}
    schedule = parse(text, zone, dst=dst)

    assert sorted(found for found in expected if first < found <= last) == list(schedule.occurrences(first, last))
    assert schedule.count(first, last) == sum(first < found <= last for found in expected)


@settings(max_examples=60, deadline=None, database=None)
@given(st.one_of(cron5, crontabs), zones, instants)
def test_any_zone_of_the_argument_gives_the_same_result(text, zone, after):
    schedule = made(text, zone, "default")
    elsewhere = after.astimezone(ZoneInfo("Asia/Kolkata"))

    assert schedule.next(after) == schedule.next(elsewhere)
    assert schedule.previous(after) == schedule.previous(elsewhere)


@pytest.mark.parametrize("ask", ["next", "previous", "matches"])
def test_a_naive_instant_is_refused(ask):
    with pytest.raises(ValueError, match="no time zone"):
        getattr(parse("* * * * *"), ask)(datetime(2026, 12, 7))


def test_a_naive_bound_or_anchor_is_refused():
    with pytest.raises(ValueError, match="no time zone"):
        parse("every 5m", anchor=datetime(2026, 12, 7))
    with pytest.raises(ValueError, match="no time zone"):
        parse("every 5m").count(ANCHOR, datetime(2026, 12, 7))
    with pytest.raises(ValueError, match="no time zone"):
        list(parse("every 5m").occurrences(ANCHOR, datetime(2026, 12, 7)))


EDGES = [
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=ZoneInfo("America/New_York")),
    datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo")),
    datetime(9998, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(9999, 1, 1, tzinfo=UTC),
    datetime(2, 1, 1, tzinfo=UTC),
]
SAMPLES = [
    "* * * * *",
    "0 0 29 2 1",
    "30 2 * * *",
    "0 0 0 1 1 * 2030",
    "every 30s",
    "P1M",
    "P1DT1H",
    "R/2024-01-31/P1M",
    "2026-12-09",
    "*-2-29 10:00",
    "RRULE:FREQ=YEARLY;BYDAY=MO;BYSETPOS=1",
    "RRULE:FREQ=HOURLY;INTERVAL=7;BYDAY=MO",
    "RRULE:FREQ=YEARLY;BYWEEKNO=1,-1",
]


@pytest.mark.parametrize("text", SAMPLES)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Apia"])
@pytest.mark.parametrize("edge", EDGES, ids=str)
def test_the_ends_of_the_calendar_are_no_error(text, zone, edge):
    schedule = parse(text, zone)

    assert schedule.next(edge) is None or schedule.next(edge) > edge
    assert schedule.previous(edge) is None or schedule.previous(edge) < edge
    schedule.matches(edge)
    assert schedule.count(edge, edge) == 0


@pytest.mark.parametrize("text", ["every 5m", "P1D", "P1DT1H", "R/P1M", "RRULE:FREQ=DAILY"])
@pytest.mark.parametrize("anchor", EDGES, ids=str)
def test_an_anchor_at_the_ends_of_the_calendar_is_no_error(text, anchor):
    schedule = parse(text, "Europe/Berlin", anchor=anchor)

    schedule.next(ANCHOR)
    schedule.previous(ANCHOR)
    assert schedule.count(ANCHOR, ANCHOR + timedelta(days=1)) >= 0


def test_beyond_a_hundred_years_is_never():
    base = datetime(2026, 1, 1, tzinfo=UTC)

    assert parse("0 0 0 1 1 * 2125").next(base) == datetime(2125, 1, 1, tzinfo=UTC)
    assert parse("0 0 0 1 1 * 2130").next(base) is None
    assert parse("R/2026-01-01/P100Y").next(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2126, 1, 1, tzinfo=UTC)
    assert parse("3000-01-01").next(base) is None
    assert parse("0 0 0 1 1 * 1980").previous(datetime(2090, 1, 1, tzinfo=UTC)) is None


def test_equal_calls_share_one_schedule_and_rows_with_different_names_too():
    assert parse("*/5 * * * *", name="a") is parse("*/5 * * * *", name="b", anchor=ANCHOR)
    assert parse("every 5m", anchor=ANCHOR) != parse("every 5m", anchor=ANCHOR + TICK)


def test_the_two_passes_of_an_overlap_are_two_anchors():
    berlin = ZoneInfo("Europe/Berlin")
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=fold) for fold in (0, 1))

    assert parse("every 2h", anchor=first) != parse("every 2h", anchor=second)


def test_occurrences_stop_at_their_bounds():
    schedule, base = parse("0 * * * *"), datetime(2026, 12, 7, tzinfo=UTC)

    assert [1, 2, 3] == [found.hour for found in schedule.occurrences(base, base + timedelta(hours=3))]
    assert [1, 2] == [found.hour for found in schedule.occurrences(base, limit=2)]
    assert [] == list(schedule.occurrences(base, limit=0))
