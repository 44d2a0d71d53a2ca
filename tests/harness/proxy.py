"""A door between a client and a server that can be shut at an exact byte."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

HOST = "127.0.0.1"
CHUNK = 65536
SILENCE = 0.2  # seconds without a word, after which an answer has come to its end


class Proxy:
    """Passes bytes on between clients of its own port and a server.

    Attributes:
        cut_at: a text; a connection on which a client sends it is cut at once, before the server has read it.
        cut_after: the number of bytes of a client that are passed on before its connection is cut; None: all.
        unanswered_at: a text; the server reads and runs the request of a client that sends it, but its answer is
            thrown away and the connection cut. Once: it is None when that has happened.
        mute: everything that the server sends is thrown away.
        cuts: how often a text was met.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or HOST, parts.port or 0)
        self._listener = socket.create_server((HOST, 0))
        self._sockets: list[socket.socket] = []
        self.cut_at: bytes | None = None
        self.cut_after: int | None = None
        self.unanswered_at: bytes | None = None
        self.mute = False
        self.cuts = 0
        self._unanswered: set[socket.socket] = set()  # servers whose next answer is dropped
        user, at, _ = parts.netloc.rpartition("@")
        self.url = parts._replace(netloc=f"{user}{at}{HOST}:{self._listener.getsockname()[1]}").geturl()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no connection any more."""
        for each in (self._listener, *self._sockets):
            _shut(each)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                for pump in (self._to_server, self._to_client):
                    threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        seen = b""  # the end of what was passed on: a text may come in two pieces
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK):
                if self.cut_after is not None:
                    data, self.cut_after = data[: self.cut_after], max(0, self.cut_after - len(data))
                if self.unanswered_at and self.unanswered_at in seen + data:
                    self._unanswered.add(server)
                    self.unanswered_at = None
                place = (seen + data).find(self.cut_at) if self.cut_at else -1
                self.cuts += place >= 0
                server.sendall(data if place < 0 else data[: max(0, place - len(seen))])
                if self.cut_after == 0 or place >= 0:
                    break
                longest = max(len(self.cut_at or b""), len(self.unanswered_at or b""))
                seen = data[-longest:] if longest else b""
        self.cut_after = None
        _shut(client)
        _shut(server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(CHUNK):
                if server in self._unanswered:
                    self._hear_out(server)
                    break
                if not self.mute:
                    client.sendall(data)
        _shut(client)

    def _hear_out(self, server: socket.socket) -> None:
        """Throw away the rest of an answer: a server that cannot send it might roll back what it did."""
        server.settimeout(SILENCE)
        with contextlib.suppress(TimeoutError):
            while server.recv(CHUNK):
                pass
        self._unanswered.remove(server)
        self.cuts += 1
        _shut(server)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextlib.contextmanager
def proxy(url: str) -> Iterator[Proxy]:
    """Make a proxy for one test."""
    made = Proxy(url)
    try:
        yield made
    finally:
        made.close()
