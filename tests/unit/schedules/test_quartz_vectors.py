"""cron: what the test suites of Quartz (Java) and Quartz.NET expect, where their language is ours.

Their weekdays are 1 = SUN to 7 = SAT, so only names are shared. Left out is what only their objects have
(serialization, copies, messages). What we read otherwise stands at the end, with the reason;
docs/schedule-reference.md lists it too.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from tests.harness.schedule_texts import TICK, UTC


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def days_of(text: str, month: str) -> list[int]:
    first = utc(f"{month}-01")
    return [
        found.day for found in parse(text).occurrences(first, first + timedelta(days=31)) if found.month == first.month
    ]


@pytest.mark.parametrize(
    ("text", "month", "expected"),
    [
        ("0 15 10 * * ? 2005", "2005-02", [*range(1, 29)]),
        ("0 15 10 * * ? 2005", "2005-03", [*range(1, 32)]),
        ("0 15 10 * * ? 2005", "2005-06", [*range(1, 31)]),
        ("0 15 10 * * ? 2005", "2006-06", []),
        ("0 15 10 12 * ? 2005", "2005-12", [12]),
        ("0 15 10 L * ? 2005", "2005-12", [31]),
        ("0 15 10 L * ? 2005", "2005-09", [30]),
        ("0 15 10 L 2 ? 2005", "2005-02", [28]),
        ("0 15 10 L 2 ? 2004", "2004-02", [29]),
        ("0 15 10 L-2 * ? 2005", "2005-12", [29]),
        ("0 15 10 L-1 * ? 2005", "2005-09", [29]),
        ("0 15 10 L-3 2 ? 2005", "2005-02", [25]),
        ("0 15 10 L-3 2 ? 2000", "2000-02", [26]),
        ("0 15 10 L-2 * ? 2010", "2010-10", [29]),
        ("0 15 10 L-2 * ? 2010", "2010-02", [26]),
        ("0 15 10 L-2 * ? 2010", "2010-06", [28]),
        ("0 15 10 L-1 * ? 2010", "2010-10", [30]),
        ("0 15 10 1,L * ? 2010", "2010-10", [1, 31]),
        ("0 15 10 1,L * ? 2010", "2010-02", [1, 28]),
        ("0 15 10 6,15,L * ? 2010", "2010-10", [6, 15, 31]),
        ("0 15 10 15,31 * ? 2010", "2010-10", [15, 31]),
        ("0 15 10 15,L-2 * ? 2010", "2010-10", [15, 29]),
        ("0 15 10 31,L-2 * ? 2010", "2010-10", [29, 31]),
        ("0 15 10 1,3,6,15,L * ? 2010", "2010-10", [1, 3, 6, 15, 31]),
        ("0 15 10 5/5 * MON 2010", "2010-10", [4, 5, 10, 11, 15, 18, 20, 25, 30]),
        ("0 15 10 3 * MON,THU,FRI 2010", "2010-10", [1, 3, 4, 7, 8, 11, 14, 15, 18, 21, 22, 25, 28, 29]),
        (
            "0 15 10 1,2,3,4,5,6 * MON,THU,FRI 2010",
            "2010-10",
            [1, 2, 3, 4, 5, 6, 7, 8, 11, 14, 15, 18, 21, 22, 25, 28, 29],
        ),
        (
            "0 0 12 ? * MON-FRI",
            "2007-06",
            [1, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 18, 19, 20, 21, 22, 25, 26, 27, 28, 29],
        ),
        ("0 0 12 ? * FRI", "2007-06", [1, 8, 15, 22, 29]),
        ("0 0 12 L * ?", "2007-06", [30]),
        ("0 15 10 ? * MON#1 2010", "2010-01", [4]),
        ("0 15 10 ? * SAT#1 2010", "2010-01", [2]),
        ("0 15 10 ? * SUN#1 2010", "2010-01", [3]),
        ("0 5 13 5W 1-12 ?", "2009-04", [6]),
        ("0 5 13 5W 1-12 ?", "2009-05", [5]),
        ("0 0 18-21/3 ? * FRI#3", "2008-12", [19, 19]),
    ],
)
def test_quartz_and_we_pick_the_same_days(text, month, expected):
    assert expected == days_of(text, month)


@pytest.mark.parametrize(
    ("text", "zone", "base", "expected"),
    [
        ("0 15 23 * * ?", "UTC", "2005-06-01T23:16", "2005-06-02T23:15"),
        ("0 55 15 1 * ?", "UTC", "2007-12-01T23:59:59", "2008-01-01T15:55"),
        ("0/5 * * * * ?", "UTC", "2005-06-01T01:59:55", "2005-06-01T02:00"),
        ("* * 1 * * ?", "UTC", "2005-07-31T22:59:57", "2005-08-01T01:00"),
        ("0 0 0 29 * ?", "UTC", "2009-01-30", "2009-03-29"),
        ("0 0 0 29 * ?", "UTC", "2009-12-30", "2010-01-29"),
        ("0 5 13 5W 1-12 ?", "UTC", "2009-03-08", "2009-04-06T13:05"),
        ("0 15 15 5 11 ?", "America/New_York", "2012-11-04", "2012-11-05T20:15"),
        ("0 0 0 ? * THU", "America/New_York", "2012-11-04", "2012-11-08T05:00"),
        (" 30 *   * * * ?  ", "UTC", "2012-11-04", "2012-11-04T00:00:30"),
        ("19 15 10 4 Apr ? ", "UTC", "2012-01-01", "2012-04-04T10:15:19"),
    ],
)
def test_after_that_moment_quartz_and_we_fire_at(text, zone, base, expected):
    assert utc(expected) == parse(text, zone).next(utc(base))


@pytest.mark.parametrize("text", ["0 0 0 L-2 * ? *", "0 0 0 LW * ? *"])  # QTZ-259
def test_each_fire_time_is_later_than_the_one_before_it(text):
    found = list(parse(text).occurrences(utc("2026-01-01"), limit=27))

    assert all(sooner < later for sooner, later in pairwise(found))
    assert [month % 12 + 1 for month in range(27)] == [instant.month for instant in found]


@pytest.mark.parametrize(
    "text",
    [
        *("58-4 5 21 ? * MON-FRI", "0 58-4 21 ? * MON-FRI", "0 0/5 21-3 ? * MON-FRI", "58 5 21 ? * FRI-TUE"),
        *("58 5 21 28-5 1 ?", "58 5 21 ? 11-2 FRI", "0 0 14-6 ? * FRI-MON", "55-3 56-2 6 ? * FRI"),
        *("0 0/30 * * * ?", "0 0/1 * * * ?", "0 0/30 * * */2 ?", "0 0 * * * ?\t"),
        *("0 0 18-21/1 ? * MON,TUE,WED,THU,FRI,SAT,SUN", "0 43 9 1,5,29,L * ?"),
    ],
)
def test_what_quartz_accepts_is_accepted(text):
    assert parse(text).next(utc("2026-01-01")) is not None


@pytest.mark.parametrize(
    "text",
    [
        *("* * * * Foo ? ", "* * * * Jan-Foo ? ", "0 15 10 * * ? 2005 *", "0 43 9 ? * SAT,SUN,L", "0 43 9 ? * 6,7,L"),
        *("0/5 * * 32W 1 ?", "0 15 10 ? * MON#0 2010", "0 15 10 ? * MON#6 2010", "0 15 10 15,L-31 * ? 2010"),
        *("L 15 10 15 * ? 2010", "0 L 10 15 * ? 2010", "0 15 L 15 * ? 2010", "0 15 10 15 L ? 2010"),
        *("0 15 10 15 * ? L", "0 0 * * * ?h", "0 0 * * * ??", "0 0 * * * ?*"),
        *("* * * ? * *A&/5:", "* * * ? *14 ", " * * ? *A&/5 *", "0 0 15 ? * FRI*"),
        *("/120 0 8-18 ? * MON-FRI", "/ 0 8-18 ? * MON-FRI", "0/ 0 8-18 ? * MON-FRI", "0 /120 8-18 ? * MON-FRI"),
        *("0 / 8-18 ? * MON-FRI", "0 0/ 8-18 ? * MON-FRI", "0 0 /120 ? * MON-FRI", "0 0 / ? * MON-FRI"),
        *("0 0 0/ ? * MON-FRI", "0 0 0 /120 * MON-FRI", "0 0 0 0/120 * MON-FRI", "0 0 0 / * MON-FRI"),
        *("0 0 0 0/ * MON-FRI", "0 0 0 ? /120 MON-FRI", "0 0 0 ? 0/120 MON-FRI", "0 0 0 ? / MON-FRI"),
        *("0 0 0 ? 0/ MON-FRI", "0 0 0 ? * /120", "0 0 0 ? * 0/120", "0 0 0 ? * /", "0 0 0 ? * 0/"),
    ],
)
def test_what_quartz_refuses_is_refused(text):
    with pytest.raises(InvalidSchedule):
        parse(text)


# Where we differ from them, and why.


@pytest.mark.parametrize(
    ("text", "days"),  # of October 2010
    [
        ("0 0 * * * *", [*range(1, 32)]),  # refused there: one of the two day fields must be ?
        ("0 0 * 4 * *", [4]),
        ("0 0 * * * 4", [7, 14, 21, 28]),  # Thursday, as in every cron; Quartz would mean Wednesday
        ("0/120 0 9 ? * MON", [4, 11, 18, 25]),  # a step larger than its field is refused there; here its first value
        ("0 15 10 * * MON,THU,FRI 2010", [1, 4, 7, 8, 11, 14, 15, 18, 21, 22, 25, 28, 29]),  # .NET: a star ORs
        ("0 15 10 1 * * 2010", [1]),
        ("0 0 12 ? * FRI/2", [1, 8, 15, 22, 29]),  # .NET: every second Friday
        ("* * ? */3 *", [*range(1, 32)]),  # too few fields there; here minute to weekday, in January, April, ...
    ],
)
def test_what_we_read_otherwise(text, days):
    found = parse(text).occurrences(utc("2010-10-01") - TICK, utc("2010-11-01") - TICK)

    assert days == sorted({instant.day for instant in found})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0 43 9 ? * 5L", "looks like Quartz, where 1 is Sunday"),
        ("0 15 10 ? * 1#1 2010", "looks like Quartz, where 1 is Sunday"),
        ("0 12 4 ? * 3", "looks like Quartz, where 1 is Sunday"),
        ("58 5 21 ? * 6-2", "looks like Quartz, where 1 is Sunday"),
        ("0 15 10 ? * L 2010", "weekday 'L' is not a number"),  # Saturday there
        ("0 15 10 L-5W * ? 2010", "day 'L' is not a number"),
        ("0 15 10 LW-2 * ? 2010", "day 'LW' is not a number"),
        ("0 15 10 2W,16 * ? 2010", "W cannot stand in a list"),
        ("0 15 10 6,15,LW * ? 2010", "W cannot stand in a list"),
    ],
)
def test_texts_that_only_quartz_accepts(text, reason):
    with pytest.raises(InvalidSchedule, match=reason):
        parse(text)
