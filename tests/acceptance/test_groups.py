"""Groups, with real beats and workers: how many of their jobs run at a time, and one statement that pauses them all."""

from __future__ import annotations

from datetime import datetime

from tests.harness import checker
from tests.harness.broker import both_brokers
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, sql
from tests.harness.wait import eventually


@both_brokers
def test_two_tasks_of_one_group_never_run_at_the_same_time(cluster: Cluster) -> None:
    """B-11. With two workers that have room for more. A row of the group that runs next year takes no place."""
    sql(cluster.database, "select pgbeat.limit_group('serial', 1)")
    insert(cluster.database, "next-year", "2100-01-01T00:00:00Z", group_name="serial")
    for _ in range(2):
        cluster.worker(concurrency=2)
        cluster.beat(wait=False)
    for name in ("a", "b"):
        insert(cluster.database, name, "every 1s", args=[name, 0.7], group_name="serial")
    eventually(lambda: all(len(cluster.probe.runs(name)) >= 3 for name in "ab"), 60, "both run three times")

    runs = [run for name in "ab" for run in cluster.probe.runs(name)]
    assert [] == checker.overlapping([run for run in runs if run.finished_at is not None])
    assert 1 == checker.most_at_once(runs)
    assert {"a", "b"} == {job["periodic_task"] for job in jobs(cluster.database)}


def test_a_limit_of_two_holds_in_the_whole_cluster_while_a_beat_is_killed(cluster: Cluster) -> None:
    """B-12. And no job that waited is lost."""
    cluster.settings = {"pgbeat_lease": 3}
    sql(cluster.database, "select pgbeat.limit_group('pair', 2)")
    killed = cluster.beat()
    cluster.beat()
    for _ in range(2):
        cluster.worker(concurrency=4)
    names = [f"row-{number}" for number in range(5)]
    for name in names:
        insert(
            cluster.database, name, "every 2s", args=[name, 0.5], group_name="pair", overlap="buffer_all", max_runs=4
        )
    eventually(lambda: len(cluster.probe.runs()) >= 5, 40, "some have run")
    killed.kill()
    eventually(lambda: len([run for run in cluster.probe.runs() if run.finished_at]) == 20, 90, "all have run")

    runs = cluster.probe.runs()
    assert checker.most_at_once(runs) == 2
    assert [] == checker.doubled(runs)
    assert dict.fromkeys(names, 4) == {name: len(cluster.probe.runs(name)) for name in names}
    assert [] == sql(cluster.database, "select id from pgbeat.active_job")


def test_p5_without_tracking_workers_the_result_backend_frees_the_place_in_the_group(
    cluster: Cluster, redis_url: str
) -> None:
    """Neither row is due again today, so neither asks for itself."""
    cluster.settings = {"result_backend": redis_url}
    cluster.worker(settings={"imports": []})
    sql(cluster.database, "select pgbeat.limit_group('serial', 1)")
    for name in ("a", "b"):
        insert(cluster.database, name, "every 1d", args=[name, 0.5], group_name="serial", tracking="result")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    cluster.beat()

    eventually(lambda: all(cluster.probe.runs(name) for name in "ab"), 60, "both run")
    assert [] == checker.overlapping([run for name in "ab" for run in cluster.probe.runs(name)])


def test_one_update_pauses_all_rows_of_a_group_and_one_resumes_them(cluster: Cluster) -> None:
    """B-13: what is paused sends nothing, what it missed is not caught up."""
    sql(cluster.database, "insert into pgbeat.task_group (name) values ('g')")
    cluster.worker()
    cluster.beat().wait_for_log("works on", 20)
    for name in ("a", "b"):
        insert(cluster.database, name, "every 1s", group_name="g")
    insert(cluster.database, "other", "every 1s")
    eventually(lambda: all(cluster.probe.runs(name) for name in ("a", "b")), 30, "both run")

    sql(cluster.database, "update pgbeat.task_group set paused = true, pause_reason = 'stocktaking'")
    (paused_at,) = [row["now"] for row in sql(cluster.database, "select pgbeat.now() as now")]
    others = len(cluster.probe.runs("other"))
    eventually(lambda: len(cluster.probe.runs("other")) >= others + 3, 30, "others run on")
    assert [] == decided_after(cluster, paused_at)
    (sentence,) = [row["explain"] for row in sql(cluster.database, "select pgbeat.explain('a')")]
    assert "its group 'g' is paused (stocktaking)" in sentence

    (resumed_at,) = [row["now"] for row in sql(cluster.database, "select pgbeat.now() as now")]
    sql(cluster.database, "update pgbeat.task_group set paused = false")
    eventually(lambda: {"a", "b"} <= set(decided_after(cluster, resumed_at)), 20, "both run again")
    missed = [
        job
        for job in jobs(cluster.database)
        if job["periodic_task"] != "other" and paused_at < job["scheduled_for"] < resumed_at
    ]
    assert [] == missed


def decided_after(cluster: Cluster, instant: datetime) -> list[str]:
    """Return the rows of the group that had an occurrence decided after an instant."""
    return [
        job["periodic_task"]
        for job in jobs(cluster.database)
        if job["periodic_task"] != "other" and job["created_at"] > instant
    ]
