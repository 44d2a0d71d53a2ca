"""The example with Sentry: what a server of Sentry's gets from beats and workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from celery_pgbeat import PgBeat
from tests.docs.pages import ROOT
from tests.docs.sentry_server import SentryServer
from tests.harness.processes import Cluster
from tests.harness.rows import jobs, sql
from tests.harness.wait import eventually


@pytest.fixture
def sentry() -> Iterator[SentryServer]:
    made = SentryServer()
    yield made
    made.close()


def check_ins(sentry: SentryServer, name: str) -> list[tuple[str, str]]:
    """Return (status, id) of each check-in of a monitor."""
    return [
        (each["status"], each["check_in_id"]) for each in sentry.of_type("check_in") if each["monitor_slug"] == name
    ]


def schedule_of(sentry: SentryServer, name: str) -> dict[str, Any]:
    """Return what the first check-in says about the schedule of a monitor."""
    first = next(each for each in sentry.of_type("check_in") if each["monitor_slug"] == name)
    return {"timezone": first["monitor_config"]["timezone"], **first["monitor_config"]["schedule"]}


def test_a_run_has_two_check_ins_and_an_error_is_an_event(cluster: Cluster, sentry: SentryServer) -> None:
    variables = {
        "PYTHONPATH": str(ROOT / "examples" / "sentry"),
        "PGBEAT_URL": cluster.database,
        "CELERY_BROKER_URL": cluster.broker,
        "SENTRY_DSN": sentry.dsn,
    }
    cluster.worker(app="shop", environment=variables)
    cluster.beat(app="shop", environment=variables).wait_for_log("works on", 30)
    declared = "select 1 from pgbeat.periodic_task where managed_by like 'code:%%'"
    eventually(lambda: len(sql(cluster.database, declared)) >= 3, 30, "the code is declared")

    beat = PgBeat(url=cluster.database)
    for _ in range(2):
        for name in ("nightly-report", "open-the-doors"):
            before = len(jobs(cluster.database, name))
            beat.trigger(name)
            eventually(
                lambda name=name, before=before: [
                    job for job in jobs(cluster.database, name)[before:] if job["state"] in ("succeeded", "failed")
                ],
                30,
                f"{name} has ended",
            )
    beat.close()

    for name, ending in (("nightly-report", "ok"), ("open-the-doors", "error")):
        eventually(lambda name=name: len(check_ins(sentry, name)) == 4, 30, f"the check-ins of {name}")
        seen = check_ins(sentry, name)
        assert {"in_progress", ending} == {status for status, _ in seen}
        ids = {identifier for _, identifier in seen}
        assert len(ids) == 2  # a run is one check-in, which begins at the beat and ends in the worker
        assert {(status, one) for status in ("in_progress", ending) for one in ids} == set(seen)
    assert {"timezone": "Europe/Berlin", "type": "crontab", "value": "0 3 * * *"} == (
        schedule_of(sentry, "nightly-report")
    )
    assert "America/New_York" == schedule_of(sentry, "open-the-doors")["timezone"]
    assert [] == check_ins(sentry, "poll-inbox")

    def of_errors() -> list[str]:
        values = [each["exception"]["values"][-1] for each in sentry.of_type("event") if "exception" in each]
        return [f"{value['type']}: {value['value']}" for value in values]

    eventually(lambda: "RuntimeError: the key is lost" in of_errors(), 30, "the error of the task")
