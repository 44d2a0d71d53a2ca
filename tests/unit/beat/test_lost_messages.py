"""Where the message of a job went that waits with the broker: what cannot be known is not looked for."""

from __future__ import annotations

import functools
import uuid
from typing import Any

import pytest
from celery import Celery, Task
from kombu import Exchange, Queue
from kombu.common import Broadcast

from celery_pgbeat.beat.send.lost_messages import queue_of
from celery_pgbeat.postgres.beat_results import WaitingJob


@pytest.fixture
def app() -> Celery:
    return Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)


def waiting(**values: Any) -> WaitingJob:
    return WaitingJob(**{"id": uuid.uuid4(), "queue": None, "task": "shop.report", "options": {}, **values})


def nothing() -> None:
    """Do nothing."""


def test_the_queue_of_a_message_is_that_of_its_row_its_task_its_route_or_the_default(app: Celery) -> None:
    app.conf.task_routes = {"shop.routed": {"queue": "routed"}}
    app.task(name="shop.mine", shared=False)(nothing)
    app.tasks["shop.mine"].queue = "mine"

    assert "celery" == queue_of(app, waiting())
    assert "slow" == queue_of(app, waiting(queue="slow"))
    assert "routed" == queue_of(app, waiting(task="shop.routed"))
    assert "mine" == queue_of(app, waiting(task="shop.mine"))
    assert "slow" == queue_of(app, waiting(task="shop.mine", queue="slow"))


@pytest.mark.parametrize(
    "values",
    [
        {"queue": "all"},
        {"queue": "events"},
        {"options": {"exchange": "x"}},
        {"options": {"routing_key": "x"}},
    ],
    ids=["a broadcast", "a topic", "an exchange", "a routing key"],
)
def test_a_message_that_went_to_no_queue_or_to_several_has_none(app: Celery, values: dict[str, Any]) -> None:
    events = Exchange("events", type="topic")
    app.conf.task_queues = (Broadcast("all"), Queue("celery"), Queue("events", events, routing_key="events.#"))

    assert queue_of(app, waiting(**values)) is None


def test_a_queue_that_the_app_does_not_know_is_not_looked_into(app: Celery) -> None:
    app.conf.task_create_missing_queues = False

    assert queue_of(app, waiting(queue="slow")) is None


def test_where_a_function_routes_the_queue_is_not_known(app: Celery) -> None:
    app.conf.task_routes = (lambda *_, **__: {"queue": "slow"},)

    assert queue_of(app, waiting()) is None


def test_a_task_that_sends_in_a_way_of_its_own_has_no_queue_but_one_that_is_only_observed_has(app: Celery) -> None:
    class Chooses(Task):
        def apply_async(self, *args: Any, **options: Any) -> Any:
            return super().apply_async(*args, **{**options, "queue": "any"})

    class Observed(Task):
        @functools.wraps(Task.apply_async)
        def apply_async(self, *args: Any, **options: Any) -> Any:
            return super().apply_async(*args, **options)

    app.task(name="shop.chooses", base=Chooses, shared=False)(nothing)
    app.task(name="shop.observed", base=Observed, shared=False)(nothing)

    assert queue_of(app, waiting(task="shop.chooses")) is None
    assert "celery" == queue_of(app, waiting(task="shop.observed"))
