"""What is overdue, with the reasons; of very many only the first, without."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from celery_pgbeat.postgres.dashboard_queries import DashboardQueries

MANY = 1_000  # overdue runs: from here on the view, which sorts them all, would take too long for a page
UNTOLD = "too many runs are overdue to show the reason of each; the page of a task shows its reason"


def read_overdue(queries: DashboardQueries, runs: int, now: datetime, limit: int) -> Sequence[dict[str, Any]]:
    """Read what is overdue, the longest late first.

    Args:
        queries: the statements.
        runs: how many are overdue, counted up to `MANY`.
        now: the time.
        limit: the most rows to return.
    """
    if runs < MANY:
        return queries.overdue(limit)
    return [{**row, "late_by": now - row["due_at"], "reason": UNTOLD} for row in queries.latest_due(limit)]
