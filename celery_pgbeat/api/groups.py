"""Groups of periodic tasks, as Python sees them. A group exists as soon as a periodic task names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """One group, as it was when it was read.

    Attributes:
        name: as in the column `group_name` of its periodic tasks.
        max_active: how many of its jobs may be under way at once; None: no limit.
        paused: whether none of its periodic tasks runs.
        pause_reason: why it is paused; None if no reason was given.
    """

    name: str
    max_active: int | None
    paused: bool
    pause_reason: str | None


@dataclass(frozen=True, slots=True)
class GroupStatus(TaskGroup):
    """One group, with its number of rows and jobs.

    Attributes:
        tasks: how many periodic tasks name it.
        active: how many of its jobs are under way: sent, queued, running or retrying.
        waiting: how many of its jobs wait because the limit is reached.
    """

    tasks: int
    active: int
    waiting: int
