"""A server to which webhooks are posted."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Inbox:
    """Takes what is posted.

    Attributes:
        posts: the JSON of each request that was answered with 200, in order.
        headers: those of the last request.
        refusals: the number of the next requests that get a 503.
        redirect: where all requests are sent instead, if anywhere.
        attempts: how many requests there were.
    """

    def __init__(self) -> None:
        self.posts: list[Any] = []
        self.headers: dict[str, str] = {}
        self.refusals = 0
        self.redirect: str | None = None
        self.attempts = 0
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                inbox._take(self)

            do_GET = do_POST

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/services/s3cret"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Take no more."""
        self._server.shutdown()
        self._server.server_close()

    def alerts(self) -> list[dict[str, Any]]:
        """Return all alerts in all posts."""
        return [alert for post in self.posts for alert in post["alerts"]]

    def _take(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers.get("Content-Length", 0))) or "null")
        self.attempts += 1
        self.headers = dict(request.headers)
        refused = self.refusals > 0
        self.refusals -= refused
        if not refused and self.redirect is None:
            self.posts.append(body)
        request.send_response(503 if refused else 200 if self.redirect is None else 307)
        if self.redirect is not None:
            request.send_header("Location", self.redirect)
        request.send_header("Content-Length", "0")
        request.end_headers()
