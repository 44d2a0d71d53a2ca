"""The bounds of a connection to the command `web`, before anybody is asked for a password.

Each connection costs a file of the process. So their number is bounded, and the head of a request has a deadline.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD = 10  # seconds in which the head of a request must have come
MOST_CONNECTIONS = 128  # half of the 256 files that some systems give a process; it needs some of them itself
BACKLOG = 32  # connections that the server accepts before it closes the first one above the limit


class Connection(H11Protocol):
    """A connection that is closed if the head of a request does not come in time.

    If there are too many, the one that has waited longest for a head makes room for a new one. A browser sends a head
    at once, so an attacker replaces the connections of attackers.
    """

    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) > MOST_CONNECTIONS:
            waiting = {one: one.deadline for one in self.connections if isinstance(one, Connection) and one.deadline}
            longest = min(waiting, key=lambda one: waiting[one].when())
            longest._stop_waiting()
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read what has come, which may be the head of a request, a part of it, or its body."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for_head()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_waiting()

    def _wait_for_head(self) -> None:
        if self.deadline is None:
            self.deadline = self.loop.call_later(HEAD, self.transport.close)

    def _stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        self.deadline = None
