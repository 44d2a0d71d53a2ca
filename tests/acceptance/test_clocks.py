"""P7: the database's clock decides; P8: DST as people expect."""

from __future__ import annotations

import ast
import itertools
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.acceptance.rows import insert, insert_many, jobs, row, sql
from tests.harness import broker
from tests.harness.clock import Clock
from tests.harness.processes import ROOT, Cluster
from tests.harness.wait import eventually

HOUR = timedelta(hours=1)
WALL_CLOCK = ("datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.localtime")


def utc(*fields: int) -> datetime:
    return datetime(*fields, tzinfo=timezone.utc)


def wall_clock_reads(path: Path) -> list[str]:
    """List the calls in a file that ask the node what time it is."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [ast.unparse(call.func) for call in calls if ast.unparse(call.func) in WALL_CLOCK]


def test_p7_no_room_that_decides_reads_the_nodes_wall_clock() -> None:
    """But for one place: the time that a beat assumes before it has seen the database's."""
    package = ROOT / "celery_pgbeat"
    files = [*package.glob("*.py")]
    for room in ("beat", "postgres", "schedules", "api", "declare"):
        files += (package / room).rglob("*.py")

    assert [("clock.py", "datetime.now")] == [(path.name, call) for path in files for call in wall_clock_reads(path)]


def test_p7_what_is_due_by_the_databases_clock_is_due_whatever_the_node_thinks(
    cluster: Cluster, database_clock: Clock
) -> None:
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "future", "0 12 * * *", timezone="UTC")
    planned = eventually(lambda: row(cluster.database, "future")["next_run_at"], 5, "planned")
    time.sleep(1)
    assert [] == jobs(cluster.database, "future")

    database_clock.stand_at(planned)

    eventually(lambda: broker.depth(cluster.broker) == 1, 10, "it goes out")
    assert [planned] == [job["scheduled_for"] for job in jobs(cluster.database, "future")]


@pytest.mark.slow
@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forth", "back"])
def test_p7_when_the_databases_clock_steps_nothing_goes_out_twice_nor_in_a_storm(
    cluster: Cluster, database_clock: Clock, step: timedelta
) -> None:
    insert_many(cluster.database, 10, "every 1s")
    for _ in range(2):
        cluster.beat(wait=False)
    eventually(lambda: len(jobs(cluster.database)) >= 30, 20, "three rounds")
    before = len(jobs(cluster.database))
    database_clock.advance(step)
    time.sleep(4)

    decided = jobs(cluster.database)
    made = [job for job in decided if job["state"] != "skipped"]
    assert {1} == set(Counter((job["periodic_task"], job["scheduled_for"]) for job in decided).values())
    assert len({message.id for message in broker.drain(cluster.broker)}) == len(made)
    if step > timedelta(0):
        # One late run each, what is on time, and one record of the hour between.
        assert len(made) - before < 10 * 60
        assert {3500 < job["occurrences"] < 3601 for job in decided if job["reason"] == "too_late"} == {True}
    else:
        # The instants of the hour were decided: they are not decided again.
        assert len(made) - before <= 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("zone", "evening", "expected"),
    [
        (
            "Europe/Berlin",
            utc(2027, 3, 27, 22),
            {
                "30 2 * * *": [utc(2027, 3, 28, 1)],
                "0 9 * * *": [utc(2027, 3, 28, 7)],
                "30 1 * * *": [utc(2027, 3, 28, 0, 30)],
            },
        ),
        (
            "Europe/Berlin",
            utc(2027, 10, 30, 21),
            {"30 2 * * *": [utc(2027, 10, 31, 0, 30)], "0 9 * * *": [utc(2027, 10, 31, 8)]},
        ),
        (
            "America/New_York",
            utc(2026, 3, 8, 4),
            {"30 2 * * *": [utc(2026, 3, 8, 7)], "30 1 * * *": [utc(2026, 3, 8, 6, 30)]},
        ),
        (
            "America/New_York",
            utc(2026, 11, 1, 3),
            {"30 1 * * *": [utc(2026, 11, 1, 5, 30)], "0 9 * * *": [utc(2026, 11, 1, 14)]},
        ),
    ],
    ids=["berlin-spring", "berlin-autumn", "new-york-spring", "new-york-autumn"],
)
def test_p8_in_a_dst_night_each_fixed_run_goes_out_once_and_wildcards_follow_real_time(
    cluster: Cluster, database_clock: Clock, zone: str, evening: datetime, expected: dict[str, list[datetime]]
) -> None:
    # A lease so long that each step of the clock is still on time: every occurrence is decided by itself.
    cluster.settings = {"pgbeat_lease": 1800, "pgbeat_poll": 0.1}
    database_clock.stand_at(evening)
    wildcards = {"*/15 * * * *": timedelta(minutes=15), "0 * * * *": HOUR, "every 20m": timedelta(minutes=20)}
    for text in (*expected, *wildcards):
        insert(cluster.database, text, text, timezone=zone, overlap="allow")
    for _ in range(2):
        cluster.beat(wait=False)
    eventually(lambda: all(row(cluster.database, text)["next_run_at"] for text in expected), 20, "planned")
    waiting = "select 1 from pgbeat.periodic_task where next_run_at is null or next_run_at <= pgbeat.now()"
    for _ in range(12 * 3):
        database_clock.advance(timedelta(minutes=20))
        eventually(lambda: not sql(cluster.database, waiting), 10, "all that is due is decided", every=0.02)

    for text, instants in expected.items():
        assert instants == [job["scheduled_for"] for job in jobs(cluster.database, text)][: len(instants)]
        assert len(instants) == len(
            [job for job in jobs(cluster.database, text) if job["scheduled_for"] < evening + 12 * HOUR]
        )
    for text, every in wildcards.items():
        instants = [job["scheduled_for"] for job in jobs(cluster.database, text)]
        assert {every} == {later - earlier for earlier, later in itertools.pairwise(instants)}
        assert 12 * HOUR // every == len(instants)
    assert {"submitted"} == {job["state"] for job in jobs(cluster.database)}
