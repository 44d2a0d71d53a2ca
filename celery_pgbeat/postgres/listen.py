"""Sleep until rung or until time is up.

A notification is a hint with an empty payload; whoever may connect may send one, so all it does is to end a
wait. Polling is the truth: a lost listening connection, or a pooler, costs promptness and nothing else. A socket pair
lets another thread end the wait at once.

Behind a pooler nothing listens. In transaction mode LISTEN would stay on a server connection that others use next, and
they would collect our notifications, which they have not asked for. A pooler shows in the process id of the backend:
Postgres sends its own when a connection is made, a pooler sends another one.

What a listener does not read stays in the server's queue of notifications, which all databases share: when it is full,
every NOTIFY of the server fails. So a wait that ends reads all that there is, and hangs up where that does not end: a
closed connection drops its backlog, and who begins to listen looks at the table anyway.
"""

from __future__ import annotations

import logging
import math
import select
import socket
import time
from typing import Any

from sqlalchemy.exc import DBAPIError

from celery_pgbeat.postgres.database import Database

logger = logging.getLogger(__name__)

FIRST_PAUSE = 0.5  # seconds before a lost listening connection is made anew
DEBOUNCE = 0.05  # seconds between two notifications that are heeded: ten thousand edits are not ten thousand turns
DRAINED_WITHIN = 0.1  # seconds that reading notifications may take at a time; some 10 MB
FLOOD_PAUSE = 2.0  # seconds without a listening connection after a flood; polling finds what is due meanwhile
FLOOD_LOGGED_EVERY = 60.0  # seconds between two lines about floods
LONGEST_PAUSE = 30.0  # seconds; where nobody can listen at all, the attempts get rare


class Wakeup:
    """Waits on one listening connection of its own, made anew when it breaks."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._inner, self._outer = socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)
        self._connection: Any = None
        self._pause = FIRST_PAUSE
        self._retry_at = 0.0
        self._read_at = 0.0
        self._flood_logged_at = -math.inf

    def notify(self) -> None:
        """End the current wait, or the next one; may be called from any thread and from a signal handler."""
        try:
            self._outer.send(b"!")
        except OSError:  # full: it is ringing already; closed: nobody waits any more
            return

    def wait(self, seconds: float) -> bool:
        """Wait until something rings, at most `seconds`; tell whether it did, or may have before anybody listened."""
        if self._listen():
            return True
        connection = self._connection
        watched: list[Any] = [self._inner]
        if connection is not None:
            if _drained(connection):
                return True
            watched.append(connection.fileno())
        readable, _, _ = select.select(watched, [], [], max(0.0, seconds))
        if connection is not None and connection.fileno() in readable and self._inner not in readable:
            readable += self._debounce(seconds)
        if self._inner in readable:
            self._inner.recv(4096)
        if connection is not None and connection.fileno() in readable:
            self._read_notifications(connection)
        return bool(readable)

    def _debounce(self, seconds: float) -> list[Any]:
        """Let notifications that follow each other closely come together; only a ring ends that."""
        rest = min(self._read_at + DEBOUNCE - time.monotonic(), seconds)
        return select.select([self._inner], [], [], rest)[0] if rest > 0 else []

    def close(self) -> None:
        """Close the listening connection and the socket pair."""
        self._disconnect()
        self._inner.close()
        self._outer.close()

    def _listen(self) -> bool:
        """Tell whether it listens from now on, and has not before."""
        if self._connection is not None or time.monotonic() < self._retry_at:
            return False
        try:
            fairy = self.database.engine.raw_connection()
            connection: Any = fairy.driver_connection
            fairy.detach()  # it is ours for as long as it lives; the pool makes another
            cursor = connection.cursor()
            cursor.execute("select pg_backend_pid()")
            direct = cursor.fetchone()[0] == connection.info.backend_pid
            if direct:
                cursor.execute(f'listen "{self.database.schema}"')
            cursor.close()
        except Exception as error:  # noqa: BLE001  whatever a driver raises: we can still poll
            self._cannot_listen(error)
            return False
        if not direct:
            connection.close()
            self._retry_at = math.inf
            logger.info("Not listening, polling only: there is a pooler before Postgres", extra={"action": "listen"})
            return False
        self._connection = connection
        self._pause = FIRST_PAUSE
        return True

    def _read_notifications(self, connection: Any) -> None:
        self._read_at = time.monotonic()
        try:
            if not _consume_all(connection, self._read_at + DRAINED_WITHIN):
                self._pause_for_flood()
        except Exception as error:  # noqa: BLE001  a broken connection is readable too
            self._disconnect()
            self._cannot_listen(error)

    def _pause_for_flood(self) -> None:
        self._disconnect()
        now = time.monotonic()
        self._retry_at = now + FLOOD_PAUSE
        if now >= self._flood_logged_at + FLOOD_LOGGED_EVERY:
            self._flood_logged_at = now
            logger.warning(
                "The notification channel %r is flooded: polling only, for %g s at a time. Each role that may connect "
                "may notify; pg_stat_activity shows who does",
                self.database.schema,
                FLOOD_PAUSE,
                extra={"action": "listen"},
            )

    def _cannot_listen(self, error: Exception) -> None:
        reason = getattr(error, "orig", error) if isinstance(error, DBAPIError) else error
        logger.info("Not listening, polling only: %s", " ".join(str(reason).split()), extra={"action": "listen"})
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except Exception:
                logger.debug("Closing the listening connection failed", exc_info=True)


def _drained(connection: Any) -> bool:
    """Empty what a driver has already read; tell whether there was any."""
    notifies = getattr(connection, "notifies", None)
    if isinstance(notifies, list) and notifies:
        notifies.clear()
        return True
    return False


def _consume_all(connection: Any, until: float) -> bool:
    """Read until there is nothing more; tell whether that was so before an instant of the monotonic clock."""
    while True:
        _consume(connection)
        if not select.select([connection.fileno()], [], [], 0)[0]:
            return True
        if time.monotonic() > until:
            return False


def _consume(connection: Any) -> None:
    """Read what has come in, with psycopg2 or psycopg, and drop it: the payload is nobody's business."""
    if hasattr(connection, "poll"):
        connection.poll()
        connection.notifies.clear()
        return
    connection.pgconn.consume_input()
    while connection.pgconn.notifies() is not None:
        pass
