from __future__ import annotations

import base64
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from celery_pgbeat.measures import webhook as module
from celery_pgbeat.measures.webhook import MOST_WAITING, Webhook
from tests.harness.inbox import Inbox
from tests.harness.wait import eventually

AT_ONCE = (0.0, 0.0, 0.0)


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    made = Inbox()
    yield made
    made.close()


def test_a_message_is_posted_as_json(inbox: Inbox) -> None:
    webhook = Webhook(inbox.url)
    webhook.start()

    webhook.post({"text": "grüße"})

    eventually(lambda: inbox.posts, 10, "the post")
    assert [{"text": "grüße"}] == inbox.posts
    assert "application/json" == inbox.headers["Content-Type"]
    webhook.stop(5)


def test_a_user_and_a_password_in_the_url_are_sent_as_such(inbox: Inbox) -> None:
    webhook = Webhook(inbox.url.replace("://", "://me:s%40cret@"))
    webhook.start()

    webhook.post({})

    eventually(lambda: inbox.posts, 10, "the post")
    assert f"Basic {base64.b64encode(b'me:s@cret').decode()}" == inbox.headers["Authorization"]
    webhook.stop(5)


def test_a_server_that_is_away_for_a_moment_gets_the_alert_later_and_once(inbox: Inbox) -> None:
    inbox.refusals = 2
    webhook = Webhook(inbox.url, AT_ONCE)
    webhook.start()

    webhook.post({"n": 1})

    eventually(lambda: inbox.posts, 10, "the post")
    webhook.stop(5)
    assert ([{"n": 1}], 3) == (inbox.posts, inbox.attempts)


def test_a_stop_does_not_wait_for_a_second_attempt(inbox: Inbox) -> None:
    inbox.refusals = 1
    webhook = Webhook(inbox.url, (60.0,))
    webhook.start()
    webhook.post({})
    eventually(lambda: inbox.attempts, 10, "the first attempt")

    began = time.monotonic()
    webhook.stop(30)

    assert time.monotonic() - began < 20
    assert ([], 1) == (inbox.posts, inbox.attempts)


def test_a_server_that_keeps_refusing_is_logged_without_the_path(
    inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    inbox.refusals = 4
    webhook = Webhook(inbox.url, AT_ONCE)
    webhook.start()

    webhook.post({})

    eventually(lambda: caplog.messages, 10, "a word about it")
    assert "it answered 503" in caplog.text
    assert "s3cret" not in caplog.text
    assert 4 == inbox.attempts
    webhook.stop(5)


def test_a_server_that_hangs_delays_nothing_and_messages_beyond_the_limit_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        webhook = Webhook(f"http://127.0.0.1:{deaf.getsockname()[1]}/")
        webhook.start()
        began = time.monotonic()
        for _ in range(MOST_WAITING + 2):
            webhook.post({})
        webhook.stop(0.1)

        assert time.monotonic() - began < 2
        assert "dropped" in caplog.text


@pytest.fixture
def elsewhere() -> Iterator[Inbox]:
    server = Inbox()
    yield server
    server.close()


def test_a_redirect_is_not_followed_and_is_logged(
    inbox: Inbox, elsewhere: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    inbox.redirect = elsewhere.url
    webhook = Webhook(inbox.url.replace("://", "://me:s3cret@"), AT_ONCE)
    webhook.start()

    webhook.post({})

    eventually(lambda: caplog.messages, 10, "a word about it")
    webhook.stop(5)
    assert "it answered 307, a redirect: set the URL it leads to" in caplog.text
    assert 0 == elsewhere.attempts, "what the first server may know is not the second one's"


def test_a_server_that_answers_a_byte_at_a_time_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 0.5)
    over = threading.Event()

    def drip() -> None:
        connection, _ = dripping.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not over.wait(0.1):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as dripping:
        thread = threading.Thread(target=drip)
        thread.start()
        webhook = Webhook(f"http://127.0.0.1:{dripping.getsockname()[1]}/", ())
        webhook.start()
        webhook.post({})
        try:
            eventually(lambda: caplog.messages, 10, "a word about it")
        finally:
            over.set()
            webhook.stop(5)
            thread.join()
    assert "An alert could not be posted" in caplog.text
    assert not thread.is_alive()
