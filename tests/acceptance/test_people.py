"""Tasks for people with real beats and workers: no message is sent, whatever dies, and each new one is told of once."""

from __future__ import annotations

from tests.harness import broker
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, sql
from tests.harness.wait import eventually


def states(cluster: Cluster, name: str) -> list[str]:
    return [job["state"] for job in jobs(cluster.database, name)]


def test_people_work_beside_machines_whatever_dies_meanwhile(cluster: Cluster) -> None:
    cluster.settings = {"pgbeat_lease": 1, "pgbeat_poll": 0.5, "pgbeat_dead_after": 2, "pgbeat_heartbeat": 0.5}
    worker = cluster.worker()
    beats = [cluster.beat(app="tests.acceptance.telling_app") for _ in range(2)]
    insert(cluster.database, "people", "every 1s", task=None, kind="human", target=["finance"], overlap="buffer_one")
    insert(cluster.database, "machine", "every 1s", args=["machine", 0])
    eventually(
        lambda: {"created", "buffered"} <= set(states(cluster, "people")), 30, "one that is open, one that waits"
    )
    (first,) = [job for job in jobs(cluster.database, "people") if job["state"] == "created"]
    eventually(lambda: any(f"told of {first['id']} of people" in beat.log for beat in beats), 20, "the signal")

    sql(cluster.database, "select pgbeat.pick_up(%(id)s, 'ann', array['finance'])", id=first["id"])
    beats[0].kill()
    worker.kill()
    cluster.worker()
    cluster.beat(app="tests.acceptance.telling_app")
    before = len(cluster.probe.runs("machine"))
    eventually(lambda: len(cluster.probe.runs("machine")) >= before + 4, 40, "four runs of the machine's")

    assert {"running", "buffered", "skipped"} >= set(states(cluster, "people"))
    sql(cluster.database, "select pgbeat.finish(%(id)s, 'succeeded', 'signed')", id=first["id"])
    eventually(lambda: "created" in states(cluster, "people"), 20, "the next one is open")
    (ended,) = [job for job in jobs(cluster.database, "people") if job["id"] == first["id"]]
    assert ("succeeded", "ann", "signed", 0, None) == tuple(
        ended[column] for column in ("state", "owner", "note", "sends", "sent_at")
    )
    assert [] == cluster.probe.runs("people")
    assert 1 == sum(beat.log.count(f"told of {first['id']}") for beat in beats)
    assert 0 == broker.depth(cluster.broker, "celery")
