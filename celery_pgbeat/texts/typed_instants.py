"""Instants as people write them, at the shell and in the dashboard."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

FORMS = (
    "ISO 8601 (2026-12-24T18:00:00Z, 2026-12-24 18:00), a date (2026-12-24), now, today, yesterday, tomorrow, "
    "a duration from now (in 2d, in 90m) or a duration before now (2d ago, 1h30m ago)"
)
DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
AHEAD = re.compile(r"in\s+(.+)", re.IGNORECASE)
AGO = re.compile(r"(.+?)\s+ago", re.IGNORECASE)


def parse_instant(text: str, now: datetime, today: Callable[[], date], *, ahead: bool = False) -> datetime:
    """Read an instant as people write it.

    Args:
        text: ISO 8601, a date, `now`, `today`, `yesterday`, `tomorrow`, `2d`, `in 2d` or `2d ago`. A day means its
            first moment.
        now: aware; durations are counted from it.
        today: returns the day on the caller's calendar; called only for the three words that name a day.
        ahead: a bare duration such as `2d` lies in the future; otherwise in the past.

    Returns:
        An aware datetime; a naive one for a text without an offset, because only the caller knows the zone.

    Raises:
        ValueError: the text is none of these; the message lists the forms.

    Example:
        >>> from datetime import timezone
        >>> noon = datetime(2026, 12, 24, 12, tzinfo=timezone.utc)
        >>> parse_instant("90m ago", noon, noon.date).isoformat()
        '2026-12-24T10:30:00+00:00'
    """
    word = text.strip()
    if word.lower() == "now":
        return now
    if word.lower() in DAYS:
        return datetime.combine(today() + timedelta(days=DAYS[word.lower()]), datetime.min.time())
    try:
        return datetime.fromisoformat(word.replace("Z", "+00:00"))
    except ValueError:
        pass
    if match := AHEAD.fullmatch(word):
        word, ahead = match[1], True
    elif match := AGO.fullmatch(word):
        word, ahead = match[1], False
    return _away(now, text, word, 1 if ahead else -1)


def _away(now: datetime, text: str, duration: str, direction: int) -> datetime:
    from celery_pgbeat.schedules.durations import DurationError, read_spoken

    try:
        return now + direction * read_spoken(duration).elapsed
    except (DurationError, OverflowError):
        raise ValueError(f"{text!r} is not an instant: write {FORMS}") from None
