"""RRULE: the examples of RFC 5545, python-dateutil as an oracle, and work that is bounded."""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta
from itertools import islice

import pytest
from dateutil.rrule import rrulestr

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.parse import read
from tests.harness.schedule_texts import TICK, UTC

START = "DTSTART:19970902T090000\n"
RFC_EXAMPLES = [  # RFC 5545, 3.8.5.3
    "RRULE:FREQ=DAILY;COUNT=10",
    "RRULE:FREQ=DAILY;UNTIL=19971224T000000Z",
    "RRULE:FREQ=DAILY;INTERVAL=2",
    "RRULE:FREQ=DAILY;INTERVAL=10;COUNT=5",
    "RRULE:FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA",
    "RRULE:FREQ=WEEKLY;COUNT=10",
    "RRULE:FREQ=WEEKLY;INTERVAL=2;WKST=SU",
    "RRULE:FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH",
    "RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
    "RRULE:FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
    "RRULE:FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
    "RRULE:FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
    "RRULE:FREQ=MONTHLY;BYMONTHDAY=-3",
    "RRULE:FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15",
    "RRULE:FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
    "RRULE:FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
    "RRULE:FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
    "RRULE:FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
    "RRULE:FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
    "RRULE:FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
    "RRULE:FREQ=YEARLY;BYDAY=20MO",
    "RRULE:FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
    "RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
    "RRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
    "RRULE:FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
    "RRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
    "RRULE:FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
    "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
    "RRULE:FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z",
    "RRULE:FREQ=MINUTELY;INTERVAL=15;COUNT=6",
    "RRULE:FREQ=MINUTELY;INTERVAL=90;COUNT=4",
    "RRULE:FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
    "RRULE:FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16",
    "RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
    "RRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
    "RRULE:FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ours(text: str, after: datetime, number: int) -> list[datetime]:
    return [found.replace(tzinfo=None) for found in parse(text).occurrences(after, limit=number)]


def theirs(text: str, number: int) -> list[datetime]:
    # dateutil wants UNTIL without a zone beside a DTSTART without one.
    return list(islice(rrulestr(zoneless(text)), number))


def zoneless(text: str) -> str:
    return ";".join(part.removesuffix("Z") if part.startswith("UNTIL=") else part for part in text.split(";"))


@pytest.mark.parametrize("rule", RFC_EXAMPLES)
def test_an_example_of_the_rfc_gives_what_dateutil_gives(rule):
    assert theirs(START + rule, 30) == ours(START + rule, utc("1997-01-01"), 30)


WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def random_rule(chance: random.Random) -> str:
    """Return a rule on which RFC 5545, dateutil and this package agree.

    Left out: BYSETPOS by the week (dateutil counts the first week from DTSTART on), and weekdays with and without a
    number mixed (dateutil finds none).
    """
    frequency = chance.choice(("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"))

    def some(low: int, high: int, sign: tuple[int, ...] = (1,)) -> str:
        return ",".join(str(chance.randint(low, high) * chance.choice(sign)) for _ in range(chance.randint(1, 3)))

    parts = [f"FREQ={frequency}"]
    if chance.random() < 0.5:
        parts.append(f"INTERVAL={chance.choice((1, 2, 3, 5, 7, 13, 25))}")
    if chance.random() < 0.2:
        parts.append("BYMONTH=" + some(1, 12))
    if chance.random() < 0.2 and frequency != "WEEKLY":
        parts.append("BYMONTHDAY=" + some(1, 28, (1, -1)))
    if chance.random() < 0.4:
        nth = [f"{chance.choice((1, 2, -1))}{chance.choice(WEEKDAYS)}"]
        days = chance.sample(WEEKDAYS, chance.randint(1, 4))
        parts.append("BYDAY=" + ",".join(nth if frequency in ("MONTHLY", "YEARLY") and chance.random() < 0.5 else days))
    if chance.random() < 0.3:
        parts.append("BYHOUR=" + some(0, 23))
    if chance.random() < 0.3:
        parts.append("BYMINUTE=" + some(0, 59))
    if chance.random() < 0.2 and frequency != "WEEKLY" and len(parts) > 2:
        parts.append("BYSETPOS=" + some(1, 3, (1, -1)))
    if chance.random() < 0.3:
        parts.append(f"COUNT={chance.randint(1, 12)}")
    return ";".join(parts)


def test_dateutil_gives_the_same_times_for_random_rules():
    chance, compared = random.Random(5545), 0
    while compared < 150:
        text = f"DTSTART:2026{chance.randint(1, 12):02}{chance.randint(1, 28):02}T{chance.randint(0, 23):02}3000\n"
        text += f"RRULE:{random_rule(chance)}"
        try:
            found = ours(text, utc("2025-12-31"), 6)
        except InvalidSchedule:
            continue
        if not found or found[-1] > datetime(2030, 1, 1):  # dateutil would take seconds over these
            continue
        compared += 1
        assert theirs(text, len(found)) == found, text


def test_additions_and_exceptions_belong_to_the_set():
    schedule = parse(
        "DTSTART:20261201T090000 RRULE:FREQ=DAILY;COUNT=4 EXDATE:20261202T090000,20261203T100000 "
        "RDATE:20261210T120000,20261204T090000"
    )
    found = [f"{instant:%d %H}" for instant in schedule.occurrences(utc("2026-01-01"))]

    assert ["01 09", "03 09", "04 09", "10 12"] == found
    assert schedule.count(utc("2026-01-01"), utc("2027-01-01")) == 4
    assert schedule.previous(utc("2026-12-03")) == utc("2026-12-01T09:00")


def test_dates_alone_need_no_rule():
    schedule = parse("RDATE:20261210T120000,20261204T090000Z", "Europe/Berlin")

    assert [utc("2026-12-04T09:00"), utc("2026-12-10T11:00")] == list(schedule.occurrences(utc("2026-01-01")))


NIGHTLY = "DTSTART;TZID=Europe/Berlin:20261024T023000 RRULE:FREQ=DAILY;COUNT=3"


@pytest.mark.parametrize(
    ("text", "dst", "expected"),  # 02:30 is shown twice on the 25th: at 00:30 and 01:30 UTC
    [
        (NIGHTLY, "default", ["24 00:30", "25 00:30", "26 01:30"]),
        (f"{NIGHTLY} RDATE:20261025T013000Z", "default", ["24 00:30", "25 00:30", "25 01:30", "26 01:30"]),
        (f"{NIGHTLY} EXDATE:20261025T013000Z", "default", ["24 00:30", "25 00:30", "26 01:30"]),
        (f"{NIGHTLY} EXDATE:20261025T003000Z", "default", ["24 00:30", "26 01:30"]),
        (f"{NIGHTLY} EXDATE:20261025T013000Z", "all", ["24 00:30", "25 00:30", "26 01:30"]),
        ("RDATE:20261025T013000Z,20261025T003000Z", "default", ["25 00:30", "25 01:30"]),
        ("RDATE:20261025T013000Z EXDATE:20261025T013000Z RDATE:20261026T013000Z", "default", ["26 01:30"]),
        (f"{NIGHTLY.replace('COUNT=3', 'UNTIL=20261025T010000Z')}", "default", ["24 00:30", "25 00:30"]),
        (f"{NIGHTLY.replace('COUNT=3', 'UNTIL=20261025T002959Z')}", "default", ["24 00:30"]),
    ],
)
def test_a_moment_in_utc_means_that_very_pass_of_an_overlap(text, dst, expected):
    schedule = parse(text, "Europe/Berlin", dst=dst)
    found = list(schedule.occurrences(utc("2026-01-01")))

    assert expected == [f"{instant:%d %H:%M}" for instant in found]
    assert len(found) == schedule.count(utc("2026-01-01"), utc("2027-01-01"))
    assert found[:-1] == [schedule.previous(instant) for instant in found[1:]]


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("DTSTART:20261207T090000 RRULE:FREQ=DAILY", "Europe/Berlin", "2026-12-07T08:00"),
        ("DTSTART;TZID=Asia/Tokyo:20261207T090000 RRULE:FREQ=DAILY", "Asia/Tokyo", "2026-12-07T00:00"),
        ("DTSTART:20261207T090000Z RRULE:FREQ=DAILY", "UTC", "2026-12-07T09:00"),
        ("DTSTART;VALUE=DATE:20261207 RRULE:FREQ=DAILY", "Europe/Berlin", "2026-12-06T23:00"),
    ],
)
def test_a_zone_in_dtstart_wins(text, zone, expected):
    schedule = parse(text, "Europe/Berlin")

    assert zone == schedule.timezone
    assert utc(expected) == schedule.next(utc("2026-01-01"))


@pytest.mark.parametrize(
    "text", ["RRULE:FREQ=DAILY", "rrule:FREQ=DAILY", "rrule: RRULE:FREQ=DAILY", "freq=daily", "rrule: FREQ=DAILY"]
)
def test_without_dtstart_the_anchor_is_the_start(text):
    schedule = parse(text, anchor=utc("2026-12-07T09:30"))

    assert utc("2026-12-07T09:30") == schedule.next(utc("2026-01-01"))
    assert schedule.text == "RRULE:FREQ=DAILY"


def test_until_belongs_to_the_rule_and_a_date_means_its_whole_day():
    def last(until: str) -> datetime | None:
        return parse(f"DTSTART:20261201T090000 RRULE:FREQ=DAILY;UNTIL={until}").previous(utc("2030-01-01"))

    assert utc("2026-12-05T09:00") == last("20261205T090000Z")
    assert utc("2026-12-04T09:00") == last("20261205T085959")
    assert utc("2026-12-05T09:00") == last("20261205")


def test_an_hourly_rule_does_not_repeat_an_instant_in_spring():
    schedule = parse("DTSTART:20260328T003000\nRRULE:FREQ=HOURLY", "Europe/Berlin")
    found = list(schedule.occurrences(utc("2026-03-29"), utc("2026-03-29T06:00")))

    assert [f"{hour:02}:30" for hour in range(6)] == [f"{instant:%H:%M}" for instant in found]


@pytest.mark.parametrize(
    "rule",
    [
        "DTSTART:19700101T000000 RRULE:FREQ=SECONDLY",
        "DTSTART:19700101T000000 RRULE:FREQ=SECONDLY;INTERVAL=7;BYHOUR=9",
        "DTSTART:20000101T000000 RRULE:FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=29",
        "DTSTART:20160101T000000 RRULE:FREQ=DAILY",
        "DTSTART:20160101T000000 RRULE:FREQ=MINUTELY;COUNT=100000000",
    ],
)
def test_years_after_its_start_a_rule_still_answers_at_once(rule):
    begun = time.process_time()
    for _ in range(20):
        read(rule).next(utc("2026-12-07T10:07"))

    assert time.process_time() - begun < 1  # 50 ms each; dateutil takes seconds


@pytest.mark.parametrize("name", ["RDATE", "EXDATE"])
def test_two_hundred_dates_beside_a_rare_rule_are_read_at_once(name):
    dates = ",".join(f"{year}0704T120000" for year in range(1960, 2170))
    begun = time.process_time()
    read(f"DTSTART:19000101T000000 RRULE:FREQ=SECONDLY;INTERVAL=86399;BYHOUR=23 {name}:{dates}")

    assert time.process_time() - begun < 3  # a search of a hundred years for each date would take some 20 s


def test_a_count_of_millions_is_not_walked_through():
    schedule = parse("DTSTART:20200101T000000 RRULE:FREQ=MINUTELY;BYHOUR=8,9;COUNT=1000000")
    last = schedule.previous(utc("2090-01-01"))

    assert last is not None
    assert schedule.count(utc("2020-01-01") - TICK, last) == 1_000_000
    assert schedule.next(last) is None
    assert last == utc("2020-01-01") + timedelta(days=999_999 // 120, hours=8, minutes=999_999 % 120)
