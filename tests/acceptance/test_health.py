"""`health` as a probe of one pod, and of the broker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.test_cli import CELERY, SHORT_LIVES, script, shell
from tests.harness.probe_app import BROKER
from tests.harness.processes import Cluster
from tests.harness.rows import insert, sql
from tests.harness.scrape import free_port
from tests.harness.wait import eventually

LIVENESS = ("health", "--only", "beats", "--here", "--json")
LIVES = {name.upper(): str(value) for name, value in SHORT_LIVES.items()}


def checks(done: Any) -> dict[str, bool | None]:
    return {name: check["ok"] for name, check in json.loads(done.stdout)["checks"].items()}


def test_a_liveness_probe_checks_only_the_beats_of_this_host(cluster: Cluster) -> None:
    insert(cluster.database, "late", "every 1h")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now() - interval '1 hour', enabled = false")
    sql(
        cluster.database,
        "insert into pgbeat.node (id, role, hostname, pid, version, last_seen_at) "
        "values ('other', 'beat', 'another-pod', 1, '1', now() + interval '20 seconds')",
    )
    assert 3 == shell(cluster.database, *LIVENESS, **LIVES).returncode
    assert 0 == shell(cluster.database, "health", "--only", "beats", **LIVES).returncode

    beat = cluster.beat(settings=SHORT_LIVES)
    eventually(lambda: shell(cluster.database, *LIVENESS, **LIVES).returncode == 0, 20, "the beat of this host lives")

    beat.freeze()
    eventually(lambda: shell(cluster.database, *LIVENESS, **LIVES).returncode == 3, 20, "it hangs")


def test_health_knows_a_beat_from_its_start_to_its_clean_stop(cluster: Cluster) -> None:
    def beats() -> str:
        return str(json.loads(shell(cluster.database, "health", "--json", **LIVES).stdout)["checks"]["beats"]["detail"])

    assert beats().startswith("No beat is running: none has ever been started")
    beat = cluster.beat(settings=SHORT_LIVES)
    beat.wait_for_log("works on", 20)
    assert beats().startswith("1 alive, the last heartbeat ")
    beat.stop()
    assert beats().startswith("No beat is running: the last one was stopped at 2")


def test_an_overdue_row_does_not_fail_a_liveness_probe(cluster: Cluster) -> None:
    cluster.broker = f"redis://127.0.0.1:{free_port()}/0"
    cluster.beat(settings=SHORT_LIVES).wait_for_log("works on", 20)
    insert(cluster.database, "late", "every 1h")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now() - interval '1 hour'")

    assert 0 == shell(cluster.database, *LIVENESS, **LIVES).returncode
    assert 3 == shell(cluster.database, "health", **LIVES).returncode


def test_an_unreachable_database_does_not_fail_a_liveness_probe() -> None:
    url = f"postgresql://127.0.0.1:{free_port()}/nowhere"

    live, ready = shell(url, *LIVENESS), shell(url, "health", "--json")

    assert (0, 3) == (live.returncode, ready.returncode)
    assert {"database": False, "schema": None, "beats": None, "lag": None} == checks(live)


@pytest.mark.parametrize("there", [True, False], ids=["there", "away"])
def test_health_checks_the_broker_if_asked_to(cluster: Cluster, there: bool) -> None:
    broker = cluster.broker if there else f"redis://:s3cret@127.0.0.1:{free_port()}/0"

    words = ("health", "--broker", "--only", "broker", "--json")
    done = script(cluster.database, *words, command=CELERY, **{BROKER: broker})

    assert (0 if there else 3, there) == (done.returncode, checks(done)["broker"])
    assert "s3cret" not in done.stdout


def test_health_cannot_check_the_broker_without_an_app(migrated_database: str) -> None:
    done = shell(migrated_database, "health", "--broker")

    assert 2 == done.returncode
    assert "The check of the broker needs an app" in done.stderr
