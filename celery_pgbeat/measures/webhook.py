"""Posts alerts as JSON, in a thread of its own: a server that hangs delays only the next post."""

from __future__ import annotations

import base64
import json
import logging
import queue
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import unquote, urlsplit

from celery_pgbeat import __version__
from celery_pgbeat.process.threads import LastingThread
from celery_pgbeat.settings import masked_webhook

logger = logging.getLogger(__name__)

TIMEOUT = 5.0  # seconds to connect, again to send, and again for the answer
PAUSES = (1.0, 5.0, 30.0)  # seconds before each further attempt
MOST_WAITING = 100  # messages; further ones are dropped


class Webhook:
    """Posts to one URL."""

    def __init__(self, url: str, pauses: tuple[float, ...] = PAUSES) -> None:
        parts = urlsplit(url)
        user, at, server = parts.netloc.rpartition("@")
        self._url = parts._replace(netloc=server, fragment="").geturl()
        self._shown = masked_webhook(url)
        self._headers = {"Content-Type": "application/json", "User-Agent": f"celery-pgbeat/{__version__}"}
        if at:
            name, _, password = user.partition(":")
            given = f"{unquote(name)}:{unquote(password)}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(given).decode('ascii')}"
        self._opener = urllib.request.build_opener(_NoRedirects, _Http, _Https)
        self._pauses = pauses
        self._waiting: queue.Queue[Mapping[str, Any] | None] = queue.Queue(MOST_WAITING + 1)
        self._stopping = threading.Event()
        self._thread = LastingThread(self._run, "pgbeat-webhook")

    def start(self) -> None:
        """Start to post."""
        self._thread.start()

    def restart_if_ended(self) -> None:
        """Start the thread again if it has ended too early."""
        self._thread.restart_if_ended()

    def post(self, message: Mapping[str, Any]) -> None:
        """Queue a message to be posted; returns at once."""
        if self._waiting.qsize() >= MOST_WAITING:
            logger.warning("%s is so slow that an alert is dropped", self._shown, extra={"action": "alert"})
            return
        self._waiting.put(message)

    def stop(self, within: float) -> None:
        """Post what waits, each message once, for at most `within` seconds."""
        self._stopping.set()
        if self._thread.is_alive:
            self._waiting.put(None)
            self._thread.join(within)

    def _run(self) -> None:
        while (message := self._waiting.get()) is not None:
            self._deliver(json.dumps(message).encode())

    def _deliver(self, body: bytes) -> None:
        for pause in (*self._pauses, None):
            try:
                self._send(body)
                return
            except Exception as error:  # noqa: BLE001  refused, unreachable, no HTTP at all: it is only logged
                reason = _reason(error)
            if pause is None or self._stopping.wait(pause):
                break
        logger.warning("An alert could not be posted to %s: %s", self._shown, reason, extra={"action": "alert"})

    def _send(self, body: bytes) -> None:
        request = urllib.request.Request(self._url, body, self._headers, method="POST")  # noqa: S310  http(s): a setting
        try:
            self._opener.open(request, timeout=TIMEOUT).close()
        except urllib.error.HTTPError as error:
            error.close()
            raise


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as a refusal: the next server must not get the password, and would get a GET."""

    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect."""


class _Impatient(HTTPConnection):
    """Closes the connection to a server that does not answer in time; a socket's timeout is for each byte."""

    def getresponse(self) -> HTTPResponse:
        """Return the answer without its body."""
        over = threading.Event()
        watch = threading.Timer(TIMEOUT, self._hang_up, [over])
        watch.daemon = True
        watch.start()
        try:
            response = super().getresponse()
        finally:
            watch.cancel()
        if over.is_set():  # the part that arrived before may look like an answer
            response.close()
            raise TimeoutError(f"no answer within {TIMEOUT:g} s")
        return response

    def _hang_up(self, over: threading.Event) -> None:
        over.set()
        with suppress(OSError):
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)  # below TLS, whose goodbye would wait for the server


class _ImpatientOverTls(_Impatient, HTTPSConnection):
    pass


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_Impatient, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_ImpatientOverTls, req)


def _reason(error: Exception) -> str:
    """Return what went wrong without the URL, which an error may repeat."""
    if isinstance(error, urllib.error.HTTPError):
        return f"it answered {error.code}" + (
            ", a redirect: set the URL it leads to" if 300 <= error.code < 400 else ""
        )
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return type(error).__name__
