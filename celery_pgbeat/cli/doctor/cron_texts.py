"""Cron texts that croniter reads otherwise: a row that comes from another scheduler may run at other instants here."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import datetime, timezone

from celery_pgbeat.cli.doctor.finding import NOTE, Finding
from celery_pgbeat.cli.output.times import instant
from celery_pgbeat.cli.output.values import number
from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.api_queries import Row
from celery_pgbeat.schedules.cron.croniter_comparison import Difference, compare_with_croniter

MOST_ROWS = 1000  # rows that are read, in name order
TIME_LIMIT = 5.0  # seconds after which no further row is compared
HASHED = re.compile(r"(?:^|[\s,:])H")  # no name of a month or weekday begins with it
WAY_OUT = (
    "Nothing to do for rows that were written for celery-pgbeat. A text from Airflow, or from another scheduler that "
    "uses croniter, may need a change: see celery-pgbeat validate TEXT; docs/schedule-reference.md has the reasons."
)


def compared_with_croniter(operators: AdminQueries, now: datetime | None = None) -> Iterator[Finding]:
    """Compare the cron rows with croniter: one finding of those that differ, and one of those that it cannot read.

    Rows with `H` are left out: with it the author leaves the minute to the scheduler.
    """
    begin = (now or datetime.now(timezone.utc)).replace(microsecond=0)
    ends_at = time.monotonic() + TIME_LIMIT
    found: list[tuple[Row, Difference]] = []
    compared: dict[tuple[str, ...], Difference | None] = {}  # many rows share a text
    for row in operators.page_of_open_tasks(limit=MOST_ROWS):
        text = row["schedule"]
        if text is None or HASHED.search(text):
            continue
        key = (text, row["timezone"] or "UTC", row["dst"])
        if key not in compared:
            if time.monotonic() > ends_at:
                break
            compared[key] = _compare(*key, begin)
        if (difference := compared[key]) is not None:
            found.append((row, difference))
    if differing := [(row, difference) for row, difference in found if difference.error is None]:
        row, difference = min(differing, key=lambda each: _begins(each[1]))
        yield Finding(
            NOTE,
            f"croniter would run {number(len(differing), 'row')} at other instants, the first is {_shown(row)}, "
            f"{instant(difference.theirs)} instead of {instant(difference.ours)}.",
            WAY_OUT,
        )
    if unreadable := [(row, difference) for row, difference in found if difference.error is not None]:
        row, difference = unreadable[0]
        yield Finding(
            NOTE,
            f"croniter cannot read {number(len(unreadable), 'row')}, the first is {_shown(row)}: {difference.error}.",
            WAY_OUT,
        )


def _compare(text: str, zone: str, dst: str, begin: datetime) -> Difference | None:
    try:
        return compare_with_croniter(text, zone, begin, dst=dst)
    except InvalidSchedule:  # a beat has written that into the row's `problem`
        return None


def _begins(difference: Difference) -> datetime:
    return min(at for at in (difference.ours, difference.theirs) if at is not None)


def _shown(row: Row) -> str:
    return f"{row['name']!r} ({row['schedule']})"
