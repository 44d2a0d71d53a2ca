"""P8, P9: blackout windows, jitter and catch-up, with real beats under a set clock."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from tests.harness import broker, checker
from tests.harness.clock import Clock
from tests.harness.cost import slowness
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.wait import eventually

SATURDAY = datetime(2026, 12, 5, 10, tzinfo=timezone.utc)
MONDAY = datetime(2026, 12, 7, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
NIGHT = ["0 0 * * * PT5H"]
WAITING = (
    "select 1 from pgbeat.periodic_task where planned_revision <> revision or next_run_at <= pgbeat.now() "
    "union all select 1 from pgbeat.active_job where state = 'pending'"
)


def settle(cluster: Cluster) -> None:
    """Wait until everything that is due is decided and sent."""
    eventually(lambda: not sql(cluster.database, WAITING), 20, "all that is due is sent", every=0.02)


def test_a_run_triggered_in_a_blackout_is_sent_when_the_blackout_ends(cluster: Cluster, database_clock: Clock) -> None:
    database_clock.stand_at(SATURDAY)
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "b1", None, blackout=["0 0 * * sat P2D"], next_run_at=SATURDAY, timezone="UTC")

    eventually(lambda: row(cluster.database, "b1")["next_run_at"] == MONDAY, 20, "postponed")
    assert [] == jobs(cluster.database)
    database_clock.stand_at(MONDAY)

    eventually(lambda: broker.depth(cluster.broker) == 1, 10, "it goes out")
    assert [SATURDAY] == [job["scheduled_for"] for job in jobs(cluster.database, "b1")]


def test_a_run_that_began_before_a_blackout_goes_on_into_it(cluster: Cluster, database_clock: Clock) -> None:
    """B-6."""
    database_clock.stand_at(MONDAY - timedelta(seconds=2))
    cluster.beat().wait_for_log("works on", 20)
    cluster.worker(concurrency=1)
    seconds = 5
    insert(cluster.database, "long", "@hourly", args=["long", seconds], blackout=NIGHT, timezone="UTC")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = pgbeat.now() where name = 'long'")
    (run,) = eventually(cluster.probe.runs, 20, "it runs")
    assert run.finished_at is None

    database_clock.stand_at(MONDAY + timedelta(seconds=2))

    ended = eventually(lambda: jobs(cluster.database, "long")[0]["finished_at"], 20, "it ends")
    assert MONDAY < ended
    assert ["succeeded"] == [job["state"] for job in jobs(cluster.database, "long")]
    assert row(cluster.database, "long")["next_run_at"] >= MONDAY + 5 * HOUR


def test_occurrences_held_back_by_a_blackout_are_sent_once_at_its_end(cluster: Cluster, database_clock: Clock) -> None:
    cluster.settings = {"pgbeat_lease": 900, "pgbeat_poll": 0.1}
    database_clock.stand_at(MONDAY - HOUR)
    for _ in range(2):
        cluster.beat(wait=False)
    common = {"timezone": "UTC", "overlap": "allow", "blackout": NIGHT}
    insert(cluster.database, "nightly", "30 2 * * *", **common)
    insert(cluster.database, "tens", "*/10 * * * *", **common)
    insert(cluster.database, "skipping", "30 2 * * *", **{**common, "blackout_action": "skip"})
    insert(cluster.database, "spread", "0 3 * * *", **{**common, "jitter": "1 hour"})
    settle(cluster)
    for _ in range(8 * 6):
        database_clock.advance(timedelta(minutes=10))
        settle(cluster)

    def sent(name: str) -> list[tuple[datetime, datetime]]:
        rows = sql(
            cluster.database,
            "select scheduled_for, created_at from pgbeat.job "
            "where periodic_task = %(name)s and state = 'sent' order by 1",
            name=name,
        )
        return [(job["scheduled_for"], job["created_at"]) for job in rows]

    assert [(MONDAY + 2.5 * HOUR, MONDAY + 5 * HOUR)] == sent("nightly")
    before = [MONDAY - HOUR + timedelta(minutes=10 * n) for n in range(1, 6)]
    after = [MONDAY + 5 * HOUR + timedelta(minutes=10 * n) for n in range(13)]
    assert [*before, *after] == [instant for instant, _ in sent("tens")]
    (merged,) = [job for job in jobs(cluster.database, "tens") if job["state"] == "skipped"]
    assert ("blackout", 30, MONDAY) == (merged["reason"], merged["occurrences"], merged["scheduled_for"])
    assert [] == sent("skipping")
    assert ["blackout"] == [job["reason"] for job in jobs(cluster.database, "skipping")]
    assert [(MONDAY + 3 * HOUR, MONDAY + 5 * HOUR)] == sent("spread")


def test_p9_a_changed_named_window_takes_effect_within_a_second(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    sql(cluster.database, "insert into pgbeat.blackout (name, windows) values ('freeze', '{}')")
    insert(cluster.database, "a", "every 1s", blackout=["window: freeze"], overlap="allow")
    eventually(lambda: len(jobs(cluster.database, "a")) >= 2, 10, "it runs")

    (now,) = sql(
        cluster.database,
        "update pgbeat.blackout set windows = array['0 0 1 1 * P365D'] returning clock_timestamp() as at",
    )

    def planned() -> bool:
        instant = row(cluster.database, "a")["next_run_at"]  # none until the beat has looked
        return instant is not None and instant.year > now["at"].year

    eventually(planned, 20, "planned anew")

    latest = max(job["created_at"] for job in jobs(cluster.database, "a"))
    assert latest - now["at"] < timedelta(seconds=slowness())


def test_p6_a_window_that_never_ends_stops_only_the_rows_that_use_it(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "bad", "every 1s", blackout=["* * * * * PT1M"])
    insert(cluster.database, "good", "every 1s", blackout=["0 0 1 1 * PT0.001S"], overlap="allow")

    eventually(lambda: row(cluster.database, "bad")["problem"], 20, "the problem is written")
    assert "follow each other without a free moment" in row(cluster.database, "bad")["problem"]
    eventually(lambda: jobs(cluster.database, "good"), 10, "the other one runs")


def test_occurrences_missed_in_six_hours_run_one_after_another_in_order(
    cluster: Cluster, database_clock: Clock
) -> None:
    six = MONDAY + 6 * HOUR
    cluster.settings = {"pgbeat_poll": 0.1}
    database_clock.stand_at(six)
    beat = cluster.beat()
    beat.wait_for_log("works on", 20)
    insert(cluster.database, "s7", "*/5 * * * *", catchup="all", timezone="UTC")
    insert(cluster.database, "latest", "*/5 * * * *", timezone="UTC")
    eventually(lambda: row(cluster.database, "s7")["next_run_at"], 20, "planned")
    beat.stop()
    database_clock.run_from(six + 6 * HOUR + timedelta(minutes=2))
    for _ in range(2):
        cluster.beat(wait=False)
    cluster.worker(concurrency=4)

    eventually(lambda: len(cluster.probe.runs("s7")) == 72, 60, "all have run")
    runs = cluster.probe.runs("s7")
    assert [six + timedelta(minutes=5 * n) for n in range(1, 73)] == [run.scheduled_for for run in runs]
    assert {"catchup"} == {run.origin for run in runs}
    assert [] == checker.overlapping(runs)
    assert [six + 6 * HOUR] == [run.scheduled_for for run in cluster.probe.runs("latest")]
    (rest,) = [job for job in jobs(cluster.database, "latest") if job["state"] == "skipped"]
    assert ("too_late", 71) == (rest["reason"], rest["occurrences"])
    assert six + 6 * HOUR + timedelta(minutes=5) == row(cluster.database, "s7")["next_run_at"]
