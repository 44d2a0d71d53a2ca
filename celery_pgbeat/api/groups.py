"""Groups of periodic tasks, as Python sees them. A group exists as soon as a periodic task names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """One group, as it stood when it was read.

    Attributes:
        name: as in the column `group_name` of its periodic tasks.
        max_active: at most so many of its jobs are under way at a time; None: no limit.
        paused: whether none of its periodic tasks runs.
        pause_reason: why; None where nobody said.
    """

    name: str
    max_active: int | None
    paused: bool
    pause_reason: str | None


@dataclass(frozen=True, slots=True)
class GroupStatus(TaskGroup):
    """One group, and how it stands.

    Attributes:
        tasks: how many periodic tasks name it.
        active: how many of its jobs are under way: sent, queued, running or retrying.
        waiting: how many of its jobs wait for a place.
    """

    tasks: int
    active: int
    waiting: int
