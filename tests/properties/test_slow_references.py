"""The same told by hand: days looked at one by one, steps taken one by one, windows laid over each other."""

from __future__ import annotations

import time
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse, parse_windows
from celery_pgbeat.schedules.durations import read_iso
from tests.harness.schedule_texts import LEAPS, TICK, UTC, ZONES, instants, iso_texts, zones

NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
thorough = settings(max_examples=250, deadline=None, database=None)


def some(low: int, high: int) -> st.SearchStrategy[list[int]]:
    """Return sorted lists of a few numbers, or of all of them."""
    few = st.lists(st.integers(low, high), min_size=1, max_size=4, unique=True).map(sorted)
    return st.one_of(few, st.just([*range(low, high + 1)]))


def listed(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def written(months: list[int], days: list[int], weekdays: list[int], hours: list[int], minutes: list[int]) -> list[str]:
    """Return the same days and times in three languages."""
    names = [NAMES[day] for day in weekdays]
    return [
        f"crontab: {listed(minutes)} {listed(hours)} {listed(days)} {listed(months)} {','.join(names)}",
        f"{','.join(names)} *-{listed(months)}-{listed(days)} {listed(hours)}:{listed(minutes)}",
        f"DTSTART:19900101T000000 RRULE:FREQ=DAILY;BYMONTH={listed(months)};BYMONTHDAY={listed(days)};"
        f"BYDAY={','.join(name[:2].upper() for name in names)};BYHOUR={listed(hours)};BYMINUTE={listed(minutes)}",
    ]


@thorough
@given(some(1, 12), some(1, 31), some(0, 6), some(0, 23), some(0, 59), instants)
def test_three_languages_give_the_days_and_times_that_a_calendar_shows(months, days, weekdays, hours, minutes, after):
    assume(max(map(len, written(months, days, weekdays, hours, minutes)[:2])) <= 250)
    shown = [
        datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
        for day in (after.date() + timedelta(days=number) for number in range(400))
        if day.month in months and day.day in days and day.weekday() in weekdays
        for hour in hours
        for minute in minutes
    ]
    expected = [reading for reading in shown if reading > after][:30]
    assume(expected)

    for text in written(months, days, weekdays, hours, minutes):
        schedule = parse(text)
        assert expected == list(schedule.occurrences(after, limit=len(expected))), text
        assert len(expected) == schedule.count(after, expected[-1])
        assert expected[-2::-1] == [schedule.previous(instant) for instant in expected[:0:-1]]


def is_workday(day: date) -> bool:
    return day.weekday() < 5


def nearest_workday(day: date) -> date:
    """Return the workday of the month with the least distance; a Saturday goes back, a Sunday on, if they can."""
    month = [day.replace(day=number) for number in range(1, monthrange(day.year, day.month)[1] + 1)]
    return min(filter(is_workday, month), key=lambda other: abs(other - day))


def in_words(field: str, day: date) -> bool:
    """Return whether a special day of cron is meant, by its description in docs/schedules.md."""
    last = day.replace(day=monthrange(day.year, day.month)[1])
    cron_weekday = day.isoweekday() % 7
    if field == "LW":
        return day == max(day.replace(day=n) for n in range(1, last.day + 1) if is_workday(day.replace(day=n)))
    if field.startswith("L"):
        return last - day == timedelta(days=int(field[2:] or 0))
    if field.endswith("W"):
        number = int(field[:-1])
        return number <= last.day and day == nearest_workday(day.replace(day=number))
    if field.endswith("L"):
        return cron_weekday == int(field[:-1]) and (day + timedelta(days=7)).month != day.month
    weekday, nth = map(int, field.split("#"))
    return cron_weekday == weekday and (day.day + 6) // 7 == nth


month_days = st.one_of(
    st.sampled_from(("L", "LW")),
    st.integers(1, 30).map(lambda distance: f"L-{distance}"),
    st.integers(1, 31).map(lambda number: f"{number}W"),
)
week_days = st.one_of(
    st.integers(0, 6).map(lambda number: f"{number}L"),
    st.tuples(st.integers(0, 6), st.integers(1, 5)).map(lambda pair: f"{pair[0]}#{pair[1]}"),
)


@thorough
@given(st.one_of(month_days.map(lambda day: f"{day} * *"), week_days.map(lambda day: f"* * {day}")), instants)
def test_a_special_day_of_cron_is_the_day_that_its_description_means(fields, after):
    special = next(word for word in fields.split() if word != "*")
    day, expected = after.date(), []
    while len(expected) < 12 and (day - after.date()).days < 3_000:
        day += timedelta(days=1)
        if in_words(special, day):
            expected.append(datetime(day.year, day.month, day.day, tzinfo=UTC))

    assert expected == list(parse(f"0 0 {fields}").occurrences(after, limit=len(expected)))


@thorough
@given(iso_texts, zones, st.integers(0, 300))
def test_a_repetition_equals_its_steps_taken_one_by_one_from_the_start(text, zone, skipped):
    head, start_text, step_text = text.split("/")
    schedule, step, wall = parse(text, zone), read_iso(step_text), ZoneInfo(zone)
    total = int(head[1:] or 10**6)
    start = datetime.fromisoformat(start_text).replace(tzinfo=UTC)

    def stepped(number: int) -> datetime:
        reading = step.after_date_parts(start, number)
        shown = reading.replace(tzinfo=wall).astimezone(UTC)  # in a gap that is the offset before it: shifted
        return shown + number * step.elapsed

    # A day that a zone left out falls together with the next one: one occurrence.
    expected = sorted({stepped(number) for number in range(skipped, min(skipped + 12, total))})
    assume(expected)

    assert expected == list(schedule.occurrences(expected[0] - TICK, expected[-1]))
    assert len(expected) == schedule.count(expected[0] - TICK, expected[-1])


openers = st.one_of(
    st.builds("{} {} * * *".format, st.sampled_from((0, 10, 30, 50)), st.integers(0, 23)),
    st.builds("{} {} * * {}".format, st.sampled_from((0, 30)), st.integers(0, 4), st.integers(0, 6)),
    st.builds("{} {:02}:30".format, st.sampled_from(NAMES), st.integers(0, 23)),
    st.builds("every {}m".format, st.integers(60, 3_000)),
    st.builds("R/2010-01-01T{:02}:00:00/P{}D".format, st.integers(0, 23), st.integers(2, 9)),
)
lengths = st.one_of(
    st.sampled_from(("P1D", "P2D", "PT24H", "P1DT2H", "PT48H")), st.builds("PT{}M".format, st.integers(1, 600))
)


def stretches(windows: list[tuple[str, str]], zone: str, leap: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield when each window around a leap opens and closes, told by zoneinfo."""
    wall = ZoneInfo(zone)
    for opener, length in windows:
        duration = read_iso(length)
        for opening in parse(opener, zone).occurrences(leap - timedelta(days=6), leap + timedelta(days=6)):
            closing = opening
            if duration.has_date_part():
                reading = duration.after_date_parts(opening.astimezone(wall).replace(tzinfo=UTC))
                closing = reading.replace(tzinfo=wall, fold=0).astimezone(UTC)
            yield opening, closing + duration.elapsed


@thorough
@given(
    st.lists(st.tuples(openers, lengths), min_size=1, max_size=4),
    st.sampled_from(ZONES),
    st.sampled_from(LEAPS),
    st.lists(st.integers(-2_880, 2_880), min_size=8, max_size=8),
)
def test_an_instant_is_blocked_if_any_window_covers_it(windows, zone, leap, minutes):
    try:
        blackout = parse_windows("; ".join(f"{opener} {length}" for opener, length in windows), zone)
    except InvalidSchedule as refused:
        assume("free moment" not in refused.reason)
        raise
    known = list(stretches(windows, zone, leap))
    for minute in minutes:
        moment = free = leap + timedelta(minutes=minute)
        while held := [closing for opening, closing in known if opening <= free < closing]:
            free = max(held)
        assert blackout.covers(moment) == (free > moment)
        if free < leap + timedelta(days=5):
            assert free == blackout.defer(moment)


@pytest.mark.parametrize(
    "opener",
    [
        "0 0 29 2 mon",
        "RRULE:FREQ=SECONDLY;INTERVAL=86399;BYHOUR=23",
        "RRULE:FREQ=WEEKLY;INTERVAL=999;BYDAY=MO;BYSETPOS=1",
    ],
)
def test_a_rare_opener_beside_a_frequent_one_is_not_searched_for_again_at_each_step(opener):
    """A thousand windows follow each other here: with a search of a hundred years at each it took minutes."""
    begun = time.process_time()
    with pytest.raises(InvalidSchedule, match="without a free moment"):
        parse_windows(["R/1000-01-01/PT1S PT59S", f"{opener} PT1S"])

    assert time.process_time() - begun < 5
