"""Calendar events: what the test suites of systemd (252) and of oncalendar (1.1) expect, told as facts.

Where we differ stands at the end; docs/schedule-reference.md lists it too.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from tests.harness.schedule_texts import UTC

SAME = [  # text, systemd's normalized form
    ("Sat,Thu,Mon-Wed,Sat-Sun", "Mon..Thu,Sat,Sun *-*-* 00:00:00"),
    ("Sat,Thu,Mon..Wed,Sat..Sun", "Mon..Thu,Sat,Sun *-*-* 00:00:00"),
    ("Mon,Sun 12-*-* 2,1:23", "Mon,Sun 2012-*-* 01,02:23:00"),
    ("Wed *-1", "Wed *-*-01 00:00:00"),
    ("Wed-Wed,Wed *-1", "Wed *-*-01 00:00:00"),
    ("Wed..Wed,Wed *-1", "Wed *-*-01 00:00:00"),
    ("Wed, 17:48", "Wed *-*-* 17:48:00"),
    ("Wednesday,", "Wed *-*-* 00:00:00"),
    ("*-*-7 0:0:0", "*-*-07 00:00:00"),
    ("10-15", "*-10-15 00:00:00"),
    ("monday *-12-* 17:00", "Mon *-12-* 17:00:00"),
    ("Mon,Fri *-*-3,1,2 *:30:45", "Mon,Fri *-*-01,02,03 *:30:45"),
    ("12,14,13,12:20,10,30", "*-*-* 12,13,14:10,20,30:00"),
    ("mon,fri *-1/2-1,3 *:30:45", "Mon,Fri *-01/2-01,03 *:30:45"),
    ("03-05 08:05:40", "*-03-05 08:05:40"),
    ("08:05:40", "*-*-* 08:05:40"),
    ("05:40", "*-*-* 05:40:00"),
    ("Sat,Sun 12-05 08:05:40", "Sat,Sun *-12-05 08:05:40"),
    ("Sat,Sun 08:05:40", "Sat,Sun *-*-* 08:05:40"),
    ("hourly", "*-*-* *:00:00"),
    ("daily", "*-*-* 00:00:00"),
    ("monthly", "*-*-01 00:00:00"),
    ("weekly", "Mon *-*-* 00:00:00"),
    ("minutely", "*-*-* *:*:00"),
    ("MiNuTeLY", "*-*-* *:*:00"),
    ("quarterly", "*-01,04,07,10-01 00:00:00"),
    ("semi-annually", "*-01,07-01 00:00:00"),
    ("annually", "*-01-01 00:00:00"),
    ("*:2/3", "*-*-* *:02/3:00"),
    ("2015-10-25 01:00:00 uTc", "2015-10-25 01:00:00 UTC"),
    ("2015-10-25 01:00:00 Asia/Vladivostok", "2015-10-25 01:00:00 Asia/Vladivostok"),
    ("weekly Pacific/Auckland", "Mon *-*-* 00:00:00 Pacific/Auckland"),
    ("2016-03-27 03:17:00.4200005 UTC", "2016-03-27 03:17:00.420001 UTC"),
    ("9..11,13:00,30", "*-*-* 09..11,13:00,30:00"),
    ("1..3-1..3 1..3:1..3", "*-01..03-01..03 01..03:01..03:00"),
    ("00:00:1.0..3.8", "*-*-* 00:00:01..03"),
    ("00:00:01..03", "*-*-* 00:00:01..03"),
    ("00:00:01/2,02..03", "*-*-* 00:00:01/2,02..03"),
    ("*:4,30:0..3", "*-*-* *:04,30:00..03"),
    ("*:4,30:0/1", "*-*-* *:04,30:*"),
    ("*:4,30:0/1,3,5", "*-*-* *:04,30:*"),
    ("*-*~1 Utc", "*-*~01 00:00:00 UTC"),
    ("*-*~05,3 ", "*-*~03,05 00:00:00"),
    ("*-*~* 00:00:00", "*-*-* 00:00:00"),
    ("Monday", "Mon *-*-* 00:00:00"),
    ("Monday *-*-*", "Mon *-*-* 00:00:00"),
    ("*-*-*", "*-*-* 00:00:00"),
    ("*:*:*", "*-*-* *:*:*"),
    ("*:*", "*-*-* *:*:00"),
    ("12:*", "*-*-* 12:*:00"),
    ("*:30", "*-*-* *:30:00"),
    ("93..00-*-*", "1993..2000-*-* 00:00:00"),
    ("00..07-*-*", "2000..2007-*-* 00:00:00"),
    ("69-*-*", "2069-*-* 00:00:00"),
    ("70-*-*", "1970-*-* 00:00:00"),
    ("*:20..39/5", "*-*-* *:20..35/5:00"),
    ("00:00:20..40/1", "*-*-* 00:00:20..40"),
    ("*~03/1,03..05", "*-*~03/1,03..05 00:00:00"),
    ("@1493187147", "2017-04-26 06:12:27 UTC"),
    ("@1493187147 UTC", "2017-04-26 06:12:27 UTC"),
    ("@0", "1970-01-01 00:00:00 UTC"),
    ("@0 UTC", "1970-01-01 00:00:00 UTC"),
    ("*:05..05", "*-*-* *:05:00"),
    ("*:05..10/6", "*-*-* *:05:00"),
]


@pytest.mark.parametrize(("text", "normalized"), SAME)
def test_systemd_and_we_normalize_an_event_to(text, normalized):
    schedule = parse(text)

    assert normalized == schedule.text
    assert schedule == parse(normalized)


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),  # microseconds since the epoch; None is never
    [
        ("calendar: 2016-03-27 03:17:00", "UTC", 12345, 1459048620000000),
        ("calendar: 2016-03-27 03:17:00", "Europe/Berlin", 12345, 1459041420000000),
        ("calendar: 2016-03-27 03:17:00", "Europe/Kyiv", 12345, None),  # in the gap
        ("2016-03-27 03:17:00 UTC", "Europe/Berlin", 12345, 1459048620000000),
        ("2016-03-27 03:17:00 UTC", "Europe/Kyiv", 12345, 1459048620000000),
        ("2016-03-27 03:17:00.420000001 UTC", "Europe/Kyiv", 12345, 1459048620420000),
        ("2016-03-27 03:17:00.4200005 UTC", "Europe/Kyiv", 12345, 1459048620420001),
        ("calendar: 2015-11-13 09:11:23.42", "Europe/Kyiv", 12345, 1447398683420000),
        ("2015-11-13 09:11:23.42/1.77", "Europe/Kyiv", 1447398683420000, 1447398685190000),
        ("2015-11-13 09:11:23.42/1.77", "Europe/Kyiv", 1447398683419999, 1447398683420000),
        ("Sun 16:00:00", "Europe/Berlin", 1456041600123456, 1456066800000000),
        ("2016-02~01 UTC", "UTC", 12345, 1456704000000000),
        ("Mon 2017-05~01..07 UTC", "UTC", 12345, 1496016000000000),
        ("Mon 2017-05~07/1 UTC", "UTC", 12345, 1496016000000000),
        ("*-*-01/5 04:00:00 UTC", "UTC", 1646010000000000, 1646107200000000),
        ("*-01/7-01 04:00:00 UTC", "UTC", 1664607600000000, 1672545600000000),
        ("2017-08-06 9,11,13,15,17:00 UTC", "UTC", 1502029800000000, 1502031600000000),
        ("2017-08-06 9..17/2:00 UTC", "UTC", 1502029800000000, 1502031600000000),
        ("2016-12-* 3..21/6:00 UTC", "UTC", 1482613200000001, 1482634800000000),
        ("2017-09-24 03:30:00 Pacific/Auckland", "UTC", 12345, 1506177000000000),
        ("2017-09-24 02:30:00 Pacific/Auckland", "UTC", 12345, None),  # in the gap
        ("2017-04-02 02:30:00 Pacific/Auckland", "UTC", 12345, 1491053400000000),
        ("2017-04-02 02:30:00 Pacific/Auckland", "UTC", 1491053400000000, None),  # not in the second pass
        ("2017-04-02 03:30:00 Pacific/Auckland", "UTC", 12345, 1491060600000000),
        ("2017-09-09 20:42:00 Pacific/Auckland", "UTC", 12345, 1504946520000000),
        ("2017-09-09 20:42:00 Pacific/Auckland", "Europe/Kyiv", 12345, 1504946520000000),
        ("Sun *-*-* 01:00:00 Europe/Dublin", "UTC", 1616412478000000, 1617494400000000),
        ("hourly", "Europe/Dublin", 1743292800000000, 1743296400000000),
    ],
)
def test_systemd_and_we_elapse_next_at(text, zone, after, expected):
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    found = parse(text, zone).next(epoch + timedelta(microseconds=after))

    assert expected == (None if found is None else (found - epoch) // timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        ("*:*:0/5", "UTC", "2020-01-01", ["2020-01-01T00:00:05", "2020-01-01T00:00:10"]),
        ("*:*", "UTC", "2020-01-01", ["2020-01-01T00:01", "2020-01-01T00:02"]),
        ("*:1..3,7..9:0/30", "UTC", "2020-01-01T00:03:30", ["2020-01-01T00:07", "2020-01-01T00:07:30"]),
        ("Mon 2-29", "UTC", "2020-01-01", ["2044-02-29", "2072-02-29"]),
        ("*~1", "UTC", "2020-01-01", ["2020-01-31", "2020-02-29", "2020-03-31"]),
        ("*~1,8", "UTC", "2020-01-01", ["2020-01-24", "2020-01-31", "2020-02-22"]),
        ("*-*~1..2,4..5", "UTC", "2020-01-01", ["2020-01-27", "2020-01-28", "2020-01-30", "2020-01-31"]),
        ("*-*~1..5/2", "UTC", "2020-01-01", ["2020-01-27", "2020-01-29", "2020-01-31"]),
        ("*-*~3/2", "UTC", "2020-01-01", ["2020-01-29", "2020-01-31", "2020-02-27"]),
        ("Sun *~7/1", "UTC", "2020-01-01", ["2020-01-26", "2020-02-23", "2020-03-29"]),
        ("2019-01-01 UTC", "UTC", "2020-01-01", []),
        ("00:00", "UTC", "2020-01-01T01:00", ["2020-01-02"]),
        ("12:34 Europe/Riga", "UTC", "2020-01-01", ["2020-01-01T10:34", "2020-01-02T10:34"]),
        ("*-*-29 3:30", "Europe/Riga", "2020-01-01", ["2020-01-29T01:30", "2020-02-29T01:30", "2020-04-29T00:30"]),
        ("*-*-25 3:30", "Europe/Riga", "2020-10-01", ["2020-10-25T00:30", "2020-11-25T01:30", "2020-12-25T01:30"]),
    ],
)
def test_oncalendar_and_we_elapse_at(text, zone, after, expected):
    base, *instants = (datetime.fromisoformat(moment).replace(tzinfo=UTC) for moment in (after, *expected))

    assert instants == list(parse(text, zone).occurrences(base, limit=max(len(expected), 1)))


PLACES = ("{} *-*-* *:*:*", "{}-*-*", "*-{}-*", "*-*-{}", "*-*~{}", "{}:*:*", "*:{}:*", "*:*:{}")
WRONG = ("-1", "1000", "ABC", "1-1", "1:1", "Mon/1", "~1")


@pytest.mark.parametrize(
    "text",
    [
        # systemd
        *("test", " utc", "    ", "", "7", "121212:1:2", "2000-03-05.23 00:00:00", "2000-03-05 00:00.1:00"),
        *("00:00:00/0.00000001", "00:00:00.0..00.9", "2016~11-22", "*-*~5/5", "Monday.. 12:00", "Monday.."),
        *("-00:+00/-5", "00:+00/-5", "2016- 11- 24 12: 30: 00", "*~29", "*~16..31", "12..1/2-*", "20/4:00"),
        *("00:00/60", "00:00:2300", "00:00:18446744073709551615", "@88588582097858858", "*:4,30:*,5", "*:4,30:5,*"),
        # oncalendar
        *(place.format(wrong) for place in PLACES for wrong in WRONG),
        *("Mon *-*-* *:*:* surprise", "*-*-5..1", "*:1..1_0", "*:*/0", "1-32", "* 1-1", "1~29"),
        *("12:34 Europe/Surprise", "12:34 Europe/", "Europe/Riga", " Europe/Riga", "Europe/Riga "),
    ],
)
def test_what_systemd_or_oncalendar_refuses_is_refused(text):
    with pytest.raises(InvalidSchedule):
        parse(text)


# Where we differ from them, and why.


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2003-03-05 05:40", "2003-03-05T05:40:00"),  # bare, a date and a time are ISO 8601's: in a gap it is shifted
        ("2003-03-05", "2003-03-05T00:00:00"),
        ("calendar: 2003-03-05", "calendar: 2003-03-05 00:00:00"),
        ("2016-03-27 03:17:00/0.42", "2016-03-27 03:17:00/0.42"),  # systemd: 0.420000
        ("00:00:1.125..2.125", "*-*-* 00:00:01.125..02.125"),
        ("*:4,30:*\n", "*-*-* *:04,30:*"),  # systemd refuses space at the end of a line
    ],
)
def test_canonical_texts_that_differ_from_systemds(text, canonical):
    assert canonical == parse(text).text


@pytest.mark.parametrize("text", ["*:*/15", "*:*:*/5"])  # write *:0/15
def test_a_step_on_a_star_is_refused_as_systemd_does_and_oncalendar_does_not(text):
    with pytest.raises(InvalidSchedule, match=r"is not \*, a number, a range"):
        parse(text)


@pytest.mark.parametrize("text", ["*-04-31", "Wed-Sat,Tue 12-10-15 1:2:3", "Wed..Sat,Tue 12-10-15 1:2:3"])
def test_events_that_never_elapse_are_refused_here_and_accepted_by_systemd(text):
    with pytest.raises(InvalidSchedule, match="never"):
        parse(text)
