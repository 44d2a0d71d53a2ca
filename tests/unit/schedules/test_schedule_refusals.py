"""What is no schedule: refused at once, naming the field, the value and the place."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse, parse_windows
from celery_pgbeat.schedules.interval.reader import NO_TIME_OF_DAY
from celery_pgbeat.schedules.parse import NOT_A_SCHEDULE, read

NO_FIELD = "a zone is no field: set timezone to {0!r}, or write CRON_TZ={0} in front"
REFUSALS = [
    # cron
    ("60 * * * *", "minute", "minute 60 is not in 0-59", 0),
    ("0 25 * * *", "hour", "hour 25 is not in 0-23", 2),
    ("0 0 32 * *", "day", "day 32 is not in 1-31", 4),
    ("0 0 0 * *", "day", "day 0 is not in 1-31", 4),
    ("0 0 * 13 *", "month", "month 13 is not in 1-12", 6),
    ("0 0 * * 8", "weekday", "weekday 8 is not in 0-7", 8),
    ("60 0 0 * * *", "second", "second 60 is not in 0-59", 0),
    ("0 0 0 * * * 1969", "year", "year 1969 is not in 1970-2199", 12),
    ("0 0 0 * * * 2030-2020", "year", "year 2030-2020 runs backwards", 12),
    ("0 1,2,24 * * *", "hour", "hour 24 is not in 0-23", 6),
    ("0 1-24 * * *", "hour", "hour 24 is not in 0-23", 4),
    ("*/0 * * * *", "minute", "a step of 0 in minute", 0),
    ("* 1-5/0 * * *", "hour", "a step of 0 in hour", 2),
    ("H/0 * * * *", "minute", "a step of 0 in minute", 0),
    ("H(9-3) * * * *", "minute", "minute H(9-3) is an empty range", 0),
    ("0 0 30 2 *", "day", "day 30 never occurs in month 2", 4),
    ("0 0 31 2,4,6 *", "day", "day 31 never occurs in month 2,4,6", 4),
    ("0 0 30,31 feb */2", "day", "day 30 never occurs in month 2", 4),
    ("0 0 31W 2 *", "day", "day 31W never occurs in month 2", 4),
    ("0 0 0 29 2 * 2027", "day", "day 29 never occurs in month 2 of 2027", 6),
    ("0 0 */30 2 mon#2", "day", "day */30 and weekday 1#2 never meet in month 2", 4),
    ("* * * *", "fields", "cron has 5, 6 or 7 fields, not 4", 0),
    ("* * * * * * * *", "fields", "cron has 5, 6 or 7 fields, not 8", 0),
    ("cron: 0 0", "fields", "cron has 5, 6 or 7 fields, not 2", 6),
    ("0 0 * foo *", "month", "month 'foo' is not a number, a name, a range, a list or a step", 6),
    ("0 x * * *", "hour", "hour 'x' is not a number, a range, a list or a step", 2),
    ("1,,2 * * * *", "minute", "minute '1,,2' has an empty element in its list", 2),
    ("0 0 1,15W * *", "day", "day '15W': W cannot stand in a list", 6),
    ("0 0 L-31 * *", "day", "day L-31 is not in L-0 to L-30", 4),
    ("0 0 * * mon#6", "weekday", "weekday #6 is not in #1-#5", 8),
    ("0 0 * * L", "weekday", "weekday 'L' is not a number, a name, a range, a list or a step", 8),
    (
        "0 0 12 ? * 2-6",
        "weekday",
        "weekday 2 beside '?' looks like Quartz, where 1 is Sunday: write names (MON-FRI) instead",
        11,
    ),
    (
        "@reboot",
        "nickname",
        "@reboot has no meaning here, beats come and go; use @hourly, or trigger the task",
        0,
    ),
    # intervals and ISO 8601
    ("every 0s", "interval", "an interval must be longer than 0", 6),  # N-14
    ("every -20s", "interval", "an interval must be longer than 0", 6),  # N-14
    ("PT0S", "interval", "an interval must be longer than 0", 0),
    ("-PT5M", "interval", "an interval must be longer than 0", 0),
    ("every 101 w w", "interval", "'w' is not a duration such as 30s, 5 minutes or 1h30m", 11),
    ("every 5 lightyears", "interval", "'lightyears' is not a unit of time: use ms, s, m, h, d or w", 8),
    (
        "every 2 months",
        "interval",
        "a month has no fixed length: write P1M or P1Y, which follow the calendar",
        8,
    ),
    ("every 900000h", "interval", "an interval must not be longer than 100 years", 6),
    ("P101Y", "interval", "an interval must not be longer than 100 years", 0),
    ("P0.5D", "interval", "a fraction may only stand in the last of hours, minutes and seconds, not '0.5'", 0),
    ("PT1.5H30M", "interval", "a fraction may only stand in the last of hours, minutes and seconds, not '1.5'", 0),
    ("P1DT", "interval", "'P1DT' is not an ISO 8601 duration such as PT5M or P1DT12H", 0),
    ("R0/PT1H", "repetitions", "R0 never occurs: to run once, write a plain date-time", 0),
    ("R/2026-12-07/2026-12-01/P1D", "end", "the end 2026-12-01T00:00:00 lies before the start", 0),
    ("R/PT1H/2026-12-01", "interval", "the last part must be a duration such as PT1H, not '2026-12-01'", 7),
    ("R/2026-13-01/PT1H", "month", "month 13 is not in 1-12", 7),
    ("2026-12-08T24:00:00", "hour", "hour 24 is not in 0-23", 11),
    ("2027-02-29", "day", "day 29 never occurs in month 2 of 2027", 8),
    # calendar events
    ("Mon *-*-* 88:00", "hour", "hour 88 is not in 0-23", 10),
    ("Fri..Mon 10:00", "weekday", "weekday fri..mon runs backwards: a week is Mon..Sun", 0),
    ("20/4:00", "hour", "hour 20/4: the step leads out of hour at once", 0),
    ("*-*~5/5", "day", "day 5/5: the step leads out of day at once", 4),
    ("*-*~29", "day", "day 29 is not in 1-28", 4),
    ("*:0/0", "minute", "a step of 0 in minute", 2),
    ("*-04-31", "day", "day 31 never occurs in month 4", 0),
    ("Mon 2026-12-08", "day", "day 08 is never a Mon in month 12 of 2026", 0),
    ("5..3:00", "hour", "hour 5..3 runs backwards", 0),
    ("*:*:0/0.001", "second", "a step under 0.01 s in second", 0),
    ("Mon Tue", "calendar", "'Tue' is not a weekday, a date, a time or a zone", 4),
    # recurrence rules
    ("RRULE:INTERVAL=2", "FREQ", "an RRULE needs FREQ=SECONDLY|MINUTELY|HOURLY|DAILY|WEEKLY|MONTHLY|YEARLY", 6),
    ("RRULE:FREQ=DAILY;BYHOUR=24", "BYHOUR", "BYHOUR 24 is not in 0-23", 17),
    ("RRULE:FREQ=DAILY;INTERVAL=0", "INTERVAL", "INTERVAL 0 is not in 1-1000000000", 17),
    ("RRULE:FREQ=DAILY;BYDAY=1MO", "BYDAY", "BYDAY with a number needs FREQ=MONTHLY or FREQ=YEARLY", 6),
    ("RRULE:FREQ=DAILY;COUNT=1;UNTIL=20261207", "COUNT", "COUNT and UNTIL exclude each other", 6),
    ("RRULE:FREQ=DAILY;BYEASTER=1", "BYEASTER", "'BYEASTER' is not a part of an RRULE", 17),
    ("RRULE:FREQ=DAILY;FREQ=DAILY", "FREQ", "FREQ is given twice", 17),
    ("RRULE:FREQ=DAILY;", "RRULE", "'' is not a part of an RRULE", 17),
    (
        "DTSTART:20260101T000000 RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "RRULE",
        "this rule has no occurrence within 100 years of its start",
        0,
    ),
    # none at all
    ("", "schedule", NOT_A_SCHEDULE, 0),
    ("foo", "schedule", NOT_A_SCHEDULE, 0),
    ("5 minutes", "schedule", "not a schedule: did you mean 'every 5 minutes'?", 0),
    (
        "rate(5 minutes)",
        "schedule",
        "not a schedule: rate(...) is Amazon's notation; write every 5m",
        0,
    ),
    (
        "cron(0 13 * * ? *)",
        "schedule",
        "not a schedule: cron(...) is Amazon's notation; write its fields without the year, and weekdays by name: "
        "0 13 * * MON-FRI",
        0,
    ),
    (
        "at(2026-12-09T09:00:00)",
        "schedule",
        "not a schedule: at(...) is Amazon's notation; write the time alone: 2026-12-09T09:00",
        0,
    ),
    *(
        (text, "interval", NO_TIME_OF_DAY, 6)
        for text in ("every day at 3am", "every hour at minute 12", "every Monday", "every 2 weeks on friday")
    ),
    *(
        (f"{fields} {zone}", "timezone", NO_FIELD.format(zone), at)
        for fields, zone, at in (
            ("0 0 * * *", "America/New_York", 10),
            ("0 0 0 * * *", "Europe/Berlin", 12),
            ("0 0 * * *", "UTC", 10),
            ("0 0 * * *", "Etc/GMT-3", 10),
        )
    ),
    ("0 0 ٣ * *", "schedule", "'٣' is not an ASCII character", 4),
    ("0 0 * * *\0", "schedule", "'\\x00' is not a printable character", 9),
]


@pytest.mark.parametrize(("text", "field", "reason", "position"), REFUSALS, ids=[each[0] for each in REFUSALS])
def test_a_wrong_text_is_refused_naming_field_value_and_place(text, field, reason, position):
    with pytest.raises(InvalidSchedule) as refused:
        parse(text)

    assert (field, reason, position) == (refused.value.field, refused.value.reason, refused.value.position)
    assert text == refused.value.text


def test_the_message_shows_the_text_and_the_reason():
    with pytest.raises(ValueError, match=r"^'0 25 \* \* \*': hour 25 is not in 0-23$"):
        parse("0 25 * * *")


@pytest.mark.parametrize(
    ("text", "timezone", "named"),
    [
        ("0 0 * * *", "Mars/Olympus", "Mars/Olympus"),
        ("every 5m", "Mars/Olympus", "Mars/Olympus"),
        ("2026-12-09", "", ""),
        ("CRON_TZ=Mars/Olympus 0 0 * * *", "UTC", "Mars/Olympus"),
        ("daily Mars", "UTC", "Mars"),
        ("DTSTART;TZID=Mars:20261207T090000 RRULE:FREQ=DAILY", "UTC", "Mars"),
    ],
)
def test_an_unknown_zone_is_refused_by_its_own_name(text, timezone, named):
    with pytest.raises(InvalidSchedule, match=f"^'{named}': there is no time zone of that name; "):
        parse(text, timezone)


def test_an_unknown_dst_rule_is_refused():
    with pytest.raises(InvalidSchedule, match="dst 'never' is not one of default, skip, once, all"):
        parse("0 0 * * *", dst="never")


def test_a_text_may_have_250_characters_and_a_recurrence_set_4000():
    field = ",".join(["59"] * 80)  # 239 characters
    assert parse(f"{field} * * * *").text.startswith("59,59")
    with pytest.raises(InvalidSchedule, match="longer than 250 characters"):
        parse(f"{field},1,2 * * * *     ")
    dates = ",".join(f"2026{month:02}{day:02}T090000" for month in range(1, 13) for day in range(1, 20))
    assert parse(f"RDATE:{dates}").kind == "rrule"
    with pytest.raises(InvalidSchedule, match="longer than 4,000 characters"):
        parse(f"RDATE:{dates},{dates}")


alphabet = st.characters(min_codepoint=32, max_codepoint=126)
grammar = st.lists(
    st.sampled_from(
        (
            *(
                "*",
                "/",
                "-",
                "..",
                ",",
                "L",
                "W",
                "#",
                "?",
                "H",
                " ",
                " ",
                " ",
                "~",
                ":",
                "T",
                "Z",
                "P",
                "R",
                "R/",
                "@",
            ),
            *("0", "1", "5", "31", "99", "2026-12-07", "PT1S", "every ", "CRON_TZ=UTC ", "mon", "jan", "cron:", "iso:"),
            *("RRULE:", "FREQ=SECONDLY", ";", "BYDAY=", "COUNT=", "=", "1MO", "DTSTART:", "20260101T000000", "\n"),
        )
    ),
    max_size=40,
).map("".join)
random_texts = st.one_of(st.text(max_size=250), st.text(alphabet, max_size=250), grammar)


@settings(max_examples=300, deadline=None, database=None)
@given(random_texts)
def test_any_text_is_read_or_refused_within_50_ms(text):
    # Processor time, and a second attempt if one takes long: the machine may be busy with something else.
    assert any(_seconds_to_read(text) < 0.05 for _ in range(2))


@settings(max_examples=200, deadline=None, database=None)
@given(random_texts)
def test_any_window_is_read_or_refused(text):
    with suppress(InvalidSchedule):
        parse_windows(f"{text} PT1H", "UTC")


@settings(max_examples=300, deadline=None, database=None)
@given(random_texts)
def test_a_refusal_points_into_the_text(text):
    refused = None
    try:
        parse(text)
    except InvalidSchedule as error:
        refused = error

    assert refused is None or (refused.field and refused.reason)
    assert refused is None or refused.position is None or 0 <= refused.position <= len(refused.text)


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        *(
            ("0 0 30 2 *", "UTC"),
            ("0 0 31 2,4,6,9,11 *", "UTC"),
            ("crontab: 0 0 29 2 mon#1", "UTC"),
            ("*-04-31", "UTC"),
        ),
        *(("*/0 * * * *", "UTC"), ("*:0/0", "UTC"), ("every 0s", "UTC"), ("0 0 * * *", "Mars/Olympus")),
        *(("daily Mars/Olympus", "UTC"), ("CRON_TZ=Mars 0 0 * * *", "UTC"), ("1," * 200 + "1 * * * *", "UTC")),
        *(("*/1," * 60 + "60 * * * *", "UTC"), ("(" * 250, "UTC"), ("9" * 250, "UTC"), ("every " + "9" * 240, "UTC")),
        *(("P" + "9" * 240 + "D", "UTC"), ("*:*:" + "9" * 240, "UTC"), ("R" + "9" * 230 + "/PT0S", "UTC")),
        *(("L" * 250, "UTC"), ("1##" * 80 + " * * * *", "UTC"), ("-" * 250, "UTC"), ("Mon," * 60 + "Fri..Mon", "UTC")),
    ],
    ids=lambda each: each[:30],
)
def test_impossible_and_senseless_texts_are_refused_within_a_millisecond(text, zone):
    with pytest.raises(InvalidSchedule):
        parse(text, zone)

    assert min(_seconds_to_read(text, zone) for _ in range(5)) < 0.001


def _seconds_to_read(text: str, zone: str = "UTC") -> float:
    begun = time.process_time()
    with suppress(InvalidSchedule):
        read(text, zone)  # not from the cache
    return time.process_time() - begun
