"""cron: what the test suite of cronsim (2.6), which does as Debian's cron does, expects.

Told as facts: a text, where one stands, what comes next. What we read otherwise stands at the end, with the reason;
docs/schedule-reference.md lists it too.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import product
from zoneinfo import ZoneInfo

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.cron.fields import DAY, HOUR, MINUTE, MONTH, WEEKDAY, read_field
from celery_pgbeat.schedules.wallclock.bitset import members
from tests.harness.schedule_texts import UTC


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "text", "numbers"),
    [
        (MINUTE, "*", range(60)),
        (HOUR, "*", range(24)),
        (DAY, "*", range(1, 32)),
        (MONTH, "*", range(1, 13)),
        (WEEKDAY, "*", range(7)),
        (MINUTE, "1", [1]),
        (WEEKDAY, "1", [1]),
        (WEEKDAY, "0", [0]),
        (WEEKDAY, "7", [0]),
        (MINUTE, "1,2,3", [1, 2, 3]),
        (MINUTE, "1-3", [1, 2, 3]),
        (MINUTE, "1-3,7-9", [1, 2, 3, 7, 8, 9]),
        (MINUTE, "*/15", [0, 15, 30, 45]),
        (MINUTE, "0-10/2", [0, 2, 4, 6, 8, 10]),
        (MINUTE, "5/15", [5, 20, 35, 50]),
        (WEEKDAY, "MON", [1]),
        (WEEKDAY, "mon", [1]),
        (MONTH, "JAN", [1]),
        (WEEKDAY, "0-2", [0, 1, 2]),
        (WEEKDAY, "sun-tue", [0, 1, 2]),
        (WEEKDAY, "*/2", [0, 2, 4, 6]),
    ],
)
def test_a_field_holds_the_numbers_that_cronsim_finds_in_it(field, text, numbers):
    assert list(numbers) == members(read_field(field, text).numbers)


@pytest.mark.parametrize(
    ("text", "expected"),  # from 2020-01-01, at 01:01
    [
        ("1 1 L * *", ["01-31"]),
        ("1 1 l * *", ["01-31"]),
        ("1 1 LW 5 *", ["05-29"]),
        ("1 1 lw 5 *", ["05-29"]),
        (
            "1 1 * * 5L",
            [
                *("01-31", "02-28", "03-27", "04-24", "05-29", "06-26"),
                *("07-31", "08-28", "09-25", "10-30", "11-27", "12-25"),
            ],
        ),
        ("1 1 * * 0L", ["01-26"]),
        ("1 1 * * 7L", ["01-26"]),
        ("1 1 * * 1#2", ["01-13"]),
        ("1 1 * * 1,2,3#1", ["01-01", "01-06", "01-07", "01-13"]),
        ("1 1 1-7 * */7", ["01-05", "02-02", "03-01", "04-05"]),  # the first Sunday: a field that starts with * ANDs
        ("1 1 */100,1-7 * MON", ["01-06", "02-03", "03-02", "04-06"]),  # the first Monday
        ("1 1 * * */3", ["01-01", "01-04", "01-05", "01-08"]),
    ],
)
def test_days_are_picked_as_cronsim_picks_them(text, expected):
    found = parse(text).occurrences(utc("2020-01-01"), limit=len(expected))

    assert [utc(f"2020-{day}T01:01") for day in expected] == list(found)


# Riga is two hours ahead in winter and three in summer. On 28 March 2021 its clock goes from 03:00 to 04:00,
# on 31 October from 04:00 back to 03:00.
RIGA = ZoneInfo("Europe/Riga")
EVERY_HOUR = ",".join(map(str, range(24)))
EVERY_ODD_HOUR = ",".join(map(str, range(1, 24, 2)))
SPRING = [
    ("0 * * * *", "28 01:30", "28 02:00+2, 28 04:00+3"),
    ("*/30 * * * *", "28 02:10", "28 02:30+2, 28 04:00+3, 28 04:30+3"),
    ("*/15 * * * *", "28 02:40", "28 02:45+2, 28 04:00+3"),
    ("0 */2 * * *", "28 01:30", "28 02:00+2, 28 04:00+3, 28 06:00+3"),
    ("30 */2 * * *", "28 01:30", "28 02:30+2, 28 04:30+3"),
    ("0 1,2,3,4,5 * * *", "28 01:30", "28 02:00+2, 28 04:00+3, 28 05:00+3"),
    ("30 1,2,3,4,5 * * *", "28 01:30", "28 02:30+2, 28 04:00+3, 28 04:30+3"),
    ("0 2 * * *", "28 01:30", "28 02:00+2, 29 02:00+3"),
    ("0 3 * * *", "27 01:30", "27 03:00+2, 28 04:00+3, 29 03:00+3"),
    ("0 4 * * *", "27 01:30", "27 04:00+2, 28 04:00+3, 29 04:00+3"),
    (f"0 {EVERY_HOUR} * * *", "28 01:30", "28 02:00+2, 28 04:00+3, 28 05:00+3"),
    (f"0 {EVERY_ODD_HOUR} * * *", "28 00:30", "28 01:00+2, 28 04:00+3, 28 05:00+3"),
    ("0 1-5 * * *", "28 01:30", "28 02:00+2, 28 04:00+3, 28 05:00+3"),
    ("15 3 * * *", "27 00:00", "27 03:15+2, 28 04:00+3, 29 03:15+3"),
    ("* * * * *", "28 02:58", "28 02:59+2, 28 04:00+3"),
    ("* 1-6 * * *", "28 02:58", "28 02:59+2, 28 04:00+3"),
]
AUTUMN = [
    ("0 * * * *", "31 01:30", "31 02:00+3, 31 03:00+3, 31 03:00+2, 31 04:00+2"),
    ("*/30 * * * *", "31 02:10", "31 02:30+3, 31 03:00+3, 31 03:30+3, 31 03:00+2, 31 03:30+2, 31 04:00+2"),
    ("*/15 * * * *", "31 02:40", "31 02:45+3, 31 03:00+3, 31 03:15+3, 31 03:30+3, 31 03:45+3, 31 03:00+2, 31 03:15+2"),
    ("0 */2 * * *", "31 01:30", "31 02:00+3, 31 04:00+2, 31 06:00+2"),
    ("30 */2 * * *", "31 01:30", "31 02:30+3, 31 04:30+2"),
    ("0 */3 * * *", "31 01:30", "31 03:00+3, 31 03:00+2, 31 06:00+2"),
    ("0 1,2,3,4,5 * * *", "31 01:30", "31 02:00+3, 31 03:00+3, 31 04:00+2"),
    ("30 1,2,3,4,5 * * *", "31 01:30", "31 02:30+3, 31 03:30+3, 31 04:30+2"),
    ("0 2 * * *", "30 01:30", "30 02:00+3, 31 02:00+3"),
    ("0 3 * * *", "30 01:30", "30 03:00+3, 31 03:00+3"),
    ("0 4 * * *", "30 01:30", "30 04:00+3, 31 04:00+2"),
    (f"0 {EVERY_HOUR} * * *", "31 01:30", "31 02:00+3, 31 03:00+3, 31 04:00+2"),
    (f"0 {EVERY_ODD_HOUR} * * *", "31 00:30", "31 01:00+3, 31 03:00+3, 31 05:00+2"),
    ("0 1-5 * * *", "31 01:30", "31 02:00+3, 31 03:00+3, 31 04:00+2"),
    ("15 3 * * *", "30 00:00", "30 03:15+3, 31 03:15+3"),
    ("* * * * *", "31 03:58", "31 03:59+3, 31 03:00+2, 31 03:01+2"),
    ("* 1-6 * * *", "31 03:58", "31 03:59+3, 31 03:00+2, 31 03:01+2"),
]


def in_riga(month: str, text: str) -> datetime:
    """Return the instant of `28 04:00+3`."""
    reading, _, hours = text.partition("+")
    day, time = reading.split()
    return datetime.fromisoformat(f"2021-{month}-{day}T{time}").replace(tzinfo=timezone(timedelta(hours=int(hours))))


@pytest.mark.parametrize(
    ("month", "text", "base", "expected"),
    [("03", *row) for row in SPRING] + [("10", *row) for row in AUTUMN],
)
def test_a_change_of_the_clock_in_riga_gives_the_times_of_cronsim(month, text, base, expected):
    instants = [in_riga(month, moment) for moment in expected.split(", ")]
    after = datetime.fromisoformat(f"2021-{month}-{base.replace(' ', 'T')}").replace(tzinfo=RIGA)
    schedule = parse(text, "Europe/Riga")

    assert instants == list(schedule.occurrences(after, limit=len(instants)))
    assert instants[:-1] == [schedule.previous(instant) for instant in instants[1:]]  # cronsim's reverse iteration


WRONG = ("-1", "61", "ABC", "2/", "/2", "2#", "#2", "1##1", "1//2", "¹", "LL", "LWX")
PLACES = (
    *("{} * * * *", "* {} * * *", "* * {} * *", "* * * {} *", "* * * * {}", "* * * * * {}"),
    *("1-{} * * * *", "{}-60 * * * *", "* * 1-{} * *", "* * 1,{} * *", "* * {}/1 * *"),
    *("* * * {}-DEC *", "* * * JAN-{} *", "* * * * {}-SUN", "* * * * MON-{}"),
)


@pytest.mark.parametrize(
    "text",
    [
        *(place.format(wrong) for place, wrong in product(PLACES, WRONG)),
        *("* * * *", "1-1_0 * * * *", "*/0 * * * *", "* * * * 1#0", "* * * * 1#6", "* * 30 2 *", "* * 31 4 *"),
        *("* * * * 5L-6", "* * * * 5L#1", "* * * * 5L/3"),
    ],
)
def test_what_cronsim_refuses_is_refused(text):
    with pytest.raises(InvalidSchedule):
        parse(text)


# Where we differ from it, and why.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 1 5-1 * *", ["01-01", "01-05", "01-06"]),  # refused there; Celery's users have ranges that wrap
        ("1 1 * * MONL", ["01-27", "02-24", "03-30"]),  # there only 1L
    ],
)
def test_texts_that_only_cronsim_refuses(text, expected):
    found = parse(text).occurrences(utc("2020-01-01"), limit=len(expected))

    assert [utc(f"2020-{day}T01:01") for day in expected] == list(found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("* * L/2 * *", "day 'L' is not a number"),  # the step is ignored there
        ("* * LW/2 * *", "day 'LW' is not a number"),
        ("1 1 */100 * MON#4", "never meet"),  # accepted there, and found never to occur when asked
    ],
)
def test_texts_that_only_cronsim_reads(text, reason):
    with pytest.raises(InvalidSchedule, match=reason):
        parse(text)
