from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.measures.alarm import Alarm, Alert
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.signals import alert as alert_signal
from tests.harness.wait import eventually

NOON = datetime(2100, 3, 1, 12, tzinfo=timezone.utc)
LATE = Alert("overdue", "nightly", NOON, timedelta(minutes=6, microseconds=5), "no beat is running")
DEAD = Alert("dead_beat", "web-1:b:n:4711:s:r", NOON, timedelta(minutes=1), "the beat web-1 (process 4711) is silent")


class Kept:
    """In the place of a webhook."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def start(self) -> None:
        pass

    def stop(self, within: float) -> None:
        pass

    def post(self, message: Any) -> None:
        self.messages.append(message)


class Unwell(Database):
    """A database that fails."""

    looks = 0
    error: Exception = RuntimeError("a column is missing")

    def run(self, name: str, /, connection: Any = None, **parameters: Any) -> Any:
        self.looks += 1
        raise self.error


def alarm(database: Database | None = None, *, may_judge: bool = True, webhook: Any = None) -> Alarm:
    return Alarm(
        database or Database("postgresql://localhost/nowhere"),
        "beat-a",
        "the app",
        after=timedelta(minutes=5),
        every=timedelta(milliseconds=10),
        may_judge=lambda: may_judge,
        now=lambda: datetime.now(timezone.utc),
        webhook=webhook,
    )


def test_an_alert_is_a_line_at_error_a_signal_and_a_post(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[dict[str, Any]] = []
    webhook = Kept()

    def hear(sender: Any, **given: Any) -> None:
        heard.append({"sender": sender, **given})

    alert_signal.connect(hear)
    try:
        alarm(webhook=webhook).report([LATE, DEAD])
    finally:
        alert_signal.disconnect(hear)

    assert [
        ("ERROR", "'nightly' is overdue by 0:06:00: no beat is running"),
        ("ERROR", "A beat is dead: the beat web-1 (process 4711) is silent"),
    ] == [(record.levelname, record.getMessage()) for record in caplog.records]
    assert ["overdue", "dead_beat"] == [each["kind"] for each in heard]
    first = {name: value for name, value in heard[0].items() if name != "signal"}
    assert first == {
        "sender": "the app",
        "kind": "overdue",
        "name": "nightly",
        "reason": "no beat is running",
        "due_at": NOON,
        "late_by": LATE.late_by,
    }
    (message,) = webhook.messages
    assert ("pgbeat", "beat-a") == (message["schema"], message["raised_by"])
    assert "\n".join(record.getMessage() for record in caplog.records) == message["text"]
    assert {
        "kind": "overdue",
        "name": "nightly",
        "due_at": "2100-03-01T12:00:00+00:00",
        "late_by": 360.000005,
        "reason": "no beat is running",
    } == message["alerts"][0]


def test_a_failing_signal_handler_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    webhook = Kept()

    def fail(**_: Any) -> None:
        raise RuntimeError("no pager")

    alert_signal.connect(fail)
    try:
        alarm(webhook=webhook).report([LATE])
    finally:
        alert_signal.disconnect(fail)

    assert 1 == len(webhook.messages)


def test_without_alerts_nothing_is_posted() -> None:
    webhook = Kept()

    alarm(webhook=webhook).report([])

    assert [] == webhook.messages


@pytest.mark.parametrize(
    ("error", "lines"), [(Unwell.error, 1), (DatabaseUnavailable("Postgres is away"), 0)], ids=["wrong", "away"]
)
def test_an_error_is_logged_once_a_minute_and_an_outage_not_at_all(
    error: Exception, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    database = Unwell("postgresql://localhost/nowhere")
    database.error = error
    watching = alarm(database)

    watching.start()
    eventually(lambda: database.looks > 2, 10, "it goes on looking")
    watching.stop()

    assert lines == len([record for record in caplog.records if record.levelname == "WARNING"])


def test_a_beat_without_long_contact_does_not_look_for_alerts() -> None:
    database, control = Unwell("postgresql://localhost/nowhere"), Unwell("postgresql://localhost/nowhere")
    blind, seeing = alarm(database, may_judge=False), alarm(control)

    blind.start()
    seeing.start()
    eventually(lambda: control.looks > 2, 10, "who may looks")
    blind.stop()
    seeing.stop()

    assert 0 == database.looks
