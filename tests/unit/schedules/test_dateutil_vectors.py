"""RRULE: what python-dateutil's own test suite (2.9.0) expects, told as facts; 198 of them in dateutil_vectors.txt.

Where we differ stands at the end; docs/schedule-reference.md lists it too.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from tests.harness.schedule_texts import UTC

TABLE = Path(__file__).with_name("dateutil_vectors.txt").read_text(encoding="utf-8")
VECTORS = [line.split(" = ") for line in TABLE.splitlines() if not line.startswith("#")]
BEFORE = datetime(1990, 1, 1, tzinfo=UTC)
START = "DTSTART:19970902T090000 "


def at(text: str) -> datetime:
    """Return a time in UTC; one without a time of the day is at 09:00."""
    return datetime.fromisoformat(text if "T" in text else f"{text}T09:00").replace(tzinfo=UTC)


def test_the_table_is_there():
    assert len(VECTORS) == 198


@pytest.mark.parametrize(("rule", "expected"), VECTORS, ids=[rule for rule, _ in VECTORS])
def test_a_rule_gives_what_dateutil_gives(rule, expected):
    instants = [at(text) for text in expected.split()]
    schedule = parse(f"{START}RRULE:FREQ={rule};COUNT={len(instants)}")

    assert instants == list(schedule.occurrences(BEFORE, limit=len(instants)))
    assert schedule.next(instants[-1]) is None
    assert len(instants) == schedule.count(BEFORE, instants[-1] + timedelta(days=366))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{START}RRULE:FREQ=DAILY;UNTIL=19970905T080000", "1997-09-02 1997-09-03 1997-09-04"),
        (f"{START}RRULE:FREQ=DAILY;UNTIL=19970904T090000", "1997-09-02 1997-09-03 1997-09-04"),
        (f"{START}RRULE:FREQ=DAILY;UNTIL=19970902T090000", "1997-09-02"),
        ("DTSTART:19970902T000000 RRULE:FREQ=DAILY;COUNT=2", "1997-09-02T00:00 1997-09-03T00:00"),
        (
            "DTSTART:20100322T120100 RRULE:FREQ=SECONDLY;COUNT=3;BYSECOND=0;BYMINUTE=1",
            "2010-03-22T12:01 2010-03-22T13:01 2010-03-22T14:01",
        ),
        ("dtstart:19970902T090000\nrrule:freq=yearly;count=3\n", "1997-09-02 1998-09-02 1999-09-02"),
        (" DTSTART:19970902T090000  RRULE:FREQ=YEARLY;COUNT=3 ", "1997-09-02 1998-09-02 1999-09-02"),
        (" DTSTART:19970902T090000 \n \n RRULE:FREQ=YEARLY;COUNT=3 \n", "1997-09-02 1998-09-02 1999-09-02"),
        (f"{START}RRULE:FREQ=YEARLY;UNTIL=19990101T000000;BYDAY=1TU,-1TH", "1997-12-25 1998-01-06 1998-12-31"),
        (
            f"{START}RRULE:FREQ=YEARLY;COUNT=1;BYDAY=TU\nRDATE:19970904T090000\nRDATE:19970909T090000\n",
            "1997-09-02 1997-09-04 1997-09-09",
        ),
        (
            f"{START}RRULE:FREQ=YEARLY;COUNT=6;BYDAY=TU,TH\nEXDATE:19970904T090000,19970911T090000\n"
            "EXDATE:19970918T090000",
            "1997-09-02 1997-09-09 1997-09-16",
        ),
        (
            f"{START}RRULE:FREQ=YEARLY;COUNT=4;BYDAY=TU,TH\nEXDATE;VALUE=DATE-TIME:19970902T090000\nEXDATE:19970909T090000",
            "1997-09-04 1997-09-11",
        ),
        (
            "DTSTART;VALUE=DATE:19970902\nRRULE:FREQ=YEARLY;COUNT=4;BYDAY=TU,TH\n"
            "EXDATE;VALUE=DATE:19970902\nEXDATE;VALUE=DATE:19970909",
            "1997-09-04T00:00 1997-09-11T00:00",
        ),
        (
            f"{START}RDATE:19970902T090000,19970904T090000,19970909T090000\nRDATE:19970911T090000\n"
            "EXDATE:19970904T090000\nEXDATE:19970911T090000",
            "1997-09-02 1997-09-09",
        ),
        (
            "DTSTART;TZID=America/New_York:19970902T090000\nRRULE:FREQ=YEARLY;COUNT=3",
            "1997-09-02T13:00 1998-09-02T13:00 1999-09-02T13:00",
        ),
        (
            "DTSTART;TZID=America/New_York:19970101T000000 RRULE:FREQ=YEARLY;UNTIL=19990101T000000Z",
            "1997-01-01T05:00 1998-01-01T05:00",
        ),
        (
            "DTSTART;VALUE=DATE-TIME;TZID=Europe/Brussels:19970902T090000\nRRULE:FREQ=YEARLY;COUNT=4;BYDAY=TU,TH\n"
            "EXDATE;VALUE=DATE-TIME;TZID=Europe/Brussels:19970902T090000\nEXDATE;TZID=Europe/Brussels:19970909T090000",
            "1997-09-04T07:00 1997-09-11T07:00",
        ),
    ],
)
def test_a_set_gives_what_dateutil_gives(text, expected):
    assert [at(instant) for instant in expected.split()] == list(parse(text).occurrences(BEFORE))


@pytest.mark.parametrize(
    "text",
    [
        f"{START}RRULE:FREQ=HOURLY;INTERVAL=4;BYHOUR=7,11,15,19",
        f"{START}RRULE:FREQ=MINUTELY;INTERVAL=12;BYMINUTE=10,11,25,39,50",
        f"{START}RRULE:FREQ=SECONDLY;INTERVAL=10;BYSECOND=2,15,37,42,59",
        f"{START}RRULE:FREQ=DAILY;COUNT=3;UNTIL=19970904T090000",
        "DTSTART:19970101T000000,19970202T000000 RRULE:FREQ=YEARLY;COUNT=1",
        f"{START}RRULE:FREQ=YEARLY;UNTIL=TheCowsComeHome;BYDAY=1TU,-1TH",
        f"{START}FREQ=WEEKLY;BYDAY=;WKST=SU",
        f"{START}FREQ=WEEKLY;BYDAY=-1OK;WKST=SU",
        f"{START}RRULE:FREQ=MONTHLY;COUNT=1;BYSETPOS=0",
        f"{START}RRULE:FREQ=MONTHLY;COUNT=1;BYSETPOS=-1,0,1",
    ],
)
def test_what_dateutil_refuses_is_refused(text):
    with pytest.raises(InvalidSchedule):
        parse(text)


# Where we differ from it, and why.


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("RRULE:FREQ=YEARLY;COUNT=3;BYEASTER=0", "'BYEASTER' is not a part of an RRULE"),  # nor is it in RFC 5545
        ("RRULE:FREQ=YEARLY;COUNT=3;BYWEEKDAY=TH", "'BYWEEKDAY' is not a part of an RRULE"),
        ("RRULE:FREQ=WEEKLY;COUNT=3;BYDAY=1TU,-1TH", "BYDAY with a number needs FREQ=MONTHLY or FREQ=YEARLY"),
        ("RRULE:FREQ=YEARLY;COUNT=2 RRULE:FREQ=YEARLY;COUNT=1", "a schedule has one RRULE"),
        ("RRULE:FREQ=YEARLY;COUNT=6 EXRULE:FREQ=YEARLY;COUNT=3", "is not DTSTART:..., RRULE:..., RDATE:... or EXDATE"),
        ("RRULE:FREQ=YEA\n RLY;COUNT=3", "FREQ 'YEA' is not one of SECONDLY"),  # lines are not unfolded
        ("RRULE:FREQ=YEARLY;COUNT=0", "COUNT 0 is not in 1-1000000000"),  # what never occurs is refused
        ("RRULE:FREQ=DAILY;UNTIL=19970901T090000", "UNTIL lies before DTSTART"),
        ("RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31", "this rule has no occurrence within 100 years of its start"),
    ],
)
def test_texts_that_only_dateutil_accepts(text, reason):
    with pytest.raises(InvalidSchedule, match=reason):
        parse(START + text)


def test_until_without_a_z_is_read_on_the_wall_of_dtstarts_zone_where_dateutil_refuses_it():
    schedule = parse("DTSTART;TZID=America/New_York:19970902T090000 RRULE:FREQ=DAILY;UNTIL=19970903T090000")

    assert at("1997-09-03T13:00") == schedule.previous(at("2000-01-01"))


def test_a_week_belongs_to_one_year_whichever_end_it_is_counted_from():
    """The week of 30 December 2024 is number 1, and -52, of 2025. dateutil lets -52 begin on 1 January."""
    first, last = (parse(f"DTSTART:20241201T090000 RRULE:FREQ=YEARLY;BYWEEKNO={number}") for number in (1, -52))

    assert at("2024-12-30") == first.next(BEFORE) == last.next(BEFORE)
