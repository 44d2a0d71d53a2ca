"""The tracker translates Celery's final states into reports."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, states
from celery.exceptions import Ignore, Reject, Retry

from celery_pgbeat.postgres.worker_queries import Finish, Start
from celery_pgbeat.worker.report import reports
from celery_pgbeat.worker.report.reports import Report, Requeue
from celery_pgbeat.worker.report.tracker import ERROR_LENGTH, delay_of, error_text, outcome

START = Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node")


def reported(state: str | None, retval: Any = None, acks_late: bool = False) -> Report | None:
    task = SimpleNamespace(acks_late=acks_late, app=Celery(set_as_current=False))
    return outcome(task, START, state, retval)


@pytest.mark.parametrize(
    ("state", "retval", "acks_late", "expected"),
    [
        (states.SUCCESS, 1, False, Finish(START, "succeeded")),
        (states.IGNORED, Ignore(), False, Finish(START, "succeeded")),
        (states.FAILURE, ValueError("no"), False, Finish(START, "failed", "ValueError: no")),
        (states.REJECTED, Reject("r", requeue=True), True, Requeue(START, "Reject: r")),
        (
            states.REJECTED,
            Reject("r", requeue=True),
            False,
            Finish(START, "failed", "Reject: r"),
        ),
        (
            states.REJECTED,
            Reject("r"),
            True,
            Finish(START, "failed", "Reject: r"),
        ),
        (
            states.RETRY,
            Retry(exc=ValueError("no"), when=7),
            False,
            reports.Retry(START, timedelta(seconds=7), "ValueError: no"),
        ),
        (None, None, False, None),
    ],
)
def test_each_final_state_of_celery_has_its_report(
    state: str | None, retval: Any, acks_late: bool, expected: Report | None
) -> None:
    assert expected == reported(state, retval, acks_late)


def test_a_retry_that_cannot_be_sent_fails_with_the_error_of_sending() -> None:
    assert Finish(START, "failed", "OSError: broker") == reported("REJECTED", Reject(OSError("broker")))


@pytest.mark.parametrize("when", [None, 0, -3, 2.5])
def test_a_retry_waits_for_its_seconds(when: float | None) -> None:
    assert timedelta(seconds=max(0, when or 0)) == delay_of(when, Celery(set_as_current=False))


def test_a_retry_waits_for_its_instant_in_any_time_zone() -> None:
    app = Celery(set_as_current=False)
    app.conf.update(timezone="Asia/Tokyo")
    instant = datetime.now(timezone.utc) + timedelta(minutes=10)
    for when in (instant, instant.astimezone(app.timezone), instant.replace(tzinfo=None), instant.isoformat()):
        assert timedelta(minutes=9, seconds=50) < delay_of(when, app) <= timedelta(minutes=10)
    assert timedelta(0) == delay_of(instant - timedelta(hours=1), app)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no"), "ValueError: no"),
        (KeyError("k"), "KeyError: 'k'"),
        (ValueError("a\x00b\udc80"), "ValueError: ab?"),
        (Unprintable(), "Unprintable: <its message cannot be shown>"),
        (ValueError("x" * 1000), ("ValueError: " + "x" * 1000)[:ERROR_LENGTH]),
    ],
)
def test_an_error_is_its_type_and_its_message_as_postgres_can_store_it(error: Exception, text: str) -> None:
    assert text == error_text(error)
