"""The rules by which a test judges what ran: pure functions over records, each with a test that it finds the fault."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Protocol, TypeVar

from tests.harness.probe import Run

Occurrence = tuple[str, datetime]  # a periodic task's name and the instant it was scheduled for

_NEVER = datetime.max.replace(tzinfo=timezone.utc)


class Seen(Protocol):
    """A sign of one occurrence: a run of its task (`probe.Run`), or its message at the broker (`tap.Arrival`)."""

    @property
    def job(self) -> str:
        """The task id."""

    @property
    def periodic_task(self) -> str | None:
        """The row's name."""

    @property
    def scheduled_for(self) -> datetime | None:
        """The instant that it was for."""

    @property
    def attempt(self) -> int:
        """Celery's count of retries."""

    @property
    def seen_at(self) -> datetime:
        """When it was seen."""


AnySeen = TypeVar("AnySeen", bound=Seen)


def grid(name: str, first: datetime, every: timedelta, until: datetime) -> list[Occurrence]:
    """List the occurrences of an interval from the first on, the end included."""
    return [(name, first + number * every) for number in range((until - first) // every + 1)]


def lost(due: Iterable[Occurrence], seen: Iterable[Seen]) -> list[Occurrence]:
    """List the occurrences that were due and never seen."""
    found = {(each.periodic_task, each.scheduled_for) for each in seen}
    return sorted(occurrence for occurrence in set(due) if occurrence not in found)


def doubled(seen: Iterable[Seen]) -> list[Occurrence]:
    """List the occurrences that were seen more than once. A retry is another attempt, not another start.

    A run outside any schedule (no `scheduled_for`) is identified by its job: `("", seen_at)` of the second time.
    """
    times: dict[tuple[object, ...], int] = defaultdict(int)
    found: set[Occurrence] = set()
    for each in sorted(seen, key=lambda each: each.seen_at):
        occurrence = (each.periodic_task or "", each.scheduled_for or each.seen_at)
        for key in ((each.job, each.attempt), (each.periodic_task, each.scheduled_for, each.attempt)):
            if each.scheduled_for is None and len(key) == 3:
                continue
            times[key] += 1
            if times[key] > 1:
                found.add(occurrence)
    return sorted(found)


def early(seen: Iterable[AnySeen]) -> list[AnySeen]:
    """List what was seen before the instant it was scheduled for, by the same clock."""
    return [each for each in seen if each.scheduled_for is not None and each.seen_at < each.scheduled_for]


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


def most_at_once(runs: Iterable[Run]) -> int:
    """Return how many ran at the same moment, at most."""
    steps = [(run.started_at, 1) for run in runs]
    steps += [(run.finished_at, -1) for run in runs if run.finished_at is not None]
    running = most = 0
    for _, step in sorted(steps):
        running += step
        most = max(most, running)
    return most


def out_of_order(runs: Iterable[Run]) -> list[tuple[Run, Run]]:
    """List the runs that began after one of a later occurrence had begun, each with that one."""
    found: list[tuple[Run, Run]] = []
    latest: Run | None = None
    for run in sorted(runs, key=lambda run: run.started_at):
        if run.scheduled_for is None:
            continue
        if latest is not None and latest.scheduled_for is not None and run.scheduled_for < latest.scheduled_for:
            found.append((run, latest))
        else:
            latest = run
    return found


def lateness(seen: Iterable[Seen], percentiles: Sequence[float] = (50, 95, 99, 100)) -> dict[float, timedelta]:
    """Give the percentiles (nearest rank) of how long after its instant each was seen."""
    late = sorted(each.seen_at - each.scheduled_for for each in seen if each.scheduled_for is not None)
    assert late, "no run has a scheduled_for"
    return {each: late[max(0, math.ceil(each / 100 * len(late)) - 1)] for each in percentiles}
