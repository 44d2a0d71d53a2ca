"""Which occurrences of a range a backfill submits: nominal instants of the schedule as it stands, by their history.

Jitter and blackout windows are not asked: who fills a range means its occurrences, as `trigger` means now. Nothing
walks through what there is nothing to do about: a step looks at as many occurrences as the history that it was given
has, and at those that it submits.

The invariant: each occurrence of the range is decided once, in order; up to `reached` all of them are.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from .cached_schedule import cached_schedule_of
from .due_times import DueTimes
from .identity import backfill_job_id
from .types import MICROSECOND, PlanningRow, Rules

MODES = ("missing", "failed", "all")
COUNTED_BY_THE_DAY = timedelta(days=3_660)  # of solar events, at 0.1 ms a day: a beat does not wait for more of them


@dataclass(slots=True)
class BackfillRow(PlanningRow):
    """A marked backfill and its row: the columns of `mark_backfill.sql` are these, in this order.

    Of a row that is gone there is nothing but the name; `is_there` says so.
    """

    task: str
    args: str
    kwargs: str
    queue: str | None
    priority: int | None
    options: str
    sensitive: bool
    max_run_time: timedelta | None
    undecided_from: datetime | None  # from here on the ordinary way decides; None: nothing is left to it
    is_there: bool
    backfill: uuid.UUID
    since: datetime
    until: datetime
    mode: str
    reached: datetime | None
    next_at: datetime | None  # the next occurrence, as the schedule was when the last step was made
    total: int | None
    decided: int  # occurrences so far
    room: int  # jobs that it may submit now
    marked_at: datetime


@dataclass(frozen=True, slots=True)
class History:
    """The occurrences that have had a job, in order, each with whether it has failed.

    Attributes:
        failed: only failures, of whatever kind, and none under way.
        until: up to here it is complete; None: to the end of the range.
    """

    failed: Mapping[datetime, bool]
    until: datetime | None = None


NOTHING = History({})


@dataclass(frozen=True, slots=True)
class BackfillStep:
    """What becomes of the next occurrences of a backfill.

    Attributes:
        jobs: the occurrences that go out, in order.
        reached: up to here all is decided.
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

    line: DueTimes
    mode: str

    @property
    def begin(self) -> datetime:
        """The instant after which its occurrences lie."""
        return self.line.counts_after

    @property
    def end(self) -> datetime:
        """The instant up to which they lie."""
        assert self.line.end_at is not None
        return self.line.end_at

    @property
    def asks_history(self) -> bool:
        """Whether it matters what has had a job."""
        return self.mode != "all"

    def count(self) -> int:
        """Return how many occurrences there are."""
        return self.line.count(self.begin, self.end)

    def total(self, filling: BackfillRow, step: BackfillStep) -> int:
        """Return how many occurrences there are: those decided, by the schedule as it was then, and those left.

        They are not counted anew in each step, for some schedules are slow to count. After an edit they are: at once
        where the next occurrence has become another one, and in the last step wherever an edit was.
        """
        decided = filling.decided + len(step.jobs) + step.skipped
        if step.next_at is None:
            return decided
        if filling.total is None or filling.next_at != self.line.following(self._after(filling.reached)):
            return decided + self._left(step.reached)
        return filling.total

    def _left(self, reached: datetime) -> int:
        """Return how many occurrences there are later than that; of the sun's over many years, how many days."""
        schedule = self.line.schedule
        walks = schedule is not None and schedule.kind_info.counts_by_walking
        if walks and self.end - reached > COUNTED_BY_THE_DAY:
            return (self.end - reached).days  # an estimate: solar events, at most one a day
        return self.line.count(reached, self.end)

    def step(
        self, reached: datetime | None, history: History, room: int, undecided_from: datetime | None
    ) -> BackfillStep:
        """Decide about the next occurrences, until the room is used up or nothing more is known.

        Args:
            reached: up to where all is decided; None at the beginning.
            history: of the occurrences after that.
            room: how many may go out.
            undecided_from: what lies there or later is left alone for now.
        """
        after = self._after(reached)
        known = [self.end, history.until, undecided_from and undecided_from - MICROSECOND]
        end = min(instant for instant in known if instant is not None)
        jobs: list[datetime] = []
        skipped = 0
        for wanted in self._wanted(after, end, history):
            if between := self.line.count(after, wanted - MICROSECOND):
                skipped += between
                after = wanted - MICROSECOND
            if len(jobs) == room:
                break
            jobs.append(wanted)
            after = wanted
        else:
            skipped += self.line.count(after, end)
            after = max(after, end)
        return BackfillStep(tuple(jobs), after, skipped, self.line.following(after))

    def count_wanted(self, after: datetime, history: History, until: datetime) -> int:
        """Return how many of the occurrences in (after, until] go out; the history has to know of all of them."""
        if not self.asks_history:
            return self.line.count(after, until)
        ran = [failed for instant, failed in history.failed.items() if after < instant <= until and self._has(instant)]
        return sum(ran) if self.mode == "failed" else self.line.count(after, until) - len(ran)

    def job_id(self, backfill: uuid.UUID, occurrence: datetime) -> uuid.UUID:
        """Return the id of an occurrence's job: the same for one backfill whoever asks, another one for the next."""
        return backfill_job_id(self.line.name, backfill, occurrence)

    def _wanted(self, after: datetime, end: datetime, history: History) -> Iterator[datetime]:
        """Iterate over the occurrences in (after, end] that go out."""
        if self.mode == "failed":
            yield from (
                instant
                for instant, failed in history.failed.items()
                if failed and after < instant <= end and self._has(instant)
            )
            return
        found = self.line.following(after)
        while found is not None and found <= end:
            if self.mode == "all" or found not in history.failed:
                yield found
            found = self.line.following(found)

    def _has(self, instant: datetime) -> bool:
        """Tell whether an instant is an occurrence of the range."""
        return self.line.following(instant - MICROSECOND) == instant

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
