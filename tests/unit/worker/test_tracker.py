"""From Celery's final states to ours."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, states
from celery.exceptions import Ignore, Reject, Retry

from celery_pgbeat.postgres.worker_queries import Finish, Start
from celery_pgbeat.worker.tracker import ERROR_LENGTH, delay_of, error_text, outcome

START = Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node")


def told(state: str | None, retval: Any = None, acks_late: bool = False) -> tuple[str, dict[str, Any]] | None:
    task = SimpleNamespace(acks_late=acks_late, app=Celery(set_as_current=False))
    report = outcome(task, START, state, retval)
    if report is None:
        return None
    if isinstance(report, Finish):
        assert START == report.start
        error = {} if report.error is None else {"error": report.error}
        return "finish", {"state": report.state, **error}
    assert isinstance(report, partial)
    assert report.keywords.pop("start") == START
    return report.func.__name__, report.keywords


@pytest.mark.parametrize(
    ("state", "retval", "acks_late", "expected"),
    [
        (states.SUCCESS, 1, False, ("finish", {"state": "succeeded"})),
        (states.IGNORED, Ignore(), False, ("finish", {"state": "succeeded"})),
        (states.FAILURE, ValueError("no"), False, ("finish", {"state": "failed", "error": "ValueError: no"})),
        (states.REJECTED, Reject("r", requeue=True), True, ("requeue", {"error": "Reject: r"})),
        (
            states.REJECTED,
            Reject("r", requeue=True),
            False,
            ("finish", {"state": "failed", "error": "Reject: r"}),
        ),
        (
            states.REJECTED,
            Reject("r"),
            True,
            ("finish", {"state": "failed", "error": "Reject: r"}),
        ),
        (
            states.RETRY,
            Retry(exc=ValueError("no"), when=7),
            False,
            ("retry", {"delay": timedelta(seconds=7), "error": "ValueError: no"}),
        ),
        (None, None, False, None),
    ],
)
def test_each_end_of_a_run_is_reported_as_what_it_is(
    state: str | None, retval: Any, acks_late: bool, expected: tuple[str, dict[str, Any]] | None
) -> None:
    assert expected == told(state, retval, acks_late)


def test_a_retry_that_could_not_be_sent_is_the_failure_that_kept_it() -> None:
    assert ("finish", {"state": "failed", "error": "OSError: broker"}) == told("REJECTED", Reject(OSError("broker")))


@pytest.mark.parametrize("when", [None, 0, -3, 2.5])
def test_a_retry_waits_for_its_seconds(when: float | None) -> None:
    assert timedelta(seconds=max(0, when or 0)) == delay_of(when, Celery(set_as_current=False))


def test_a_retry_waits_for_its_instant_whatever_the_zone() -> None:
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
