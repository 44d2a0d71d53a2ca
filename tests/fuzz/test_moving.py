"""Whatever a source holds, an entry is taken or refused with its name and a reason, and stops no other one."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from celery_pgbeat.moving.answers import Refused
from celery_pgbeat.moving.kind import Request
from celery_pgbeat.moving.kinds import (
    apscheduler_jobs,
    celery_sqlalchemy_scheduler,
    django_celery_beat,
    pg_cron,
    redbeat,
    sqlalchemy_celery_beat,
)
from celery_pgbeat.moving.move import Move
from celery_pgbeat.moving.places import PLACES
from celery_pgbeat.moving.readers.redis_keys import Hash
from celery_pgbeat.moving.registry import kind_named
from celery_pgbeat.settings import Settings
from tests.fuzz.fuzzing import MARKS, attack, quickly
from tests.harness.values import NUMBERS, TEXTS, odd

pytestmark = MARKS

NOW = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
FAR = (datetime.min, datetime.max, datetime.min.replace(tzinfo=timezone(timedelta(hours=23))), NOW)
LIKELY = (*FAR, "America", "x" * 5_000, "UTC", "0 3 * * *", "@every 1h", "days", 10**30, 1e308, [], {}, None)
GOOD = "good"
TOO_DEEP = "[" * 5_000
Record = dict[str, Any]


class NoRows:
    """A table of ours without rows."""

    def definitions_of(self, names: list[str]) -> dict[str, Any]:
        """Find nothing."""
        return {}


class Source:
    """What the readers of tables and of Redis find."""

    def __init__(self, tables: Mapping[str, list[Record]]) -> None:
        self._tables = tables

    @contextmanager
    def at(self, *_: Any) -> Iterator[Source]:
        """Open it."""
        yield self

    def rows(self, name: str, *_: Any, **__: Any) -> list[Record]:
        """Return a table."""
        return self._tables[name]

    def by_id(self, name: str, *_: Any) -> dict[Any, Record]:
        """Return a table by its id."""
        return dict(enumerate(self._tables.get(name, []), 1))

    def setting(self, name: str) -> None:
        """Return no setting."""


CALL = {"args": "[1]", "kwargs": "{}", "headers": "{}", "priority": 1, "expire_seconds": 5, "description": "x"}
RUNS = {"start_time": None, "expires": None, "last_run_at": NOW, "one_off": False, "total_run_count": 0}
OF_CELERY: Record = {"id": 1, "task": "a.b", "enabled": True, **CALL, **RUNS}
SCHEDULES: Mapping[str, Record] = {
    "interval": {"every": 1, "period": "hours"},
    "crontab": dict.fromkeys(("minute", "hour", "day_of_week", "day_of_month", "month_of_year"), "1")
    | {"timezone": "UTC"},
    "solar": {"event": "sunset", "latitude": 52.5, "longitude": 13.4},
    "clocked": {"clocked_time": NOW + timedelta(days=1)},
}
CRON_JOB: Record = {"kind": "CronJob", "metadata": {"name": "x", "namespace": "y"}, "spec": {
    "schedule": "0 3 * * *", "timeZone": "UTC", "startingDeadlineSeconds": 5, "concurrencyPolicy": "Allow",
    "jobTemplate": {"spec": {"activeDeadlineSeconds": 5, "template": {"spec": {"containers": [{"image": "a"}]}}}},
}}  # fmt: skip
INSTANT = {"__type__": "datetime", "year": 2026, "month": 1, "day": 1, "timezone": "UTC"}
TIMES: tuple[Record, ...] = (
    {"__type__": "interval", "every": 60.0, "relative": False},
    {"__type__": "crontab", **dict.fromkeys(redbeat.CRON_FIELDS, "1")},
    {"__type__": "rrule", "freq": 3, "interval": 1, "dtstart": 0, "dtstart_tz": 60, "until": 1e9, "byhour": [9]},
)
OF_REDBEAT: Record = {"name": "x", "task": "a.b", "args": [1], "kwargs": {}, "options": {"expires": INSTANT}}
OF_APSCHEDULER: Record = {
    "id": "x", "name": "x", "func": "a:b", "trigger": None, "next_run_time": NOW, "args": (), "kwargs": {},
    "max_instances": 1, "coalesce": True, "misfire_grace_time": 5,
}  # fmt: skip


def changed(numbers: random.Random, value: Any) -> Any:
    """Return a record with some places of it changed, at whatever depth."""
    if numbers.random() < 0.15:
        return numbers.choice((*LIKELY, *NUMBERS, *TEXTS, odd(numbers)))
    if isinstance(value, dict):
        kept = {key: changed(numbers, inner) for key, inner in value.items() if numbers.random() > 0.03}
        return {**kept, **({numbers.choice(TEXTS): odd(numbers)} if numbers.random() < 0.05 else {})}
    return [changed(numbers, inner) for inner in value] if isinstance(value, list) else value


def row(numbers: random.Random, record: Record, **kept: Any) -> Record:
    """Return a row of a table: it has its columns, whatever is in them."""
    return {**{column: changed(numbers, value) for column, value in record.items()}, **kept}


def celery_tables(prefix: str, numbers: random.Random) -> Mapping[str, list[Record]]:
    """Return the tables of django-celery-beat, or of one of its relatives."""
    joint = "_" if prefix == "celery_periodic_" else ""
    kind = numbers.choice([kind for kind in SCHEDULES if not joint or kind != "clocked"])
    odd_one, good_one = (
        {f"{other}_id": at if other == kind else None for other in SCHEDULES}
        | {"discriminator": f"{kind}schedule", "schedule_id": at}
        for at in (1, 2)
    )
    start = "celery_" if prefix.startswith("celery") else "django_celery_beat_"
    good = {**OF_CELERY, **good_one, "name": GOOD}
    return {
        f"{prefix}task": [row(numbers, OF_CELERY, name="odd", **odd_one), good],
        f"{start}{kind}{joint}schedule": [row(numbers, SCHEDULES[kind]), SCHEDULES[kind]],
    }


def text_of(value: Any) -> str:
    """Return JSON as a client may have written it, with NaN and Infinity."""
    try:
        return json.dumps(value, default=str)
    except RecursionError:
        return TOO_DEEP


def pickled(value: Any) -> bytes:
    """Return a pickle; of what is nested too deeply for one, nothing."""
    try:
        return pickle.dumps(value)
    except RecursionError:
        return b""


def lines(numbers: random.Random) -> str:
    """Return two lines of a crontab."""
    words = [str(numbers.choice((*TEXTS, "*", "*/5", "@daily", "%"))) for _ in range(7)]
    return f"{' '.join(words).replace(chr(10), ' ')}\n0 3 * * * root {GOOD}\n"


def source_of(kind: str, numbers: random.Random, put: pytest.MonkeyPatch, path: Path) -> tuple[Any, Any]:
    """Put an odd entry and a good one where a kind looks for them; return the source and the app."""
    tables: Mapping[str, list[Record]] = {}
    if kind == "django-celery-beat":
        tables = celery_tables("django_celery_beat_periodic", numbers)
    elif kind == "sqlalchemy-celery-beat":
        tables = celery_tables("celery_periodic", numbers)
    elif kind == "celery-sqlalchemy-scheduler":
        tables = celery_tables("celery_periodic_", numbers)
    elif kind == "pg_cron":
        job = {"jobid": 1, "schedule": "0 3 * * *", "command": "a", "database": "b", "username": "c", "active": True}
        seconds = {**job, "schedule": f"{'1' * 5_000} seconds"}
        tables = {"job": [row(numbers, numbers.choice((job, seconds)), jobname="odd"), {**job, "jobname": GOOD}]}
    elif kind == "apscheduler":
        odd_job = pickled(changed(numbers, OF_APSCHEDULER))
        tables = {"apscheduler_jobs": [{"id": "odd", "job_state": odd_job}, {"id": GOOD, "job_state": b""}]}
    elif kind == "redbeat":
        wrong = {**OF_REDBEAT, "schedule": numbers.choice(TIMES)}
        texts = text_of(changed(numbers, wrong)), text_of(changed(numbers, {"last_run_at": INSTANT}))
        good = text_of({**OF_REDBEAT, "name": GOOD, "options": {}, "schedule": TIMES[0]})
        found = [Hash("odd", *texts, of_code=False), Hash(GOOD, good, None, of_code=False)]
        put.setattr(redbeat, "hashes", lambda *_: iter(found))
        return "redis://", None
    elif kind == "beat-schedule":
        app = Celery("fuzz", set_as_current=False)
        entry = {"task": "a.b", "schedule": 60.0, "args": [1], "kwargs": {}, "options": {}, "pgbeat": {"jitter": 5}}
        good_entry = {"task": "a.b", "schedule": 60.0}
        app.conf.beat_schedule = {numbers.choice(("odd", 5, None)): changed(numbers, entry), GOOD: good_entry}
        return None, app
    else:
        manifests = {"items": [changed(numbers, CRON_JOB), {**CRON_JOB, "metadata": {"name": GOOD}}, CRON_JOB]}
        given = text_of(manifests) if kind == "kubernetes" else lines(numbers)
        if given == TOO_DEEP:  # no entry of such a file can be read
            given = text_of({"items": manifests["items"][1:]})
        path.write_text(given, encoding="utf-8", errors="replace")
        return str(path), None
    for module in TABLES:
        put.setattr(module, "tables_at", Source(tables).at)
    return None, None


TABLES = (apscheduler_jobs, celery_sqlalchemy_scheduler, django_celery_beat, pg_cron, sqlalchemy_celery_beat)


def check(kind: str, put: pytest.MonkeyPatch, path: Path, numbers: random.Random) -> None:
    source, app = source_of(kind, numbers, put, path)
    database: Any = type("Database", (), {"url": "postgresql://a@b/c"})
    operators: Any = NoRows()
    request = Request(source, database, NOW, app, task="shop.run", trust_pickle=True)
    with Move(kind_named(kind), request, operators, Settings(), "UTC") as move:
        rows = quickly(move.compare)
    answers = {row.answer.name: row.answer for row in rows}
    reasons = [answer.reason for answer in answers.values() if isinstance(answer, Refused)]
    assert [] == [reason for reason in reasons if not 0 < len(reason) < 1_000]
    (last,) = (answer for name, answer in answers.items() if name in (GOOD, f"root {GOOD}"))
    assert kind == "apscheduler" or not isinstance(last, Refused), last


@pytest.mark.parametrize("kind", PLACES)
def test_a_refused_entry_stops_no_other_one(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    attack(partial(check, kind, monkeypatch, tmp_path / "source"))
