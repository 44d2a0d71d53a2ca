"""Cron texts that croniter reads otherwise: a row that comes from another scheduler may run at other instants here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone

from celery_pgbeat.cli.doctor.finding import NOTE, Finding
from celery_pgbeat.cli.output import number
from celery_pgbeat.cli.times import instant
from celery_pgbeat.croniter_comparison import Difference, compare_with_croniter
from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.api_queries import Row

MOST_ROWS = 1000  # rows that are read, in name order
TIME_LIMIT = 5.0  # seconds after which no further row is compared


def compared_with_croniter(operators: AdminQueries, now: datetime | None = None) -> Iterator[Finding]:
    """Compare the cron rows with croniter; rows that differ for the same cause are one finding.

    Not where only `H` differs: with it the author leaves the minute to the scheduler.
    """
    begin = (now or datetime.now(timezone.utc)).replace(microsecond=0)
    rows = [row for row in operators.page_of_open_tasks(limit=MOST_ROWS) if row["schedule"] is not None]
    ends_at = time.monotonic() + TIME_LIMIT
    found: dict[str, list[tuple[Row, Difference]]] = {}
    compared: dict[tuple[str, ...], Difference | None] = {}  # many rows share a text
    for row in rows:
        text = row["schedule"]
        key = (text, row["timezone"] or "UTC", row["dst"], row["name"] if "H" in text else "")
        if key not in compared:
            if time.monotonic() > ends_at:
                break
            compared[key] = _compare(key, begin)
        if (difference := compared[key]) is not None and difference.cause != "hash":
            found.setdefault(difference.cause, []).append((row, difference))
    for differing in found.values():
        row, difference = differing[0]
        yield Finding(
            NOTE,
            f"croniter would run {number(len(differing), 'row')} at other instants, the first is {row['name']!r} "
            f"({row['schedule']}){_instants(difference)}: {difference.reason}.",
            "Nothing to do for rows that were written for celery-pgbeat. A text from Airflow, or from another "
            "scheduler that uses croniter, may need a change: celery-pgbeat validate TEXT",
        )


def _compare(key: tuple[str, ...], begin: datetime) -> Difference | None:
    text, zone, dst, name = key
    try:
        return compare_with_croniter(text, zone, begin, name=name, dst=dst)
    except InvalidSchedule:  # a beat has written that into the row's `problem`
        return None


def _instants(difference: Difference) -> str:
    if not difference.readable:
        return ", which it cannot read"
    return f", {instant(difference.theirs)} instead of {instant(difference.ours)}"
