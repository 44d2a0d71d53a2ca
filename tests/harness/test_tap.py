"""The tap takes every message once, records when and by which beat it was sent, and passes it on if asked to."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg2
import pytest
import redis
from celery import Celery

from tests.harness.broker import both_brokers, depth, drain
from tests.harness.tap import Tap, database_clock
from tests.harness.wait import eventually

INSTANT = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
HEADER = {"periodic_task": "nightly", "job": "x", "scheduled_for": INSTANT.isoformat(), "origin": "schedule"}


def send(broker: str, count: int, **options: Any) -> list[str]:
    with Celery(broker=broker, set_as_current=False) as app:
        app.conf.broker_transport_options = {"confirm_publish": True}  # a message that was sent is one that is there
        return [app.send_task("app.probe", (number,), {"word": "ü"}, **options).id for number in range(count)]


@both_brokers
def test_messages_are_taken_once_each_with_their_sender_and_their_occurrence(broker_url: str) -> None:
    jobs = send(broker_url, 100, headers={"pgbeat": HEADER}, queue="inbox")
    before = datetime.now(timezone.utc)
    with Tap(broker_url, "inbox") as tap:
        jobs += send(broker_url, 100, headers={"pgbeat": HEADER}, queue="inbox")
        eventually(lambda: len(tap.arrivals) >= 200, 10, "all messages")

    assert jobs == [arrival.job for arrival in tap.arrivals]
    first = tap.arrivals[0]
    assert ("nightly", INSTANT, 0, os.getpid()) == (
        first.periodic_task,
        first.scheduled_for,
        first.attempt,
        first.pid,
    )
    assert ([0], {"word": "ü"}) == (first.args, first.kwargs)
    assert before < first.seen_at
    assert 0 == depth(broker_url, "inbox")


@both_brokers
def test_copies_are_passed_on_as_they_were(broker_url: str) -> None:
    jobs = send(broker_url, 50, queue="inbox", headers={"mine": 1})
    with Tap(broker_url, "inbox", onward="celery", copies=3) as tap:
        eventually(lambda: len(tap.arrivals) == 50 and depth(broker_url) == 150, 10, "all copies")

    messages = drain(broker_url)
    assert dict.fromkeys(jobs, 3) == Counter(message.id for message in messages)
    assert {("app.probe", 1, "ü")} == {(each.task, each.headers["mine"], each.kwargs["word"]) for each in messages}
    if broker_url.startswith("redis"):  # the tag under which a worker keeps what it has taken
        assert 150 == len({message.properties["delivery_tag"] for message in messages})


@both_brokers
def test_messages_that_arrive_while_the_tap_is_shut_are_taken_afterwards(broker_url: str) -> None:
    with Tap(broker_url) as tap:
        with tap.shut():
            jobs = send(broker_url, 3)
            assert 3 == depth(broker_url)
        eventually(lambda: len(tap.arrivals) == 3, 10, "the messages")
    assert jobs == [arrival.job for arrival in tap.arrivals]


def test_errors_of_the_tap_are_raised_when_it_is_closed() -> None:
    with pytest.raises(redis.ConnectionError), Tap("redis://127.0.0.1:1/0"):
        pass


def test_the_clock_of_the_database_goes_on_and_is_never_behind(database: str) -> None:
    clock = database_clock(database)
    with closing(psycopg2.connect(database)) as connection, connection.cursor() as cursor:
        cursor.execute("select clock_timestamp()")
        (told,) = cursor.fetchone()
    assert timedelta(0) <= clock() - told < timedelta(seconds=1)
