"""P9: what any SQL client writes takes effect within a second."""

from __future__ import annotations

import time
from datetime import timedelta

from tests.harness import broker
from tests.harness.cost import slowness
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.wait import eventually

SECOND = timedelta(seconds=1)


def test_p9_a_row_inserted_by_sql_is_submitted_at_its_first_occurrence_and_on_its_grid(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "d1", "every 2s", overlap="allow")
    eventually(lambda: len(jobs(cluster.database, "d1")) >= 3, 15, "three runs")

    stored = row(cluster.database, "d1")
    instants = [job["scheduled_for"] for job in jobs(cluster.database, "d1")]
    assert [stored["created_at"] + 2 * number * SECOND for number in (1, 2, 3)] == instants[:3]
    late = [job["sent_at"] - job["scheduled_for"] for job in jobs(cluster.database, "d1")]
    assert timedelta(0) <= min(late)
    assert max(late) < SECOND * slowness()


def test_p9_the_columns_of_a_row_reach_the_message(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    insert(
        cluster.database,
        "d2",
        "every 1h",
        task="elsewhere.task",
        args=[1],
        kwargs={"a": "ü"},
        queue="q2",
        priority=7,
        options={"headers": {"tenant": "x"}},
        next_run_at=row_now(cluster.database),
    )
    eventually(lambda: broker.depth(cluster.broker, "q2") == 1, 10, "the message")

    (message,) = broker.drain(cluster.broker, "q2")
    (job,) = jobs(cluster.database, "d2")
    assert ([1], {"a": "ü"}, "elsewhere.task", str(job["id"])) == (
        message.args,
        message.kwargs,
        message.task,
        message.id,
    )
    assert 7 == message.properties["priority"]
    assert ("x", True, "d2") == (
        message.headers["tenant"],
        message.headers["celery_beat_task"],
        message.headers["pgbeat"]["periodic_task"],
    )
    assert job["scheduled_for"].isoformat() == message.headers["pgbeat"]["scheduled_for"]


def test_p9_a_pause_an_edit_and_a_delete_take_effect_within_a_second(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    for name in ("paused", "edited", "deleted"):
        insert(cluster.database, name, "every 1s", overlap="allow")
    eventually(lambda: len(jobs(cluster.database)) >= 6, 15, "all three run")

    sql(cluster.database, "update pgbeat.periodic_task set enabled = false where name = 'paused'")
    sql(cluster.database, "update pgbeat.periodic_task set args = '[\"new\"]' where name = 'edited'")
    sql(cluster.database, "delete from pgbeat.periodic_task where name = 'deleted'")
    changed_at = row_now(cluster.database)
    time.sleep(3)

    later = [job for job in jobs(cluster.database) if job["scheduled_for"] > changed_at + SECOND]
    assert {"edited"} == {job["periodic_task"] for job in later}
    arguments = {message.id: message.args for message in broker.drain(cluster.broker)}
    assert {"new"} == {arguments[str(job["id"])][0] for job in later}


def test_p9_a_new_schedule_takes_effect_at_once_and_a_resume_sends_no_burst(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "slow", "every 1h", overlap="allow")
    eventually(lambda: row(cluster.database, "slow")["next_run_at"], 20, "planned")
    sql(cluster.database, "update pgbeat.periodic_task set schedule = 'every 1s'")
    eventually(lambda: len(jobs(cluster.database, "slow")) >= 2, 20, "the new schedule runs")

    sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
    time.sleep(4)
    resumed_at = row_now(cluster.database)
    sql(cluster.database, "update pgbeat.periodic_task set enabled = true")
    count = len(jobs(cluster.database, "slow"))
    eventually(lambda: len(jobs(cluster.database, "slow")) > count, 20, "it runs again")

    new = jobs(cluster.database, "slow")[count:]
    assert resumed_at < new[0]["scheduled_for"]
    assert {1} == {job["occurrences"] for job in jobs(cluster.database, "slow")}


def test_p9_a_next_run_set_by_sql_runs_within_a_second_once(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "hourly", "every 1h")
    planned = eventually(lambda: row(cluster.database, "hourly")["next_run_at"], 20, "planned")
    set_at = row_now(cluster.database)
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now()")

    eventually(lambda: broker.depth(cluster.broker) == 1, 20, "the message")
    time.sleep(1)
    (job,) = jobs(cluster.database, "hourly")
    assert job["sent_at"] - set_at < SECOND * slowness()
    assert planned == row(cluster.database, "hourly")["next_run_at"]


def test_p9_a_trigger_by_sql_is_sent_at_its_commit_and_moves_no_schedule(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "hourly", "every 1h")
    planned = eventually(lambda: row(cluster.database, "hourly")["next_run_at"], 20, "planned")
    triggered_at = row_now(cluster.database)
    (made,) = sql(cluster.database, "select pgbeat.trigger('hourly') as id")

    eventually(lambda: broker.depth(cluster.broker) == 1, 20, "the message")
    (job,) = jobs(cluster.database, "hourly")
    assert (made["id"], "manual") == (str(job["id"]), job["origin"])
    eventually(lambda: jobs(cluster.database, "hourly")[0]["sent_at"], 20, "confirmed")
    assert jobs(cluster.database, "hourly")[0]["sent_at"] - triggered_at < SECOND * slowness()
    assert (planned, None) == (
        row(cluster.database, "hourly")["next_run_at"],
        row(cluster.database, "hourly")["last_run_at"],
    )


def test_p9_without_the_listening_connection_changes_take_effect_within_the_poll(cluster: Cluster) -> None:
    cluster.beat(settings={"pgbeat_poll": 1}).wait_for_log("works on", 20)
    listening = "from pg_stat_activity where query like 'listen%%' and pid <> pg_backend_pid()"
    sql(cluster.database, f"select pg_terminate_backend(pid) {listening}")
    insert(cluster.database, "d17", "every 1h", next_run_at=row_now(cluster.database))
    inserted_at = row_now(cluster.database)

    eventually(lambda: jobs(cluster.database, "d17") and jobs(cluster.database, "d17")[0]["sent_at"], 20, "sent")
    assert jobs(cluster.database, "d17")[0]["sent_at"] - inserted_at < 2 * SECOND * slowness()
    eventually(lambda: sql(cluster.database, f"select 1 {listening}"), 10, "the beat listens again")


def test_p9_a_change_takes_effect_at_its_commit_and_not_before(cluster: Cluster) -> None:
    """B-10."""
    import psycopg2

    cluster.beat().wait_for_log("works on", 20)
    caller = psycopg2.connect(cluster.database)
    caller.cursor().execute(
        "insert into pgbeat.periodic_task (name, task, next_run_at) values ('b10', 'app.probe', clock_timestamp())"
    )
    time.sleep(2)
    assert [] == jobs(cluster.database, "b10")
    caller.commit()
    committed_at = row_now(cluster.database)

    eventually(lambda: jobs(cluster.database, "b10"), 20, "submitted")
    assert jobs(cluster.database, "b10")[0]["created_at"] - committed_at < SECOND * slowness()
    caller.close()


def row_now(url: str) -> object:
    (answer,) = sql(url, "select clock_timestamp() as now")
    return answer["now"]
