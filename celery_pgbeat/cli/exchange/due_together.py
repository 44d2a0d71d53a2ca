"""`import`: new rows with equal intervals that are counted from one instant, so that all of them run at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from celery_pgbeat.cli.output.warning import warn

MANY = 100  # rows that are due together
OF_TIMES = ("schedule", "anchor", "start_at", "jitter")


def warn_of_due_together(added: Iterable[Mapping[str, tuple[Any, Any] | None]]) -> None:
    """Warn of many new rows that will be due together, by the columns of each; without an anchor they share one."""
    starts: Counter[tuple[Any, Any]] = Counter()
    for columns in added:
        schedule, anchor, start, jitter = ((columns.get(column) or (None, None))[1] for column in OF_TIMES)
        if str(schedule).startswith("every") and not jitter:
            starts[schedule, anchor or start] += 1
    for (schedule, _), count in starts.most_common():
        if count >= MANY:
            warn(
                f"{count:,} new rows are {schedule!r}, counted from one instant: each time all are due at once. Give "
                f"them a jitter, or an anchor each."
            )
