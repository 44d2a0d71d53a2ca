"""The views and explain() report overdue rows without any beat, after all beats have died."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.acceptance.test_cli import answer, shell
from tests.harness.clock import Clock
from tests.harness.processes import Cluster
from tests.harness.rows import insert, row, sql
from tests.harness.wait import eventually

MINUTE = timedelta(minutes=1)


def overdue(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return {found["name"]: found for found in sql(cluster.database, "select * from pgbeat.overdue")}


def test_after_every_beat_was_killed_due_rows_are_overdue_until_a_beat_is_back(
    cluster: Cluster, database_clock: Clock
) -> None:
    beats = [cluster.beat(), cluster.beat()]
    cluster.worker()
    insert(cluster.database, "often", "every 1s")
    insert(cluster.database, "seldom", "every 1d")
    eventually(lambda: len(cluster.probe.runs("often")) >= 3, 20, "it runs")
    eventually(lambda: row(cluster.database, "seldom")["next_run_at"], 10, "the row is planned")
    assert {} == overdue(cluster)

    for beat in beats:
        beat.kill()
    (seen,) = sql(cluster.database, "select max(last_seen_at) as at from pgbeat.node where role = 'beat'")
    database_clock.advance(MINUTE)

    no_beat = f"no beat has been seen since {seen['at']:%Y-%m-%d %H:%M:%S}Z"
    found = overdue(cluster)
    assert {"often"} == set(found)
    assert no_beat in found["often"]["reason"]
    assert found["often"]["late_by"] > MINUTE - timedelta(seconds=2)
    assert "overdue" in sql(cluster.database, "select state from pgbeat.status where name = 'often'")[0]["state"]
    assert no_beat in answer(cluster.database, "explain", "often")["explanation"]
    assert f"; {no_beat}." in shell(cluster.database, "explain", "seldom").stdout

    cluster.beat()
    eventually(lambda: overdue(cluster) == {}, 40, "the new beat has decided what was due")
    assert "no beat" not in answer(cluster.database, "explain", "often")["explanation"]


def test_the_shell_suggests_the_right_name_for_an_unknown_one(migrated_database: str) -> None:
    insert(migrated_database, "nightly", "0 3 * * *")

    done = shell(migrated_database, "explain", "nigthly")

    assert 1 == done.returncode
    assert "Error: No periodic task is named 'nigthly'. Did you mean 'nightly'?\n" == done.stderr
