"""Whether every occurrence was decided once, by the product's own records, and what is still to be decided."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from tests.harness import checker
from tests.harness.rows import jobs, sql


def decided(url: str, every: timedelta) -> Counter[checker.Occurrence]:
    """Count how often each occurrence of an interval was decided: as a job, or among those of one record."""
    count: Counter[checker.Occurrence] = Counter()
    for job in jobs(url):
        until = job["last_scheduled_for"] or job["scheduled_for"]
        covered = checker.grid(job["periodic_task"], job["scheduled_for"], every, until)
        assert len(covered) == job["occurrences"], f"a record that counts something else than it covers: {job}"
        count.update(covered)
    return count


def gaps(url: str, every: timedelta) -> list[checker.Occurrence]:
    """List the occurrences between the first and the last decided one of each row that were not decided."""
    instants = decided(url, every)
    return [
        occurrence
        for name in {name for name, _ in instants}
        for occurrence in checker.grid(
            name,
            min(instant for other, instant in instants if other == name),
            every,
            max(instant for other, instant in instants if other == name),
        )
        if occurrence not in instants
    ]


def left_from(url: str, instant: datetime) -> list[dict[str, Any]]:
    """List what was to be done at an instant, and still is."""
    return sql(
        url,
        """
        select name as what from pgbeat.periodic_task
        where problem is null and (
            enabled and next_run_at <= %(at)s
            or enabled and planned_revision <> revision and updated_at <= %(at)s
            or not enabled and paused_until <= %(at)s)
        union all
        select state || ' job of ' || periodic_task from pgbeat.active_job
        where state = 'pending' and created_at <= %(at)s or state = 'sent' and busy_until <= %(at)s
        """,
        at=instant,
    )
