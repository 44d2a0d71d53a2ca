"""Groups as queues, with real beats and workers: in order, after other groups, at a rate, paused by a failure."""

from __future__ import annotations

from datetime import timedelta

from tests.harness import checker
from tests.harness.broker import both_brokers
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, sql
from tests.harness.wait import eventually


def done(cluster: Cluster, name: str) -> int:
    return len([run for run in cluster.probe.runs(name) if run.finished_at is not None])


@both_brokers
def test_an_ordered_group_runs_in_the_order_of_the_schedule_on_two_beats_and_two_workers(cluster: Cluster) -> None:
    """B-11. Rows of one second that together take longer than a second: they queue, and nothing passes another."""
    sql(cluster.database, "select pgbeat.define_group('line', ordered => true)")
    insert(cluster.database, "next-year", "2100-01-01T00:00:00Z", group_name="line")
    for _ in range(2):
        cluster.worker(concurrency=2)
        cluster.beat(wait=False)
    names = [f"row-{number}" for number in range(4)]
    for name in names:
        insert(
            cluster.database, name, "every 1s", args=[name, 0.2], group_name="line", overlap="buffer_all", max_runs=3
        )
    eventually(lambda: all(done(cluster, name) == 3 for name in names), 90, "all have run three times")

    runs = cluster.probe.runs()
    assert 1 == checker.most_at_once(runs)
    assert [] == checker.out_of_order(runs)
    assert [] == checker.doubled(runs)


def test_a_group_starts_when_those_that_it_waits_for_have_nothing_to_do(cluster: Cluster) -> None:
    sql(
        cluster.database,
        "select pgbeat.limit_group('extract', 2);select pgbeat.define_group('load', waits_for => array['extract'])",
    )
    for number in range(4):
        insert(cluster.database, f"extract-{number}", "every 1d", args=[f"extract-{number}", 0.5], group_name="extract")
    insert(cluster.database, "load", "every 1d", args=["load"], group_name="load")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    cluster.worker(concurrency=4)
    for _ in range(2):
        cluster.beat(wait=False)
    eventually(lambda: done(cluster, "load"), 60, "the last one has run")

    (load,) = cluster.probe.runs("load")
    ends = [run.finished_at for number in range(4) for run in cluster.probe.runs(f"extract-{number}")]
    assert 4 == len(ends)
    assert all(end is not None and end <= load.started_at for end in ends)
    eventually(
        lambda: sql(cluster.database, "select 1 from pgbeat.task_group where name = 'load' and state = 'active'"),
        20,
        "the group is active again",
    )


def test_a_rate_limit_holds_in_the_whole_cluster_and_the_rows_take_turns(cluster: Cluster) -> None:
    sql(cluster.database, "select pgbeat.define_group('mails', rate_limit => '5/s')")
    cluster.worker(concurrency=4)
    for _ in range(3):
        cluster.beat().wait_for_log("works on", 20)
    for name, number in (("many", 15), ("few", 2)):
        insert(cluster.database, name, None, args=[name], group_name="mails", overlap="allow")
        sql(cluster.database, f"select pgbeat.trigger('{name}') from generate_series(1, {number})")
    eventually(lambda: len(cluster.probe.runs()) == 17, 60, "all have run")

    runs = sorted(cluster.probe.runs(), key=lambda run: run.started_at)
    began = [run.started_at for run in runs]
    assert began[-1] - began[0] >= timedelta(seconds=16 / 5 - 1), "17 at 5/s, the first of which may have been late"
    order = [run.periodic_task for run in runs]
    assert order.index("few") <= 6, order


@both_brokers
def test_a_failure_pauses_the_group_and_resuming_goes_on_with_the_same_or_the_next(cluster: Cluster) -> None:
    sql(cluster.database, "select pgbeat.define_group('line', ordered => true, pause_on_failure => true)")
    insert(cluster.database, "first", "every 1d", args=["first", 0, True], group_name="line")
    insert(cluster.database, "second", "every 1d", args=["second"], group_name="line")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = pgbeat.now() where name = 'first'")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = pgbeat.now() where name = 'second'")
    cluster.worker()
    log = cluster.beat()
    paused = "select pause_reason from pgbeat.task_group where state = 'paused'"
    (group,) = eventually(lambda: sql(cluster.database, paused), 60, "the group is paused")
    (failed,) = jobs(cluster.database, "first")

    assert group["pause_reason"].startswith(f"job {failed['id']} of 'first' failed at ")
    log.wait_for_log("Paused the group 'line'", 20)
    assert not cluster.probe.runs("second")

    sql(cluster.database, "update pgbeat.periodic_task set args = '[\"first\"]' where name = 'first'")
    sql(cluster.database, "select pgbeat.resume_group('line', retry => true)")
    eventually(lambda: done(cluster, "second"), 60, "the next one has run")
    runs = sorted(cluster.probe.runs(), key=lambda run: run.started_at)
    assert ["first", "first", "second"] == [run.periodic_task for run in runs]
    assert runs[0].scheduled_for == runs[1].scheduled_for
