"""A range of occurrences filled in by real beats and workers."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.harness import checker
from tests.harness.faults import Fault
from tests.harness.probe import Run
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.wait import eventually

STORE = "celery_pgbeat.postgres.beat_queries:BeatQueries"
MINUTE = timedelta(minutes=1)
# What lies between them is all that a step of a backfill is.
POINTS = (
    Fault(f"{STORE}.mark_backfill", "kill", "after", answered=True, call=0),
    Fault(f"{STORE}.submit_backfill", "kill", "before", call=0),
    Fault(f"{STORE}.submit_backfill", "kill", "after", call=0),
    Fault(f"{STORE}.confirm", "kill", "before", call=0),
    Fault(f"{STORE}.confirm", "kill", "after", call=0),
)


def ask(url: str, name: str, minutes: int, **others: Any) -> str:
    """Ask for this number of whole minutes, up to now."""
    places = "".join(f", {word} => %({word})s" for word in others)
    (made,) = sql(
        url,
        "select pgbeat.backfill(%(name)s, date_trunc('minute', now()) - %(back)s, date_trunc('minute', now()) "
        f"- interval '1 minute'{places}) as id",
        name=name,
        back=minutes * MINUTE,
        **others,
    )
    return str(made["id"])


def stored(url: str, backfill: str) -> dict[str, Any]:
    (found,) = sql(url, "select * from pgbeat.backfill where id = %(id)s", id=backfill)
    return found


def wanted(url: str, backfill: str) -> list[tuple[str, datetime]]:
    """List the minutes of a range, by arithmetic."""
    found = stored(url, backfill)
    return checker.grid(found["periodic_task"], found["since"], MINUTE, found["until"])


def most_at_once(runs: list[Run]) -> int:
    """Return how many of these ran at one moment."""
    ends = [(run.finished_at, -1) for run in runs if run.finished_at is not None]
    steps = sorted([*((run.started_at, 1) for run in runs), *ends])
    running, most = 0, 0
    for _, step in steps:
        running += step
        most = max(most, running)
    return most


def is_over(url: str, backfill: str) -> bool:
    """Tell whether every occurrence is decided, and then whether no job of it is left."""
    finished = stored(url, backfill)["state"] == "finished"
    return finished and not sql(url, "select id from pgbeat.active_job where origin = 'backfill'")


def test_a_backfill_of_a_paused_row_runs_two_jobs_at_a_time_and_each_occurrence_once(cluster: Cluster) -> None:
    cluster.worker(concurrency=4)
    for _ in range(2):
        cluster.beat()
    insert(cluster.database, "paused", "* * * * *", enabled=False, max_runs=1, args=["paused", 0.3])
    before = row(cluster.database, "paused")

    backfill = ask(cluster.database, "paused", 30, max_active=2)
    eventually(lambda: is_over(cluster.database, backfill), 60, "the range is filled")

    runs, due = cluster.probe.runs("paused"), wanted(cluster.database, backfill)
    assert 30 == len(due) == len(runs)
    assert [] == checker.lost(due, runs)
    assert [] == checker.doubled(runs)
    assert {"backfill"} == {run.origin for run in runs}
    assert 2 == most_at_once(runs)
    assert sorted(run.scheduled_for for run in runs if run.scheduled_for) == [instant for _, instant in due]
    assert before == row(cluster.database, "paused")
    done = stored(cluster.database, backfill)
    assert (30, 30, 0) == (done["total"], done["submitted"], done["skipped"])
    # Without a wake-up, thirty rounds take a minute of polls.
    assert done["finished_at"] - done["created_at"] < timedelta(seconds=25)


@pytest.mark.parametrize("beats", [1, 2])
def test_p2_a_beat_killed_around_any_step_of_a_backfill_loses_and_doubles_nothing(
    cluster: Cluster, tmp_path: Path, beats: int
) -> None:
    cluster.settings = {"pgbeat_lease": 2, "pgbeat_poll": 0.5}
    cluster.worker(settings={"pgbeat_dead_after": 30}, concurrency=4)
    insert(cluster.database, "filled", "* * * * *", enabled=False, args=["filled", 0.1])
    for _ in range(beats - 1):
        cluster.beat()
    traps = [tmp_path / f"{number}.trap" for number in range(len(POINTS))]
    inject = [
        Fault(point.target, point.action, point.when, call=0, trap=str(trap), answered=point.answered)
        for point, trap in zip(POINTS, traps, strict=True)
    ]
    doomed = cluster.beat(inject=inject)
    doomed.wait_for_log("works on", 30)

    backfills = []
    for number, trap in enumerate(traps):
        trap.touch()
        # Ranges side by side, so that nothing is there twice.
        until = f"date_trunc('minute', now()) - interval '{number * 20 + 1} minutes'"
        (made,) = sql(
            cluster.database,
            f"select pgbeat.backfill('filled', {until} - interval '15 minutes', {until}, max_active => 2) as id",
        )
        backfills.append(str(made["id"]))
        eventually(lambda: not doomed.is_running(), 30, f"a beat comes to {POINTS[number]}")
        assert not trap.exists(), doomed.tail()
        doomed.end()
        if beats > 1:  # the other one has to wait for the lease, as if the dead one had lived elsewhere
            sql(cluster.database, "update pgbeat.node set hostname = 'elsewhere'")
        doomed.start(wait=False)
        doomed.wait_for_log("works on", 30)
    for backfill in backfills:
        eventually(lambda here=backfill: is_over(cluster.database, here), 60, "all ranges are filled")

    runs = cluster.probe.runs("filled")
    due = [occurrence for backfill in backfills for occurrence in wanted(cluster.database, backfill)]
    assert 16 * len(POINTS) == len(due)
    assert [] == checker.lost(due, runs)
    assert [] == checker.doubled(runs)
    assert Counter(instant for _, instant in due) == Counter(run.scheduled_for for run in runs)
    assert most_at_once(runs) <= 2


def test_p4_a_backfill_of_a_row_that_runs_never_overlaps_its_ticks(cluster: Cluster) -> None:
    cluster.worker(concurrency=4)
    cluster.beat()
    insert(cluster.database, "busy", "* * * * * *", args=["busy", 0.3])
    eventually(lambda: row(cluster.database, "busy")["next_run_at"], 20, "planned")

    (made,) = sql(
        cluster.database,
        "select pgbeat.backfill('busy', date_trunc('second', now()) - interval '70 seconds', "
        "date_trunc('second', now()) - interval '60 seconds') as id",
    )
    eventually(lambda: is_over(cluster.database, str(made["id"])), 60, "the range is filled")

    eventually(lambda: "schedule" in {run.origin for run in cluster.probe.runs("busy")}, 20, "a tick goes out again")

    runs = cluster.probe.runs("busy")
    assert 11 == len([run for run in runs if run.origin == "backfill"])
    assert [] == checker.overlapping(runs)
    assert [] == checker.doubled(runs)
    # The ticks that met a job of the backfill were decided by `overlap`.
    assert {"overlap"} == {job["reason"] for job in jobs(cluster.database, "busy") if job["state"] == "skipped"}


def test_p4_under_buffer_one_a_row_keeps_ticking_during_its_backfill(cluster: Cluster) -> None:
    """What the docs recommend; under `skip` jobs that follow each other closely leave them hardly any gap."""
    cluster.worker(concurrency=4)
    cluster.beat()
    insert(cluster.database, "busy", "* * * * * *", overlap="buffer_one", args=["busy", 0.3])
    eventually(lambda: row(cluster.database, "busy")["next_run_at"], 20, "planned")

    (made,) = sql(
        cluster.database,
        "select pgbeat.backfill('busy', date_trunc('second', now()) - interval '99 seconds', "
        "date_trunc('second', now()) - interval '80 seconds') as id",
    )
    eventually(lambda: is_over(cluster.database, str(made["id"])), 60, "the range is filled")

    runs = cluster.probe.runs("busy")
    filled = sorted(run.started_at for run in runs if run.origin == "backfill")
    ticks = [run for run in runs if run.origin == "schedule" and filled[0] < run.started_at < filled[-1]]
    assert 20 == len(filled)
    # One a second was due; a skipped one met another that waited, because the machine was busy.
    assert len(ticks) > (filled[-1] - filled[0]).total_seconds() / 2
    assert [] == checker.overlapping(runs)
    assert [] == checker.doubled(runs)
