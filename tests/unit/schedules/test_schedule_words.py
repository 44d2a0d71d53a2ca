"""Schedules in plain English."""

from __future__ import annotations

import pytest

from celery_pgbeat.schedules import parse


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("30 * * * *", "at minute 30 of every hour"),
        ("0 */2 * * *", "at minute 0 of every 2 hours"),
        ("15,45 9-17 * * *", "at minute 15 and 45 of hour 9 to 17"),
        ("0 9 * * 1-5", "at 09:00 on Monday to Friday"),
        ("0 9,13 * * *", "at 09:00 and 13:00"),
        ("30 2 1 * *", "at 02:30 on day 1 of the month"),
        ("0 9 1 * 1", "at 09:00 on day 1 of the month or on Monday"),
        ("crontab: 0 0 1-7 * mon", "at 00:00 on day 1 to 7 of the month if that is Monday"),
        ("0 0 29 feb *", "at 00:00 on day 29 of the month in February"),
        ("0 0 * * 5L", "at 00:00 on the last Friday of the month"),
        ("0 0 LW * *", "at 00:00 on the last workday of the month"),
        (
            "0 0 15W * mon#2",
            "at 00:00 on the workday nearest to day 15 of the month or on the second Monday of the month",
        ),
        ("0 0 0 1 1 * 2030-2032", "at 00:00 on day 1 of the month in January in 2030 to 2032"),
        ("Mon..Fri *-*-* 09:00", "at 09:00 on Monday to Friday"),
        ("*-*~1", "at 00:00 on the last day of the month"),
        ("Mon *-05~07/1", "at 00:00 on every day from the 7th last day of the month if that is Monday in May"),
        ("*-*-* 9..22:0/10", "every 10 minutes of hour 9 to 22"),
        ("*:*:0/0.25", "every 0.25 seconds"),
        ("every 1h30m", "every 1 hour and 30 minutes"),
        ("every 1m", "every minute"),
        ("P1DT12H", "every 1 day and 12 hours"),
        ("R5/2026-12-07/PT0.5S", "every 0.5 seconds from 2026-12-07 00:00:00, 5 times"),
        (
            "R1/2026-12-07T12:00Z/2027-01-01/P1M",
            "every month from 2026-12-07 12:00:00 UTC until 2027-01-01 00:00:00, once",
        ),
        ("2026-12-07", "once at 2026-12-07 00:00:00"),
        ("RRULE:FREQ=MONTHLY;BYDAY=-1FR", "every month on the last Friday"),
        (
            "DTSTART:20260101T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;COUNT=5 EXDATE:20260107T090000",
            "every 2 weeks on Monday and Wednesday, 5 times, from 2026-01-01 09:00:00, except at 2026-01-07 09:00:00",
        ),
        ("RRULE:FREQ=YEARLY;BYMONTH=1;UNTIL=20300101", "every year in January, until 2030-01-01"),
    ],
)
def test_a_schedule_reads(text, words):
    assert words == parse(text).describe()


def test_a_zone_other_than_utc_is_named():
    assert parse("0 9 * * *", "Europe/Berlin").describe() == "at 09:00 (Europe/Berlin)"
