"""Real beats and workers with sensitive rows: places where their arguments could show, and do not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from celery import Celery

from celery_pgbeat.texts.redaction import MASK
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, sql
from tests.harness.wait import eventually

APP = "tests.acceptance.sensitive_app"
SECRET, KNOWN = "patient-4711", "patient-4712"  # the second is that of a row like the others, which shows that we look
WRONG = {"__type__": "datetime", "__value__": SECRET}  # Celery's JSON cannot read it, and the error contains it


def ends(cluster: Cluster, name: str, state: str) -> list[dict[str, Any]]:
    def found() -> list[dict[str, Any]]:
        return [job for job in jobs(cluster.database, name) if job["state"] == state]

    eventually(found, 60, f"{name} {state}")
    return found()


def test_no_argument_of_a_sensitive_row_shows_in_logs_events_errors_or_reports(cluster: Cluster) -> None:
    cluster.settings = {"task_send_sent_event": True, "pgbeat_lease": 2, "pgbeat_poll": 0.5, "pgbeat_alert_after": 1}
    common = {"task": "app.confide", "sensitive": True, "overlap": "allow"}
    insert(cluster.database, "quiet", args=[SECRET], **common)
    insert(cluster.database, "named", "every 2s", args=[], kwargs={"secret": SECRET}, **common)
    insert(cluster.database, "retried", "every 2s", args=[SECRET, "retry"], **common)
    insert(cluster.database, "failing", "every 2s", args=[SECRET, "fail"], **common)
    insert(cluster.database, "unsendable", "every 2s", args=[WRONG], **common)
    insert(cluster.database, "open", args=[KNOWN], task="app.confide", overlap="allow")
    insert(cluster.database, "open unsendable", args=[{**WRONG, "__value__": KNOWN}], task="app.confide")
    app = Celery("watch", broker=cluster.broker, set_as_current=False)
    app.conf.worker_redirect_stdouts = False
    seen: list[dict[str, Any]] = []
    beat = cluster.beat(arguments=["-l", "DEBUG"])
    worker = cluster.worker(app=APP, arguments=["-E"])

    def received() -> bool:
        kinds = {event["type"] for event in seen if event.get("args") == MASK or MASK in str(event.get("exception"))}
        sent_again = [event for event in seen if event["type"] == "task-sent" and event.get("retries") == 1]
        shown = [event for event in seen if KNOWN in str(event.get("args"))]
        return {"task-sent", "task-received"} <= kinds and bool(sent_again) and bool(shown)

    with app.connection_for_read() as connection:
        receiver = app.events.Receiver(connection, handlers={"*": seen.append})
        for _ in range(100):
            with suppress(TimeoutError):
                receiver.capture(limit=20, timeout=0.5, wakeup=False)
            if received():
                break
    ends(cluster, "quiet", "succeeded")
    ends(cluster, "named", "succeeded")
    (retried, *_) = ends(cluster, "retried", "succeeded")
    (failed, *_) = ends(cluster, "failing", "failed")
    (lost, *_) = ends(cluster, "unsendable", "lost")
    (lost_in_the_open, *_) = ends(cluster, "open unsendable", "lost")

    assert received()
    assert 1 == retried["attempt"]
    assert f"ValueError: {MASK}" == failed["error"]
    assert f"unsendable: its message cannot be made: ValueError: {MASK}" == lost["error"]
    assert KNOWN in lost_in_the_open["error"]
    assert [] == [event for event in seen if SECRET in str(event)]
    for view in ("job", "status", "overdue", "upcoming", "node", "alert"):
        assert SECRET not in str(sql(cluster.database, f"select * from pgbeat.{view}"))
    for name in ("quiet", "retried", "failing", "unsendable"):
        assert SECRET not in str(sql(cluster.database, "select pgbeat.explain(%(name)s)", name=name))
    assert KNOWN in beat.log
    assert SECRET not in beat.log
    assert SECRET not in worker.log
