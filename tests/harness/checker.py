"""The rules by which a test judges what ran: pure functions over records, each with a test that it finds the fault."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone

from tests.harness.probe import Run

Occurrence = tuple[str, datetime]  # a periodic task's name and the instant it was scheduled for

_NEVER = datetime.max.replace(tzinfo=timezone.utc)


def grid(name: str, first: datetime, every: timedelta, until: datetime) -> list[Occurrence]:
    """List the occurrences of an interval from the first on, the end included."""
    return [(name, first + number * every) for number in range((until - first) // every + 1)]


def lost(due: Iterable[Occurrence], runs: Iterable[Run]) -> list[Occurrence]:
    """List the occurrences that were due and never started."""
    started = {(run.periodic_task, run.scheduled_for) for run in runs}
    return sorted(occurrence for occurrence in set(due) if occurrence not in started)


def doubled(runs: Iterable[Run]) -> list[Occurrence]:
    """List the occurrences that started more than once. A retry is another attempt, not another start.

    Runs outside any schedule (no `scheduled_for`) are told apart by their job: `("", started_at)` of the second start.
    """
    seen: dict[tuple[object, ...], int] = defaultdict(int)
    found: set[Occurrence] = set()
    for run in sorted(runs, key=lambda run: run.started_at):
        occurrence = (run.periodic_task or "", run.scheduled_for or run.started_at)
        for key in ((run.job, run.attempt), (run.periodic_task, run.scheduled_for, run.attempt)):
            if run.scheduled_for is None and len(key) == 3:
                continue
            seen[key] += 1
            if seen[key] > 1:
                found.add(occurrence)
    return sorted(found)


def early(runs: Iterable[Run]) -> list[Run]:
    """List the runs that started before the instant they were scheduled for, by the same clock."""
    return [run for run in runs if run.scheduled_for is not None and run.started_at < run.scheduled_for]


def overlapping(runs: Iterable[Run], killed: Mapping[str, datetime] | None = None) -> list[tuple[Run, Run]]:
    """List the pairs of runs of one periodic task that ran at the same moment.

    Args:
        killed: when the process of a job that never finished was killed. Without it such a run counts as running still,
            so whatever starts after it overlaps.
    """
    ends = killed or {}

    def end(run: Run) -> datetime:
        return run.finished_at or ends.get(run.job, _NEVER)

    by_task: dict[str | None, list[Run]] = defaultdict(list)
    for run in runs:
        by_task[run.periodic_task].append(run)
    return [
        (first, second)
        for group in by_task.values()
        for first, second in itertools.combinations(sorted(group, key=lambda run: run.started_at), 2)
        if second.started_at < end(first)
    ]


def lateness(runs: Iterable[Run], percentiles: Sequence[float] = (50, 95, 99, 100)) -> dict[float, timedelta]:
    """Give the percentiles (nearest rank) of how long after its instant a run started."""
    late = sorted(run.started_at - run.scheduled_for for run in runs if run.scheduled_for is not None)
    assert late, "no run has a scheduled_for"
    return {each: late[max(0, math.ceil(each / 100 * len(late)) - 1)] for each in percentiles}
