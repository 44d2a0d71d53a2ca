"""P7: the database's clock decides; P8: DST as people expect."""

from __future__ import annotations

import ast
import time
from datetime import date, datetime, timedelta, timezone
from datetime import time as clock
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.harness import broker
from tests.harness.clock import Clock
from tests.harness.processes import ROOT, Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.wait import eventually

HOUR = timedelta(hours=1)
WALL_CLOCK = ("datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.localtime")


def utc(*fields: int) -> datetime:
    return datetime(*fields, tzinfo=timezone.utc)


def wall_clock_reads(path: Path) -> list[str]:
    """List the calls in a file that ask the node what time it is."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [ast.unparse(call.func) for call in calls if ast.unparse(call.func) in WALL_CLOCK]


def test_p7_no_package_that_decides_reads_the_clock_of_the_node() -> None:
    """But for one place: the time that a beat assumes before it has seen the database's."""
    package = ROOT / "celery_pgbeat"
    files = [*package.glob("*.py")]
    for folder in ("beat", "postgres", "schedules", "api", "declare"):
        files += (package / folder).rglob("*.py")

    reads = [(path.name, call) for path in files for call in wall_clock_reads(path)]
    assert [("database_clock.py", "datetime.now")] == reads


def test_p7_a_row_is_due_by_the_clock_of_the_database_whatever_the_node_has(
    cluster: Cluster, database_clock: Clock
) -> None:
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "future", "0 12 * * *", timezone="UTC")
    planned = eventually(lambda: row(cluster.database, "future")["next_run_at"], 20, "planned")
    time.sleep(1)
    assert [] == jobs(cluster.database, "future")

    database_clock.stand_at(planned)

    eventually(lambda: broker.depth(cluster.broker) == 1, 10, "it goes out")
    assert [planned] == [job["scheduled_for"] for job in jobs(cluster.database, "future")]


def test_p7_a_beat_that_only_reads_a_row_does_not_write_to_it(cluster: Cluster) -> None:
    """Even while beats start, die and end: `xmin` is the transaction that wrote the row last."""
    insert(cluster.database, "planned", "every 1h")
    insert(cluster.database, "by-hand", "every 1h", next_run_at="2030-01-01T00:00:00Z")
    insert(cluster.database, "paused", "every 1h", enabled=False)
    insert(cluster.database, "without-times", None)
    beat = cluster.beat()
    eventually(lambda: row(cluster.database, "planned")["next_run_at"], 10, "planned")
    insert(cluster.database, "second", "every 1s")
    written = "select name, xmin::text, next_run_at from pgbeat.periodic_task where name <> 'second' order by name"
    before = sql(cluster.database, written)

    beat.kill()
    for _ in range(2):
        beat = cluster.beat()
        decided = len(jobs(cluster.database))
        eventually(lambda known=decided: len(jobs(cluster.database)) >= known + 2, 20, "it works")
        beat.stop()
    assert before == sql(cluster.database, written)


def test_the_zone_of_a_row_then_that_of_the_app_and_never_that_of_the_process_decides(cluster: Cluster) -> None:
    """B-8."""

    def planned(name: str) -> datetime:
        found = eventually(lambda: row(cluster.database, name)["next_run_at"], 20, f"{name} is planned")
        assert isinstance(found, datetime)
        return found

    insert(cluster.database, "plain", "0 10 * * *")
    insert(cluster.database, "own", "0 10 * * *", timezone="America/New_York")
    beat = cluster.beat(environment={"TZ": "Asia/Tokyo"})
    assert clock(10) == planned("plain").astimezone(timezone.utc).time()
    assert clock(10) == planned("own").astimezone(ZoneInfo("America/New_York")).time()
    before = [row(cluster.database, name)["next_run_at"] for name in ("plain", "own")]
    beat.stop()

    cluster.settings["timezone"] = "Europe/Brussels"
    cluster.beat(environment={"TZ": "America/Los_Angeles"})
    insert(cluster.database, "later", "0 10 * * *")

    assert clock(10) == planned("later").astimezone(ZoneInfo("Europe/Brussels")).time()
    assert before == [row(cluster.database, name)["next_run_at"] for name in ("plain", "own")]


@pytest.mark.parametrize(
    ("zone", "evening"),
    [
        ("Europe/Berlin", utc(2027, 3, 27, 22)),
        ("Europe/Berlin", utc(2027, 10, 30, 21)),
        ("America/New_York", utc(2027, 3, 14, 4)),
        ("America/New_York", utc(2027, 11, 7, 3)),
    ],
    ids=["berlin-spring", "berlin-autumn", "new-york-spring", "new-york-autumn"],
)
def test_p8_in_a_dst_night_each_fixed_time_is_sent_once_and_wildcards_follow_real_time(
    cluster: Cluster, database_clock: Clock, zone: str, evening: datetime
) -> None:
    # A lease so long that each step of the clock is still on time: every occurrence is decided by itself.
    cluster.settings = {"pgbeat_lease": 1800, "pgbeat_poll": 0.1}
    database_clock.stand_at(evening)
    night = night_of(ZoneInfo(zone), evening)
    assert 50 <= len(night)
    for text in night:
        insert(cluster.database, text, text, timezone=zone, overlap="allow")
    for _ in range(2):
        cluster.beat(wait=False)
    eventually(lambda: all(row(cluster.database, text)["next_run_at"] for text in night), 20, "planned")
    waiting = (
        "select from pgbeat.periodic_task where planned_revision <> revision or next_run_at <= pgbeat.now()"
        " union all select from pgbeat.active_job where state = 'pending'"
    )
    for _ in range(HOURS * 3):
        database_clock.advance(timedelta(minutes=20))
        eventually(lambda: not sql(cluster.database, waiting), 10, "all that is due is sent", every=0.02)

    decided = jobs(cluster.database)
    assert {"sent"} == {job["state"] for job in decided}
    fired = {text: [job["scheduled_for"] for job in decided if job["periodic_task"] == text] for text in night}
    assert night == fired


HOURS = 9  # from an hour before midnight


def night_of(zone: ZoneInfo, evening: datetime) -> dict[str, list[datetime]]:
    """Return schedules, and when each fires until the morning: what people expect, reckoned without our engine."""
    date = (evening + HOUR * 3).astimezone(zone).date()
    quarters = [clock(hour, minute) for hour in range(1, 6) for minute in (0, 15, 30, 45)]
    night: dict[str, list[datetime]] = {}
    for at in quarters:
        instants = [datetime.combine(date, at, zone).astimezone(timezone.utc)]
        shifted = [instants[0]]  # by the length of the gap: zoneinfo's own reading of a time that does not exist
        exists = instants[0].astimezone(zone).time() == at
        night[f"{at.minute} {at.hour} * * *"] = instants if exists else [end_of_gap(zone, date)]
        if at.minute in (0, 30):
            night[f"crontab: {at.minute} {at.hour} * * *"] = instants if exists else [end_of_gap(zone, date)]
            night[f"*-*-* {at:%H:%M}"] = instants if exists else []
        if at.hour in (2, 3):
            night[f"{date}T{at:%H:%M}"] = shifted
    wildcards = {"*/15 * * * *": 15, "crontab: */20 * * * *": 20, "0 * * * *": 60, "30 */1 * * *": 60}
    for text, minutes in {**wildcards, "every 20m": 20, "PT30M": 30}.items():
        first = 30 if text.startswith("30") else minutes
        steps = range(first, HOURS * 60 + 1, minutes)
        night[text] = [evening + timedelta(minutes=step) for step in steps]
    return night


def end_of_gap(zone: ZoneInfo, date: date) -> datetime:
    """Return the first instant after the clocks were put forward on a date."""
    instant = datetime.combine(date, clock(0), zone).astimezone(timezone.utc)
    offset = instant.astimezone(zone).utcoffset()
    while instant.astimezone(zone).utcoffset() == offset:
        instant += timedelta(minutes=1)
    return instant
