"""Which occurrences of a range a backfill submits: those of the current schedule, by their history.

Jitter and blackout windows do not apply: a backfill is for the occurrences of the range, as `trigger()` is for now. A
step visits the occurrences in the history that it is given and those that it submits; all others are only counted.

The invariant: each occurrence of the range is decided once, in order; up to `reached` all of them are decided.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args

from celery_pgbeat.choices import BackfillMode

from .cached_schedule import cached_schedule_of
from .due_times import DueTimes
from .identity import backfill_job_id
from .types import MICROSECOND, PlanningRow, Rules

MODES = get_args(BackfillMode)
COUNTED_BY_THE_DAY = timedelta(days=3_660)  # of solar events, at 0.1 ms a day: a beat does not wait for more of them


@dataclass(slots=True)
class BackfillRow(PlanningRow):
    """A marked backfill and its row: the columns of `mark_backfill.sql` are these, in this order.

    If the row was deleted, `is_there` is False and only the name is set.
    """

    task: str
    args: str
    kwargs: str
    queue: str | None
    priority: int | None
    options: str
    sensitive: bool
    max_run_time: timedelta | None
    undecided_from: datetime | None  # occurrences from here on are decided as due rows; None: there are none
    is_there: bool
    backfill: uuid.UUID
    since: datetime
    until: datetime
    mode: str
    reached: datetime | None
    next_at: datetime | None  # the next occurrence by the schedule at the last step
    total: int | None
    decided: int  # occurrences so far
    room: int  # jobs that it may submit now
    marked_at: datetime
    tracking: str


@dataclass(frozen=True, slots=True)
class History:
    """The occurrences that have had a job, in order, each with whether it has failed.

    Attributes:
        failed: occurrence -> whether it has had only failures, of any kind, and none of its jobs is unfinished.
        until: the history is complete up to here; None: to the end of the range.
    """

    failed: Mapping[datetime, bool]
    until: datetime | None = None


NOTHING = History({})


@dataclass(frozen=True, slots=True)
class BackfillStep:
    """The decision about the next occurrences of a backfill.

    Attributes:
        jobs: the occurrences that are submitted, in order.
        reached: up to here all occurrences are decided.
        skipped: how many occurrences need no job.
        next_at: the next occurrence to be decided; None: there is none.
    """

    jobs: tuple[datetime, ...]
    reached: datetime
    skipped: int
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class BackfillRange:
    """The occurrences of one row within a range, and which of them a mode wants."""

    due_times: DueTimes
    mode: str

    @property
    def begin(self) -> datetime:
        """The instant after which its occurrences are."""
        return self.due_times.counts_after

    @property
    def end(self) -> datetime:
        """The instant up to which they are, inclusive."""
        assert self.due_times.end_at is not None
        return self.due_times.end_at

    @property
    def asks_history(self) -> bool:
        """Whether the mode depends on which occurrences have had a job."""
        return self.mode != "all"

    def count(self) -> int:
        """Return how many occurrences there are."""
        return self.due_times.count(self.begin, self.end)

    def total(self, row: BackfillRow, step: BackfillStep) -> int:
        """Return how many occurrences there are: those decided, by the schedule at that time, and those left.

        A step does not count again, because some schedules are slow to count. After an edit of the schedule it does: at
        once if the next occurrence has changed, else in the last step.
        """
        decided = row.decided + len(step.jobs) + step.skipped
        if step.next_at is None:
            return decided
        if row.total is None or row.next_at != self.due_times.following(self._after(row.reached)):
            return decided + self._left(step.reached)
        return row.total

    def _left(self, reached: datetime) -> int:
        """Return how many occurrences are later than that; for solar events over many years, how many days are."""
        schedule = self.due_times.schedule
        walks = schedule is not None and schedule.kind_info.counts_by_walking
        if walks and self.end - reached > COUNTED_BY_THE_DAY:
            return (self.end - reached).days  # an estimate: solar events, at most one a day
        return self.due_times.count(reached, self.end)

    def step(
        self, reached: datetime | None, history: History, room: int, undecided_from: datetime | None
    ) -> BackfillStep:
        """Decide about the next occurrences, until the room is used up or the history ends.

        Args:
            reached: up to where all occurrences are decided; None at the beginning.
            history: of the occurrences after that.
            room: how many may be submitted.
            undecided_from: occurrences from here on are not decided yet.
        """
        after = self._after(reached)
        known = [self.end, history.until, undecided_from and undecided_from - MICROSECOND]
        end = min(instant for instant in known if instant is not None)
        jobs: list[datetime] = []
        skipped = 0
        for wanted in self._wanted(after, end, history):
            if between := self.due_times.count(after, wanted - MICROSECOND):
                skipped += between
                after = wanted - MICROSECOND
            if len(jobs) == room:
                break
            jobs.append(wanted)
            after = wanted
        else:
            skipped += self.due_times.count(after, end)
            after = max(after, end)
        return BackfillStep(tuple(jobs), after, skipped, self.due_times.following(after))

    def count_wanted(self, after: datetime, history: History, until: datetime) -> int:
        """Return how many of the occurrences in (after, until] are submitted, given a history that is complete."""
        if not self.asks_history:
            return self.due_times.count(after, until)
        ran = [failed for instant, failed in history.failed.items() if after < instant <= until and self._has(instant)]
        return sum(ran) if self.mode == "failed" else self.due_times.count(after, until) - len(ran)

    def job_id(self, backfill: uuid.UUID, occurrence: datetime) -> uuid.UUID:
        """Return the id of an occurrence's job in a backfill."""
        return backfill_job_id(self.due_times.name, backfill, occurrence)

    def _wanted(self, after: datetime, end: datetime, history: History) -> Iterator[datetime]:
        """Iterate over the occurrences in (after, end] that are submitted."""
        if self.mode == "failed":
            yield from (
                instant
                for instant, failed in history.failed.items()
                if failed and after < instant <= end and self._has(instant)
            )
            return
        found = self.due_times.following(after)
        while found is not None and found <= end:
            if self.mode == "all" or found not in history.failed:
                yield found
            found = self.due_times.following(found)

    def _has(self, instant: datetime) -> bool:
        """Return whether an instant is an occurrence of the range."""
        return self.due_times.following(instant - MICROSECOND) == instant

    def _after(self, reached: datetime | None) -> datetime:
        return self.begin if reached is None else max(reached, self.begin)


def range_of(row: PlanningRow, since: datetime, until: datetime, mode: str, rules: Rules) -> BackfillRange:
    """Return the occurrences of a row from one instant to another, both inclusive, within the row's own bounds.

    Raises:
        InvalidSchedule: the text is wrong, or the schedule is faster than `pgbeat_min_interval`.
    """
    first = since if row.start_at is None else max(since, row.start_at)
    last = until if row.end_at is None else min(until, row.end_at)
    return BackfillRange(
        DueTimes(row.name, cached_schedule_of(row, rules), first - MICROSECOND, last, None, None, False), mode
    )
