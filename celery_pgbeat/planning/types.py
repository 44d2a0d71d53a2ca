"""The types of planning: a row as it reads one, and what it returns."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

MICROSECOND = timedelta(microseconds=1)
SHORTEST_PICKUP = timedelta(minutes=15)
LONGEST_PICKUP = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that planning needs."""

    timezone: str  # of rows without one: that of the app
    on_time: timedelta  # `catchup` does not apply to an occurrence that is decided within this of its due time
    lease: timedelta  # is added to it when the beat that had marked the row died
    pickup_deadline: timedelta | None = None  # None: by the time until the next occurrence
    min_interval: timedelta = timedelta(seconds=1)


@dataclass(slots=True)  # not frozen: a beat makes thousands a second, and freezing would double what that takes
class PlanningRow:
    """The columns of a periodic task that decide its times."""

    name: str
    schedule: str | None
    timezone: str | None
    anchor: datetime
    dst: str
    start_at: datetime | None
    end_at: datetime | None
    max_runs: int | None
    run_count: int
    jitter: timedelta | None
    blackout: Sequence[str] | None
    blackout_action: str
    # The named windows that `blackout` refers to: their texts, and their zone (None: that of the row).
    windows: Mapping[str, tuple[Sequence[str], str | None]]
    # An occurrence that a named window deferred when that window was changed: the first to be planned.
    held_back: datetime | None
    revision: int
    planned_from: datetime

    @property
    def counts_after(self) -> datetime:
        """The instant after which the row's occurrences count: its definition, or its inclusive start."""
        return self.planned_from if self.start_at is None else max(self.planned_from, self.start_at - MICROSECOND)


@dataclass(slots=True)
class Unplanned(PlanningRow):
    """A row whose next run is to be planned: the columns of `unplanned.sql` are these, in this order."""

    # Code has changed the times: the newest occurrence after this and up to `planned_from` is due at once.
    judged_from: datetime | None = None
    # The occurrence of the next run that the row still has (`replan`), or that a named window held back.
    planned_for: datetime | None = None
    last_run_at: datetime | None = None
    planned_ahead: Sequence[datetime] | None = None
    now: datetime | None = None  # by the clock of the database; None: nothing is planned yet


@dataclass(slots=True)
class Due(PlanningRow):
    """A marked row that is due, as its mark returned it: the columns of `mark.sql` are these, in this order."""

    task: str
    args: str = field(repr=False)
    kwargs: str = field(repr=False)
    queue: str | None
    priority: int | None
    options: str
    sensitive: bool
    catchup: str
    catchup_window: timedelta | None
    catchup_limit: int | None
    max_run_time: timedelta | None
    next_run_at: datetime
    planned_for: datetime | None
    last_run_at: datetime | None
    marked_at: datetime
    taken_over: bool
    created_at: datetime  # or when a person last had it decided anew; part of the ids of its jobs
    # It has `after` and no schedule: it is due since those tasks have ended, for the occurrence `planned_for`. A row
    # that has both does not count.
    comes_after: bool = False
    tracking: str = "full"

    @property
    def now(self) -> datetime:
        """The database's time at the mark, for which the row is decided."""
        return self.marked_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The next run of a row: when it is due, and its occurrence."""

    name: str
    revision: int
    planned_from: datetime
    next_run_at: datetime | None
    planned_for: datetime | None
    pickup_deadline: timedelta
    problem: str | None = None
    replaces: datetime | None = None  # the `planned_for` that was read: if it is another one by now, nothing is written


@dataclass(slots=True)  # not frozen: each decision makes one
class Skipped:
    """Occurrences that are skipped, in one record with their number and the reason."""

    first: datetime
    last: datetime
    count: int
    reason: str


class Decision(NamedTuple):  # each tick makes one, and a frozen dataclass takes more than twice as long
    """The decision about a due row: at most one job, at most one record of skipped occurrences, and the next run.

    `scheduled_for` and `planned_for` are occurrences: of the job, and of the next run. `due_at` and `next_run_at` are
    the instants at which these are due: with the jitter, and outside the blackout windows. `planned_ahead` and
    `due_ahead` are of the next run and those after it (`ahead.py`).

    The type `decision` in Postgres has these fields, in this order.
    """

    row: Due
    skipped: Skipped | None
    job: uuid.UUID | None
    scheduled_for: datetime | None
    due_at: datetime | None
    origin: str
    decided_until: datetime
    next_run_at: datetime | None
    planned_for: datetime | None
    pickup_deadline: timedelta
    planned_ahead: tuple[datetime, ...] = ()
    due_ahead: tuple[datetime, ...] = ()

    def refused(self, reason: str) -> Decision:
        """Return the decision without its job: its occurrence is skipped for this reason."""
        if self.scheduled_for is None:
            return self
        count = 1 + (self.skipped.count if self.skipped else 0)
        first = min(self.scheduled_for, self.skipped.first if self.skipped else self.scheduled_for)
        skipped = Skipped(first, self.decided_until, count, reason)
        return self._replace(job=None, scheduled_for=None, due_at=None, skipped=skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Postponed:
    """A due row in a blackout window: nothing is decided, and the row is due again when the window has closed."""

    row: Due
    planned_for: datetime
    next_run_at: datetime
