"""A server that takes what Sentry's SDK sends."""

from __future__ import annotations

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SentryServer:
    """Takes envelopes.

    Attributes:
        dsn: what the SDK is configured with.
        items: (type, content) of each item that came, in order.
    """

    def __init__(self) -> None:
        self.items: list[tuple[str, dict[str, Any]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server._take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.dsn = f"http://key@127.0.0.1:{self._server.server_port}/1"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Take no more."""
        self._server.shutdown()
        self._server.server_close()

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Return the items of a type: `check_in`, `event` and others."""
        return [content for found, content in self.items if found == kind]

    def _take(self, envelope: bytes) -> None:
        """Read an envelope: a line about it, then for each item a line about it and its content."""
        rest = envelope.split(b"\n", 1)[1]
        while rest.strip():
            line, rest = rest.split(b"\n", 1)
            about = json.loads(line)
            content, rest = rest[: about["length"]], rest[about["length"] + 1 :]
            if about.get("content_type", "application/json") == "application/json":
                self.items.append((about["type"], json.loads(content)))
