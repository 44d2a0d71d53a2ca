"""Cron in plain English."""

from __future__ import annotations

from ..field_words import Fields, fields_in_words


def describe_cron(text: str) -> str:
    """Return a canonical cron or crontab text in words."""
    always_both = text.startswith("crontab:")
    words = [word for word in text.removeprefix("crontab:").split() if not word.startswith("CRON_TZ=")]
    second = words.pop(0) if len(words) > 5 else "0"
    minute, hour, day, month, weekday, *year = words
    both = always_both or day.startswith("*") or weekday.startswith("*")
    return fields_in_words(Fields(second, minute, hour, day, month, weekday, year[0] if year else "*", both))
