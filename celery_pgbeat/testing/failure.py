"""The text of a failed assertion: the difference first, then what is known that may explain it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from celery_pgbeat.api import Job, PeriodicTask
from celery_pgbeat.testing.instants import shown
from celery_pgbeat.testing.recorder import Refused, Sent

SHOWN = 8  # of each kind, in one message


def differ(wanted: Sequence[datetime], got: Sequence[datetime], zone: str | None) -> list[str]:
    """Return lines with what is missing and what is unexpected; none if the two have the same instants."""
    missing, unexpected = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    return [
        *_lines("missing", (shown(instant, zone) for instant in sorted(missing.elements()))),
        *_lines("unexpected", (shown(instant, zone) for instant in sorted(unexpected.elements()))),
    ]


def facts(
    now: datetime, row: PeriodicTask | None, sent: Sequence[Sent], skipped: Sequence[Job], refused: Sequence[Refused]
) -> list[str]:
    """Return lines with all that is known of one periodic task."""
    zone = None if row is None else row.timezone
    return [
        *_lines("sent", (_of_sent(one, zone) for one in sent)),
        *_lines("skipped", (_of_skipped(job, zone) for job in skipped)),
        *_lines("refused", (f"{type(one.error).__name__}: {one.error}" for one in refused)),
        *_lines("row", () if row is None else [_of_row(row)]),
        *_lines("clock", [shown(now, zone)]),
    ]


def _lines(kind: str, texts: Iterator[str] | Sequence[str]) -> list[str]:
    found = list(texts)
    rest = len(found) - SHOWN
    shown_ones = found if rest <= 0 else [*found[:SHOWN], f"and {rest} more"]
    return [f"  {kind if number == 0 else '':<11} {text}" for number, text in enumerate(shown_ones)]


def _of_sent(one: Sent, zone: str | None) -> str:
    late = "" if one.sent_at == one.scheduled_for else f", for {shown(one.scheduled_for, zone)}"
    return f"{shown(one.sent_at, zone)}{late}: {one.task} args={one.args} kwargs={one.kwargs} queue={one.queue!r}"


def _of_skipped(job: Job, zone: str | None) -> str:
    more = f" and {job.occurrences - 1} more" if job.occurrences > 1 else ""
    by = f", by job {job.blocked_by}" if job.blocked_by else ""
    return f"{shown(job.scheduled_for, zone)}{more}: {job.reason}{by}"


def _of_row(row: PeriodicTask) -> str:
    if row.problem is not None:
        return f"cannot be planned: {row.problem}"
    if not row.enabled:
        return f"is paused: {row.pause_reason or 'no reason given'}"
    if row.group_paused:
        return f"is in the group {row.group_name!r}, which is paused"
    if row.next_run_at is None:
        planned = row.planned_revision == row.revision
        return "is finished: it never runs again" if planned else "is not planned yet: no tick since it was declared"
    return f"{row.schedule} ({row.timezone}), next {shown(row.next_run_at, row.timezone)}"
