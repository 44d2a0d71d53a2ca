"""A country changes its clocks: beats are restarted with new time zone tables, and rows are planned again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.harness.clock import Clock
from tests.harness.processes import ROOT, Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.wait import eventually

ZONE = "America/Asuncion"
OLD, NEW = "America/Halifax", "America/Sao_Paulo"  # in winter UTC-4 and UTC-3: nine o'clock is 13:00 and 12:00
HOUR = timedelta(hours=1)
NOON = datetime.fromisoformat("2027-01-13T12:30:00+00:00")

ROWS: Mapping[str, dict[str, Any]] = {
    "daily": {"schedule": "0 9 * * *", "timezone": ZONE},
    "monthly": {"schedule": "0 9 1 * *", "timezone": ZONE},
    "once": {"schedule": "2027-01-15 09:00", "timezone": ZONE},
    "rrule": {"schedule": f"DTSTART;TZID={ZONE}:20270101T090000\nRRULE:FREQ=DAILY", "timezone": "UTC"},
    "cron-tz": {"schedule": f"CRON_TZ={ZONE} 0 9 * * *", "timezone": "UTC"},
    "calendar": {"schedule": f"*-*-* 09:00 {ZONE}", "timezone": "UTC"},
    "window": {"schedule": "0 13 * * *", "timezone": "UTC", "blackout": [f"CRON_TZ={ZONE} 0 9 * * * PT3H"]},
    "named": {"schedule": "0 13 * * *", "timezone": "UTC", "blackout": ["window: morning"]},
    "interval": {"schedule": "every 1h", "timezone": ZONE},
    "elsewhere": {"schedule": "0 9 * * *", "timezone": "Europe/Berlin"},
    "ahead": {"schedule": "0,30 9,11 * * *", "timezone": ZONE},
}


@pytest.fixture
def cluster(tmp_path: Path, migrated_database: str, broker_url: str) -> Any:
    """Its processes are executed, because the tables are chosen when Python starts."""
    made = Cluster(tmp_path, migrated_database, broker_url)
    yield made
    made.end()


def tables(folder: Path, like: str) -> dict[str, str]:
    """Return the environment of a process whose tables have the zone like another one."""
    place = folder / like / ZONE
    place.parent.mkdir(parents=True)
    place.write_bytes(files("tzdata.zoneinfo").joinpath(like).read_bytes())
    return {"PYTHONTZPATH": str(folder / like)}  # all other zones are those of the package tzdata


def shell(database: str, environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("celery-pgbeat"), "--url", database, *words]
    return subprocess.run(
        command, env={**os.environ, **environment}, cwd=ROOT, text=True, capture_output=True, timeout=60, check=False
    )


def next_runs(database: str) -> dict[str, datetime]:
    found = sql(database, "select name, next_run_at from pgbeat.periodic_task where planned_revision = revision")
    return {one["name"]: one["next_run_at"] for one in found}


def test_rows_are_planned_again_by_the_tables_that_beats_have_been_restarted_with(
    cluster: Cluster, database_clock: Clock, tmp_path: Path
) -> None:
    database_clock.stand_at(NOON)
    old, new = tables(tmp_path / "tables", OLD), tables(tmp_path / "tables", NEW)
    sql(
        cluster.database,
        f"insert into pgbeat.blackout values ('morning', array['0 9 * * * PT3H'], '{ZONE}')",
    )
    beat = cluster.beat(environment=old)
    for name, columns in ROWS.items():
        insert(cluster.database, name, **columns)
    eventually(lambda: len(next_runs(cluster.database)) == len(ROWS), 20, "planned")
    before = next_runs(cluster.database)
    assert {"daily": 13, "monthly": 13, "once": 13, "rrule": 13, "cron-tz": 13, "calendar": 13, "window": 16} == {
        name: before[name].hour for name in ("daily", "monthly", "once", "rrule", "cron-tz", "calendar", "window")
    }
    # It runs on, and plans the next occurrences ahead.
    database_clock.stand_at(NOON + HOUR)
    eventually(lambda: row(cluster.database, "ahead")["planned_ahead"], 20, "planned ahead")
    eventually(lambda: next_runs(cluster.database)["daily"].day == 14, 20, "sent")
    beat.stop()
    beat = cluster.beat(environment=new)
    database_clock.stand_at(NOON + 7 / 4 * HOUR)
    stored = next_runs(cluster.database)
    assert stored["monthly"] == before["monthly"], "a restart alone changes nothing"

    told = shell(cluster.database, new, "explain", "monthly", "--utc").stdout
    assert "2027-02-01 13:00:00Z" in told
    assert "by the time zone tables here that is 2027-02-01 12:00:00Z" in told
    assert "celery-pgbeat replan monthly" in told
    assert "by the time zone tables here" in shell(cluster.database, new, "upcoming", "monthly").stdout
    assert "by the time zone tables here" in shell(cluster.database, new, "show", "monthly").stdout
    doctor = shell(cluster.database, new, "doctor").stdout
    assert "celery-pgbeat replan --all" in " ".join(doctor.split())

    done = json.loads(shell(cluster.database, new, "replan", "--all", "--yes", "--json").stdout)

    after = next_runs(cluster.database)
    assert 0 == done["still_to_be_planned"]
    moved = {"daily", "monthly", "once", "rrule", "cron-tz", "calendar", "window", "named"}
    assert moved == {one["name"] for one in done["moved"]} - {"ahead"}
    for name in ("daily", "monthly", "once", "rrule", "cron-tz", "calendar"):
        assert stored[name] - HOUR == after[name], name
        assert 9 == after[name].astimezone(ZoneInfo(NEW)).hour
    assert {"window": 15, "named": 15} == {name: after[name].hour for name in ("window", "named")}
    assert stored["elsewhere"] == after["elsewhere"]
    eleven = stored["ahead"] - HOUR
    eventually(lambda: eleven in [job["scheduled_for"] for job in jobs(cluster.database, "ahead")], 20, "not lost")
    planned_ahead = row(cluster.database, "ahead")["planned_ahead"]
    assert {9, 11} == {instant.astimezone(ZoneInfo(NEW)).hour for instant in planned_ahead}
    assert 1 == row(cluster.database, "monthly")["revision"]
    assert "by the time zone tables" not in shell(cluster.database, new, "explain", "monthly").stdout

    database_clock.stand_at(datetime.fromisoformat("2027-01-15T12:00:05+00:00"))
    eventually(lambda: jobs(cluster.database, "once"), 20, "sent at its new time")
    sent = [job["scheduled_for"] for job in jobs(cluster.database, "daily") if job["state"] != "skipped"]
    assert len(sent) == len({instant.date() for instant in sent}), "once a day"
    assert beat.is_running
