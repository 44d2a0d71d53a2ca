from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from kombu.exceptions import OperationalError

from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.beat.send import broker as brokers
from celery_pgbeat.beat.send.broker import Broker
from tests.harness.outbox import app_of


def broker(url: str, told: list[Any] | None = None) -> Broker:
    return Broker(Scheduler(app_of(url), lazy=True), (told if told is not None else []).append)


def test_a_broker_that_is_away_is_probed_at_once_and_then_after_pauses_that_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(brokers, "boottime", lambda: now[0])
    away = broker("redis://127.0.0.1:1/0")

    pauses = []
    for _ in range(6):
        assert not away.ready()
        pauses.append(away.probe_in)
        now[0] += away.probe_in

    assert [0.0, 0.5, 1.0, 2.0, 4.0, 5.0] == pauses


def test_a_broker_that_is_away_is_logged_once_and_its_return_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connect = Broker._connect
    monkeypatch.setattr(Broker, "_connect", lambda self: (_ for _ in ()).throw(ConnectionRefusedError("no")))
    away = broker("memory://")
    assert not away.ready()
    assert not away.ready()
    monkeypatch.setattr(Broker, "_connect", connect)
    monkeypatch.setattr(brokers, "boottime", lambda: 1e12)

    assert away.ready()
    assert not away.is_proven
    assert 0 == caplog.text.count("The broker is back")

    away.took()
    away.took()
    away.close()
    assert away.is_proven
    assert 1 == caplog.text.count("The broker is not usable: no")
    assert 1 == caplog.text.count("The broker is back")


def test_p10_the_pauses_grow_while_connections_are_made_and_no_message_is_taken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr(brokers, "boottime", lambda: now[0])
    here = broker("memory://")

    pauses = []
    for _ in range(6):
        assert here.ready()
        here.disconnect("timed out")
        pauses.append(here.probe_in)
        now[0] += here.probe_in

    assert [0.0, 0.5, 1.0, 2.0, 4.0, 5.0] == pauses
    assert 1 == caplog.text.count("The broker is not usable")
    assert "it is away: timed out" == here.problem
    here.took()
    assert here.problem is None


def test_the_renderer_gets_each_new_connection() -> None:
    told: list[Any] = []
    here = broker("memory://", told)

    assert here.ready()
    assert here.ready()
    assert [here.producer] == told
    here.reconnect()
    assert [here.producer] == told[1:]
    here.close()
    assert here.producer is None


def test_timeouts_are_set_only_where_the_user_has_set_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(brokers.CAUTION, "memory", {"socket_timeout": 5.0, "socket_keepalive": True})
    app = app_of("memory://", broker_transport_options={"socket_timeout": 1.0})
    here = Broker(Scheduler(app, lazy=True), lambda _producer: None)
    here.ready()

    assert {"socket_timeout": 1.0, "socket_keepalive": True} == here.producer.connection.transport_options
    here.close()


def test_an_unknown_name_in_a_message_is_no_connection_error() -> None:
    """Redis's connection errors have a KeyError among them, which kombu passes on in its own class."""
    raised = OperationalError("'by hand'")
    raised.__cause__ = KeyError("by hand")

    assert not broker("redis://").is_connection_error(raised)
    assert not broker("redis://").is_connection_error(KeyError("by hand"))
    assert broker("redis://").is_connection_error(OperationalError("away"))


def test_a_cycle_waits_only_a_moment_for_a_probe_that_hangs_and_is_woken_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect, hanging, answered, rung = Broker._connect, threading.Event(), threading.Event(), threading.Semaphore(0)

    def hang(self: Broker) -> None:
        hanging.set()
        assert answered.wait(10)
        connect(self)

    monkeypatch.setattr(Broker, "_connect", hang)
    here = Broker(Scheduler(app_of("memory://"), lazy=True), lambda _producer: None, rung.release)

    assert not here.is_ready_within(0.01)
    assert hanging.wait(10)
    assert brokers.LONGEST_PAUSE == here.probe_in
    began = time.monotonic()
    assert not here.is_ready_within(10)  # it was waited for once
    here.close()  # the end of the beat does not wait either
    assert time.monotonic() - began < 5
    assert not rung.acquire(blocking=False)

    answered.set()
    assert rung.acquire(timeout=10)
    assert here.is_ready_within(0)
    assert 0.0 == here.probe_in
    here.close()
