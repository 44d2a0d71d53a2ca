"""Varied entries, for each scheduler that takes Celery's crontab, intervals and solar events."""

from __future__ import annotations

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC")

# minute, hour, day of month, month, day of week
CRONTABS = (
    ("0", "3", "*", "*", "*"),
    ("*/30", "*", "*", "*", "*"),
    ("30", "2", "*", "*", "*"),
    ("15", "9-17", "*", "*", "mon-fri"),
    ("0", "0", "20-31", "*", "1"),
    ("0", "12", "*/2", "*", "0,3,6"),
    ("0", "*/4", "*", "*", "*"),
    ("5,35", "1", "*", "*", "*"),
    ("59", "23", "*", "3,10", "*"),
    ("0", "6", "*", "*", "sunday"),
)
INTERVALS = ((20, "minutes"), (35, "minutes"), (1, "hours"), (9, "hours"), (1, "days"), (2, "days"))
EACH_SECOND = tuple(f"each second {number:02}" for number in range(50))  # entries of a cut-over under load
