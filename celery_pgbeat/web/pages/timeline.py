"""Timeline: what each task did and what is planned for it, a lane each; and which of the coming minutes are crowded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import takewhile
from typing import Any, NamedTuple

from markupsafe import Markup

from celery_pgbeat.api.rows import Upcoming
from celery_pgbeat.errors import InvalidSchedule, MissingExtra, UnknownTimezone
from celery_pgbeat.web.charts import Bar, Mark, bars, lane
from celery_pgbeat.web.page import Page, Query
from celery_pgbeat.web.reading import Reader
from celery_pgbeat.web.words import MARKS, duration, in_full, number

ROWS = 30  # lanes of one page
MOST_NAMES = 1_000_000  # that a search looks at, as in the list of tasks
MOST_MARKS, MOST_RUNS = 300, 60  # of one lane: jobs, and runs that are planned
MOST_PLANNED = 200_000  # tasks whose next run is counted
EACH_WAY: Mapping[str, timedelta] = {hours: timedelta(hours=int(hours)) for hours in ("1", "6", "24")}
BINS = 96  # bars of the load
CROWDED, TIMES = 5, 3  # minutes that are named, and how many times the usual load they have
Row = Mapping[str, Any]


class Lane(NamedTuple):
    """One task: its name, the drawing, and the same in words."""

    name: str
    drawing: Markup
    says: str


class Minute(NamedTuple):
    """A crowded minute: how many tasks start then, one of them, how many repeat an interval; a calmer minute."""

    at: datetime
    runs: int
    name: str
    intervals: int
    calmer_at: datetime
    calmer_runs: int


def read_timeline(reader: Reader, query: Query) -> Page:
    """Read the lanes of some tasks, and the load that all of them plan."""
    queries = reader.queries
    now = queries.clock()
    hours = query.choice("hours", EACH_WAY) or "24"
    words, group, after = query.text("q"), query.text("group"), query.name("after")
    rows = queries.look_through(limit=ROWS + 1, most=MOST_NAMES, after=after, words=words, group_name=group)
    names = [row["name"] for row in rows[:ROWS]]
    done: dict[str, list[Row]] = {name: [] for name in names}
    for job in queries.lanes(names, now - EACH_WAY[hours], MOST_MARKS):
        done[job["name"]].append(job)
    until = now + EACH_WAY[hours]
    lanes = [
        _lane(row["name"], done[row["name"]], _planned(reader, row, until), now, EACH_WAY[hours]) for row in rows[:ROWS]
    ]
    minutes = queries.planned_minutes(until, MOST_PLANNED)
    return Page(
        "timeline",
        "Timeline",
        {
            "now": now,
            "lanes": lanes,
            "more": names[-1] if len(rows) > ROWS else None,
            "hours": hours,
            "each_way": tuple(EACH_WAY),
            "words": words,
            "group": group,
            "after": after,
            "since": now - EACH_WAY[hours],
            "until": until,
            "load": _load(minutes, now, EACH_WAY[hours]),
            "crowded": crowded(minutes, now),
        },
    )


def _planned(reader: Reader, row: Row, until: datetime) -> list[Upcoming]:
    """Return the runs that beats plan; not those that are only expected, after other tasks, for so many tasks."""
    if row["schedule"] is None and row["after"]:
        return []
    try:
        return list(takewhile(lambda run: run.next_run_at <= until, reader.upcoming(row["name"], MOST_RUNS)))
    except (InvalidSchedule, MissingExtra, UnknownTimezone):
        return []  # the task's own page says why


def _lane(name: str, jobs: Sequence[Row], runs: Sequence[Upcoming], now: datetime, reach: timedelta) -> Lane:
    def place(instant: datetime) -> float:
        return min(max((instant - now) / reach, -1.0), 1.0)

    marks = []
    for job in jobs:
        begin = job["started_at"] or job["created_at"]
        end = job["finished_at"] or (now if job["started_at"] else begin)
        words = [job["state"], job["reason"], duration(end - begin) if job["started_at"] else None]
        says = f"{in_full(job['scheduled_for'])}: {', '.join(filter(None, words))}"
        marks.append(Mark(place(begin), place(max(begin, end)), MARKS.get(job["state"], ("idle", ""))[0], says))
    marks += [
        Mark(at, at, "planned", f"{in_full(run.next_run_at)}: planned")
        for run in runs
        for at in [place(max(run.next_run_at, now))]
    ]
    if len(runs) == MOST_RUNS:
        says = f"more runs: only the next {MOST_RUNS} are computed"
        marks.append(Mark(place(max(runs[-1].next_run_at, now)), 1.0, "more", says))
    if len(jobs) >= MOST_MARKS:
        oldest = min(job["created_at"] for job in jobs)
        marks.append(Mark(-1.0, place(oldest), "more", f"older jobs: only the latest {MOST_MARKS} are drawn"))
    counted = Counter(job["state"] for job in jobs)
    parts = [f"{many:,} {state}" for state, many in counted.most_common()]
    more = "+" if len(runs) == MOST_RUNS else ""
    says = f"{', '.join(parts) or 'no job'}; {len(runs)}{more} planned"
    return Lane(name, lane(marks, f"{name}: {says}"), says)


def _load(minutes: Sequence[Row], now: datetime, reach: timedelta) -> Markup | None:
    if not minutes:
        return None
    step = reach / BINS
    counts: Counter[int] = Counter()
    for minute in minutes:
        counts[min(max(int((minute["minute"] - now) / step), 0), BINS - 1)] += minute["runs"]
    drawn = [
        Bar(counts[place], f"from {in_full(now + place * step)}: {number(counts[place], 'task')}")
        for place in range(BINS)
    ]
    busiest = max(minutes, key=lambda minute: (minute["runs"], -minute["minute"].timestamp()))
    finding = f"Next runs by time: the busiest minute is {in_full(busiest['minute'])} with {busiest['runs']:,}"
    return bars(drawn, finding)


def crowded(minutes: Sequence[Row], now: datetime) -> Sequence[Minute]:
    """Return the most crowded minutes, each with the calmest one that is still to come in its hour.

    A minute is crowded if it has several times what the minutes have on average that have any. Of an hour that has less
    than half of itself left, the calmest minute of the next 60 is named.

    Example:
        >>> at = datetime(2026, 11, 24, 3, tzinfo=timezone.utc)
        >>> known = [
        ...     {"minute": at.replace(minute=m), "runs": 40 if m == 20 else 1, "name": "a", "intervals": 0}
        ...     for m in range(15, 25)
        ... ]
        >>> [(one.runs, one.calmer_at.minute, one.calmer_runs) for one in crowded(known, at.replace(minute=14))]
        [(40, 25, 0)]
    """
    runs = {minute["minute"]: minute["runs"] for minute in minutes}
    usual = sum(runs.values()) / max(len(runs), 1)
    worst = sorted((minute for minute in minutes if minute["runs"] > TIMES * usual), key=lambda minute: -minute["runs"])
    return [_minute(minute, runs, now) for minute in worst[:CROWDED]]


def _minute(minute: Row, runs: Mapping[datetime, int], now: datetime) -> Minute:
    hour: datetime = minute["minute"].astimezone(timezone.utc).replace(minute=0)
    coming = now.astimezone(timezone.utc).replace(second=0, microsecond=0) + timedelta(minutes=1)
    begin = coming if coming - hour > timedelta(minutes=30) else hour
    others = [at for each in range(60) if (at := begin + timedelta(minutes=each)) >= coming]
    calmer = min(others, key=lambda other: (runs.get(other, 0), abs(other - minute["minute"])))
    return Minute(minute["minute"], minute["runs"], minute["name"], minute["intervals"], calmer, runs.get(calmer, 0))
