"""Alerts and metrics of real beats."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.harness.clock import Clock
from tests.harness.inbox import Inbox
from tests.harness.processes import Beat, Cluster
from tests.harness.rows import insert, insert_many, row, sql
from tests.harness.scrape import free_port, scraped
from tests.harness.wait import eventually

MINUTE = timedelta(minutes=1)
# A beat is missed after three seconds, and what is late for two more than the view's patience is told.
SHORT_LIVES = {"pgbeat_dead_after": 3, "pgbeat_poll": 0.5, "pgbeat_lease": 2, "pgbeat_alert_after": 40}


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    made = Inbox()
    yield made
    made.close()


def alerts(cluster: Cluster) -> list[tuple[str, str]]:
    return [(found["kind"], found["name"]) for found in sql(cluster.database, "select * from pgbeat.alert")]


def node_of(cluster: Cluster, beat: Beat) -> str:
    (found,) = sql(cluster.database, "select id from pgbeat.node where pid = %(pid)s", pid=beat.pid)
    return str(found["id"])


def started(cluster: Cluster, **settings: Any) -> Beat:
    beat = cluster.beat(settings={**SHORT_LIVES, **settings})
    beat.wait_for_log("works on", 20)
    return beat


def test_one_alert_is_raised_for_a_beat_that_is_killed(cluster: Cluster, inbox: Inbox) -> None:
    beats = [started(cluster, pgbeat_alert_webhook=inbox.url) for _ in range(3)]
    victim, *others = beats
    node, pid = node_of(cluster, victim), victim.pid

    victim.kill()
    eventually(inbox.alerts, 30, "the alert")
    looks_later = sql(cluster.database, "select pgbeat.now() + interval '4 seconds' as at")[0]["at"]
    eventually(lambda: sql(cluster.database, "select pgbeat.now() > %(at)s as is", at=looks_later)[0]["is"], 10, "4 s")

    assert [("dead_beat", node)] == [(alert["kind"], alert["name"]) for alert in inbox.alerts()]
    assert f"(process {pid}) has not been seen since" in inbox.alerts()[0]["reason"]
    assert 1 == sum(beat.log.count("A beat is dead") for beat in others)
    assert [("dead_beat", node)] == alerts(cluster)

    victim.start().wait_for_log("works on", 20)  # on the same host, where the dead one is known for certain
    eventually(lambda: not alerts(cluster), 20, "the alert is over")


def test_no_alert_is_raised_for_a_beat_that_is_stopped(cluster: Cluster, inbox: Inbox) -> None:
    stopped, killed, _ = [started(cluster, pgbeat_alert_webhook=inbox.url) for _ in range(3)]
    node = node_of(cluster, killed)

    stopped.stop()
    killed.kill()
    eventually(inbox.alerts, 30, "the alert about the one that was killed")

    assert [node] == [alert["name"] for alert in inbox.alerts()]


def test_one_alert_is_raised_while_beats_cannot_publish_and_it_ends_when_they_can(
    cluster: Cluster, inbox: Inbox, database_clock: Clock
) -> None:
    broker = cluster.broker
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cluster.broker = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
    beats = [started(cluster, pgbeat_alert_webhook=inbox.url) for _ in range(2)]
    insert(cluster.database, "stuck", "every 1h")
    insert(cluster.database, "well", "every 1d")
    eventually(lambda: row(cluster.database, "stuck")["next_run_at"], 10, "the row is planned")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = pgbeat.now() where name = 'stuck'")

    database_clock.advance(MINUTE)
    eventually(inbox.alerts, 30, "the alert")

    (alert,) = inbox.alerts()
    assert ("overdue", "stuck") == (alert["kind"], alert["name"])
    assert alert["late_by"] > 60
    assert "says of its broker since" in alert["reason"]
    assert 1 == sum(beat.log.count("'stuck' is overdue") for beat in beats)

    cluster.broker = broker
    started(cluster)
    cluster.worker()
    eventually(lambda: not alerts(cluster), 30, "the alert is over")
    assert 1 == len(inbox.alerts())


def test_a_step_of_the_clock_of_the_database_raises_no_alert(
    cluster: Cluster, inbox: Inbox, database_clock: Clock
) -> None:
    """Everything looks late for the moment that beats take to catch up, and each other beat looks dead.

    They have `pgbeat_dead_after` for it: ten seconds here, which a slow machine may need, and before the step as long
    a time of contact, after which they do raise alerts.
    """
    insert_many(cluster.database, 20)
    beats = [started(cluster, pgbeat_alert_webhook=inbox.url, pgbeat_dead_after=10) for _ in range(2)]
    cluster.worker()
    eventually(lambda: len(cluster.probe.runs()) >= 20 * 12, 60, "twelve rounds, of a second each")

    database_clock.advance(timedelta(hours=1))
    runs = len(cluster.probe.runs())
    eventually(lambda: len(cluster.probe.runs()) >= runs + 200, 60, "ten more rounds")

    assert ([], [0, 0]) == (inbox.alerts(), [beat.log.count("A beat is dead") for beat in beats])


def test_prometheus_reads_metrics_of_the_beat_and_of_the_cluster(cluster: Cluster) -> None:
    port = free_port()
    insert_many(cluster.database, 5)
    insert(cluster.database, "forbidden", "every 1s", task="os.system")
    settings = {"pgbeat_metrics_port": port, "pgbeat_allowed_tasks": ["app.*"]}
    beat = started(cluster, **settings)
    cluster.worker()
    eventually(lambda: scraped(port)["pgbeat_sent_total"] >= 20, 40, "four rounds")

    found = scraped(port)
    assert (1, 1, 1, 0) == tuple(found[f"pgbeat_{name}"] for name in ("database_up", "broker_up", "beats", "overdue"))
    assert found["pgbeat_lateness_seconds_count"] == found["pgbeat_sent_total"]
    assert found["pgbeat_lateness_seconds_bucket 5.0"] > 0.9 * found["pgbeat_sent_total"]
    assert found["pgbeat_since_cycle_seconds"] < 10
    assert found["pgbeat_skipped_total not_allowed"] >= 3
    assert "pgbeat_active_jobs sent" in found

    beat.stop()
    with pytest.raises(OSError):
        scraped(port)


def test_a_beat_without_its_broker_or_its_database_says_so(cluster: Cluster) -> None:
    port, nowhere = free_port(), free_port()
    insert(cluster.database, "due", next_run_at="2026-01-01T00:00:00Z", schedule=None)
    cluster.broker = f"redis://127.0.0.1:{nowhere}/0"
    beat = started(cluster, pgbeat_metrics_port=port)
    eventually(lambda: scraped(port)["pgbeat_broker_up"] == 0, 20, "the broker is missed")
    assert 1 == scraped(port)["pgbeat_database_up"]
    beat.stop()

    blind = free_port()
    environment = {"PGBEAT_URL": f"postgresql://127.0.0.1:{nowhere}/nowhere"}
    cluster.beat(settings={"pgbeat_metrics_port": blind}, environment=environment).wait_for_log("Metrics are at", 20)
    assert 0 == scraped(blind)["pgbeat_database_up"]
