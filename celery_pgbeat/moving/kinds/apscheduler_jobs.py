"""APScheduler 3: the table of its SQLAlchemy job store. Each job is a pickle."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from celery_pgbeat.declare.timing import Timing, interval_timing, zone_name
from celery_pgbeat.declare.when import own_timing
from celery_pgbeat.moving.answers import Answer, Taken, answered
from celery_pgbeat.moving.kind import Kind, Request
from celery_pgbeat.moving.readers.pickles import refuse_untrusted, unpickled
from celery_pgbeat.moving.readers.tables import tables_at

TABLE = "apscheduler_jobs"
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")  # it counts them from Monday
WEEKDAY_PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?")
NTH_WEEKDAY = re.compile(r"(1st|2nd|3rd|4th|5th|last) (\w{3})")
NTH = {"1st": "#1", "2nd": "#2", "3rd": "#3", "4th": "#4", "5th": "#5", "last": "L"}
MADE_UP_ID = re.compile(r"[0-9a-f]{32}")
DEFAULT_GRACE = 1  # seconds; APScheduler's own default, not what a person has chosen
TASK = "A job calls a function; the row calls the Celery task of that name (module.function): make each of them one."
GRACE = "misfire_grace_time becomes catchup_window, but not its default of 1 s: a run that is later is sent."
INSTANCES = "max_instances 1 becomes overlap skip, more of them allow."

NIGHTS = (
    "An interval is elapsed time, also on the nights when the clocks change: there it leaves out the second pass of a "
    "repeated hour."
)


def read(request: Request) -> Iterator[Answer]:
    """Iterate over the jobs."""
    refuse_untrusted(request.trust_pickle, f"the table {TABLE}")
    with tables_at(request.source, request.database.url, request.read) as tables:
        rows = tables.rows(TABLE)
    for row in rows:
        yield answered(str(row["id"]), partial(_answer, row["job_state"], request.now))


def _answer(pickle: bytes, now: datetime) -> Answer:
    return answer_of(unpickled(pickle), now)


def answer_of(job: Mapping[str, Any], now: datetime) -> Answer:
    """Return what becomes of a job.

    Args:
        job: its state: the values that APScheduler pickles.
        now: the time.
    """
    name = f"{job['name']} {job['id']}" if MADE_UP_ID.fullmatch(job["id"]) else job["id"]
    trigger, next_run = job["trigger"], job["next_run_time"]
    columns: dict[str, Any] = {
        "args": list(job["args"]),
        "kwargs": dict(job["kwargs"]),
        "overlap": "skip" if job["max_instances"] == 1 else "allow",
        "catchup": "latest" if job["coalesce"] else "all",
    }
    changes = []
    if job["misfire_grace_time"] not in (None, DEFAULT_GRACE):
        columns["catchup_window"] = timedelta(seconds=job["misfire_grace_time"])
    if job["max_instances"] > 1:
        changes.append(f"any number of runs may overlap, not only {job['max_instances']}")
    timing, more = _times(trigger, next_run, now)
    if getattr(trigger, "jitter", None):
        columns["jitter"] = timedelta(seconds=trigger.jitter)
        changes.append(f"a run is up to {trigger.jitter} s late, and never early")
    task = job["func"].replace(":", ".")
    return Taken(name, task, timing, {**columns, **more}, tuple(changes), paused=next_run is None)


def _times(trigger: Any, next_run: datetime | None, now: datetime) -> tuple[Timing, dict[str, Any]]:
    """Return the times of a trigger, and the columns that bound them.

    Raises:
        ValueError: no schedule of ours has these times.
    """
    kind = f"{type(trigger).__module__}.{type(trigger).__qualname__}"
    if kind == "apscheduler.triggers.date.DateTrigger":
        if trigger.run_date <= now:
            raise ValueError(f"its only time, {trigger.run_date.isoformat()}, has passed")
        return own_timing(trigger.run_date), {}
    bounds = {"start_at": getattr(trigger, "start_date", None), "end_at": getattr(trigger, "end_date", None)}
    given = {column: instant for column, instant in bounds.items() if instant is not None}
    if kind == "apscheduler.triggers.interval.IntervalTrigger":
        return interval_timing(trigger.interval), {**given, "anchor": next_run or trigger.start_date}
    if kind == "apscheduler.triggers.cron.CronTrigger":
        fields = {field.name: str(field) for field in trigger.fields}
        return Timing(cron_text(fields), zone_name(trigger.timezone)), given
    raise ValueError(f"its trigger is a {type(trigger).__qualname__}, and no kind of schedule here has its times")


def cron_text(fields: Mapping[str, str]) -> str:
    """Return the text of a cron trigger. A day must match both day fields, as there.

    Raises:
        ValueError: no text can say it.

    Example:
        >>> always = {"year": "*", "month": "*", "day": "*", "week": "*", "second": "0"}
        >>> cron_text({**always, "day_of_week": "0-4", "hour": "9", "minute": "*/5"})
        'crontab: */5 9 * * mon,tue,wed,thu,fri'
    """
    if fields["week"] != "*":
        raise ValueError(f"its trigger names weeks of the year ({fields['week']}): write it as an RRULE with BYWEEKNO")
    day, weekday = _days(fields["day"], fields["day_of_week"])
    times = (fields["minute"], fields["hour"], day, fields["month"], weekday)
    if (fields["second"], fields["year"]) == ("0", "*"):
        return f"crontab: {' '.join(times)}"
    if "*" not in (day, weekday):
        raise ValueError("its trigger has seconds or years, and both day fields: write it as a calendar event")
    return f"cron: {fields['second']} {' '.join(times)} {fields['year']}"


def _days(day: str, weekday: str) -> tuple[str, str]:
    days = day.split(",")
    nth = [f"{found.group(2)}{NTH[found.group(1)]}" for found in map(NTH_WEEKDAY.fullmatch, days) if found]
    if not nth:
        return ",".join("L" if one == "last" else one for one in days), _weekdays(weekday)
    if len(nth) < len(days) or weekday != "*":
        raise ValueError(f"its trigger names {day!r} and other days: write it as an RRULE")
    return "*", ",".join(nth)


def _weekdays(text: str) -> str:
    """Return weekdays by name."""
    if text == "*":
        return text
    chosen: set[int] = set()
    for part in text.split(","):
        found = WEEKDAY_PART.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"its trigger has the weekday {part!r}")
        every, first, last, step = found.groups()
        low = 0 if every else _weekday(first)
        high = 6 if every or (step and not last) else _weekday(last or first)
        chosen |= set(range(low, high + 1, int(step or 1)))
    return ",".join(WEEKDAYS[number] for number in sorted(chosen))


def _weekday(text: str) -> int:
    return int(text) if text.isdigit() else WEEKDAYS.index(text)


APSCHEDULER = Kind(
    "apscheduler",
    read,
    (TASK, GRACE, INSTANCES, NIGHTS),
    own_overlap=True,
)
