"""Groups of periodic tasks, as Python sees them. A group exists as soon as a periodic task names it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from celery_pgbeat.declare.columns import read_count, read_group_name, read_switch
from celery_pgbeat.declare.texts import read_text
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.texts.safe_text import in_short

# As rate_interval_of() in groups.sql: a number, then nothing (a second) or the unit of time.
RATE = re.compile(r" *([0-9]{1,9}(?:[.][0-9]{1,9})?) *(?:/ *([smh]))? *")
SECONDS = {"s": 1, "m": 60, "h": 3600}
SHORTEST, LONGEST = 0.5e-6, 366 * 86400  # seconds from one job to the next
MOST_NAMES = 100


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """One group, as it was when it was read.

    Attributes:
        name: as in the column `group_name` of its periodic tasks.
        max_active: how many of its jobs may be under way at once; None: no limit.
        ordered: whether its jobs run one at a time, in the order of `scheduled_for`.
        waits_for: the groups in which nothing may be under way, waiting or due when a job of this one gets its turn;
            None: no other group.
        pause_on_failure: whether a job that fails or is lost pauses it.
        rate_limit: how many of its jobs are sent in a second, minute or hour, such as `100/m`; None: no limit.
        state: `active`, `paused`, `waiting` (its jobs wait for those of other groups) or `finished` (it takes no new
            jobs).
        paused: whether none of its periodic tasks runs: the same as the state `paused`.
        pause_reason: why it is paused; None if no reason was given.
    """

    name: str
    max_active: int | None
    ordered: bool
    waits_for: Sequence[str] | None
    pause_on_failure: bool
    rate_limit: str | None
    state: str
    paused: bool
    pause_reason: str | None


@dataclass(frozen=True, slots=True)
class GroupStatus(TaskGroup):
    """One group, with its number of rows and jobs.

    Attributes:
        tasks: how many periodic tasks name it.
        active: how many of its jobs are under way: sent, queued, running or retrying.
        waiting: how many of its jobs wait for their turn.
    """

    tasks: int
    active: int
    waiting: int


def read_group(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check what a group is, and return all of it; None for what is as in a group without settings.

    Whether the groups that it waits for are there, and do not wait for it, only the database can tell.

    Raises:
        InvalidPeriodicTask: names the column and its value.

    Example:
        >>> read_group({"ordered": True})["ordered"]
        True
    """
    ordered = read_switch("ordered", given.get("ordered") or False)
    limit = given.get("max_active")
    if ordered and limit not in (None, 1):
        raise InvalidPeriodicTask(
            f"max_active is {in_short(limit)}, but an ordered group has one job at a time: leave max_active out"
        )
    return {
        "max_active": None if limit is None else read_count("max_active", limit),
        "ordered": ordered or None,
        "waits_for": _read_names(given.get("waits_for")),
        "pause_on_failure": read_switch("pause_on_failure", given.get("pause_on_failure") or False) or None,
        "rate_limit": _read_rate(given.get("rate_limit")),
    }


def _read_names(names: Any) -> list[str] | None:
    if names is None:
        return None
    if isinstance(names, (str, bytes)) or not isinstance(names, Sequence):
        raise InvalidPeriodicTask(f"waits_for is {in_short(names)}, not a list of names of groups")
    if len(names) > MOST_NAMES:
        raise InvalidPeriodicTask(f"waits_for has {len(names)} names, more than {MOST_NAMES}")
    return [read_group_name(f"waits_for[{place}]", name) for place, name in enumerate(names)] or None


def _read_rate(rate: Any) -> str | None:
    if rate is None:
        return None
    found = RATE.fullmatch(read_text("rate_limit", rate))
    number = float(found[1]) if found else 0.0
    if found is None or not number or not SHORTEST < SECONDS[found[2] or "s"] / number <= LONGEST:
        raise InvalidPeriodicTask(
            f"rate_limit is {in_short(rate)}, not a number of jobs per second, minute or hour such as "
            "10/s, 100/m or 5/h"
        )
    return str(rate)
