"""Texts of schedules that name a zone themselves, and texts that follow the zone of the row."""

from __future__ import annotations

NAMED = {
    "CRON_TZ=Asia/Tokyo 0 9 * * *": "Asia/Tokyo",
    "cron: TZ=Asia/Kathmandu 0 9 * * *": "Asia/Kathmandu",
    "CRON_TZ=Asia/Tokyo @daily": "Asia/Tokyo",
    "Mon..Fri 09:00 Europe/Berlin": "Europe/Berlin",
    "calendar: daily UTC": "UTC",
    "DTSTART;TZID=America/New_York:20260101T090000\nRRULE:FREQ=DAILY": "America/New_York",
}
FOLLOWING = [
    "0 9 * * *",
    "crontab: 0 9 * * *",
    "Mon 09:00",
    "PT1H",
    "P1D",
    "2026-12-09",
    "RRULE:FREQ=DAILY",
    "every 5m",
]
