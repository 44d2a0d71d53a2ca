"""A cable between one process and one server that can be long, and can be cut without a word.

When it is cut, nothing is refused and nothing is reset: what is sent is taken, and nobody answers, as where packets
vanish. When it is mended everything that was under way arrives, late. One thing is harder than in life: the senders'
own systems believe that their bytes have arrived, so no time limit of TCP ends the wait.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from urllib.parse import urlsplit

from celery_pgbeat.embedded.ports import HOST

AT_ONCE = 65_536  # bytes


@dataclass(slots=True, eq=False)
class Side:
    """One end of a connection through the cable, with what waits to be written to it.

    Attributes:
        travelling: what is under way to it, with the instant of the monotonic clock at which it arrives.
    """

    socket: socket.socket
    is_client: bool
    travelling: deque[tuple[float, bytes]] = field(default_factory=deque)
    waiting: bytearray = field(default_factory=bytearray)
    ended: bool = False  # it will not send any more
    end_sent: bool = False  # it knows that the other side will not send any more


class Cable:
    """Passes everything on between its clients and the server of a URL, unless it is cut.

    Args:
        url: of the server.
        delay: seconds that each byte is under way, in either direction; a new connection is made at once.

    Example:
        >>> with Cable("redis://127.0.0.1:6379/0") as cable:  # doctest: +SKIP
        ...     beat = cluster.beat(environment={BROKER: cable.url})
        ...     cable.cut()
    """

    def __init__(self, url: str, *, delay: float = 0) -> None:
        target = urlsplit(url)
        assert target.hostname is not None, url
        assert target.port is not None, url
        self._delay = delay
        self._target = (target.hostname, target.port)
        self._listener = socket.create_server((HOST, 0))
        self._inner, self._outer = socket.socketpair()
        user, at, _ = target.netloc.rpartition("@")
        self.url = target._replace(netloc=f"{user}{at}{HOST}:{self._listener.getsockname()[1]}").geturl()
        self._peers: dict[Side, Side] = {}
        self._received: list[tuple[float, bytes]] = []
        self._is_cut = self._closing = False
        self._thread = threading.Thread(target=self._run, name="cable", daemon=True)

    def __enter__(self) -> Cable:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._wake()
        self._thread.join()
        for side in list(self._peers):
            side.socket.close()
        for own in (self._listener, self._inner, self._outer):
            own.close()

    def cut(self) -> None:
        """Hold everything back, in both directions, and leave new connections unanswered."""
        self._received.clear()
        self._is_cut = True

    def mend(self) -> None:
        """Pass on what was held back, and go on."""
        self._is_cut = False
        self._wake()

    def received_since(self, instant: float) -> bytes:
        """Return what clients have sent since an instant of the monotonic clock; kept since the last `cut`."""
        return b"".join(data for at, data in self._received if at >= instant)

    def _wake(self) -> None:
        self._outer.send(b"!")

    def _run(self) -> None:
        while not self._closing:
            wait = self._arrive()
            readers = [side.socket for side in self._peers if not side.ended]
            writers = [] if self._is_cut else [side.socket for side in self._peers if side.waiting]
            by_socket = {side.socket: side for side in self._peers}
            readable, writable, _ = select.select([self._listener, self._inner, *readers], writers, [], wait)
            for own in readable:
                if own is self._listener:
                    self._accept()
                elif own is self._inner:
                    self._inner.recv(AT_ONCE)
                else:
                    self._read(by_socket[own])
            for own in writable:
                self._write(by_socket[own])
            if not self._is_cut:
                self._end_what_has_ended()

    def _arrive(self) -> float:
        """Move what has arrived to what waits to be written; return the seconds until more does, 1 at most."""
        now = time.monotonic()
        for side in self._peers:
            while side.travelling and side.travelling[0][0] <= now:
                side.waiting += side.travelling.popleft()[1]
        return min([1.0, *(side.travelling[0][0] - now for side in self._peers if side.travelling)])

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            client.close()
            return
        one, other = Side(client, is_client=True), Side(server, is_client=False)
        for side in (one, other):
            side.socket.setblocking(False)
            side.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers[one], self._peers[other] = other, one

    def _read(self, side: Side) -> None:
        try:
            data = side.socket.recv(AT_ONCE)
        except BlockingIOError:
            return
        except OSError:  # reset: it sends no more
            data = b""
        side.ended = not data
        self._peers[side].travelling.append((time.monotonic() + self._delay, data))
        if side.is_client and self._is_cut:
            self._received.append((time.monotonic(), data))

    def _write(self, side: Side) -> None:
        try:
            written = side.socket.send(side.waiting)
        except BlockingIOError:
            return
        except OSError:
            side.waiting.clear()
            side.ended = True
            return
        del side.waiting[:written]

    def _end_what_has_ended(self) -> None:
        for side, peer in list(self._peers.items()):
            if side.ended and not (peer.travelling or peer.waiting) and not peer.end_sent:
                peer.end_sent = True
                with contextlib.suppress(OSError):
                    peer.socket.shutdown(socket.SHUT_WR)
            if side.end_sent and peer.end_sent and side in self._peers:
                for done in (side, peer):
                    del self._peers[done]
                    done.socket.close()
