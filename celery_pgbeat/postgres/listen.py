"""Sleep until a notification arrives or the time is up.

A notification is a hint with an empty payload. Every role that may connect may send one, so all it does is end a wait.
Polling finds everything that is due: a lost listening connection, or a pooler, costs promptness and nothing else. A
socket pair lets another thread end the wait at once.

Behind a pooler nothing listens. In transaction mode LISTEN would stay on a server connection that other clients use
next, and they would receive our notifications, for which they have not asked. A pooler shows in the process id of the
backend: Postgres sends its own when a connection is made, a pooler sends another one.

What a listener does not read stays in the server's queue of notifications, which all databases share. When it is full,
every NOTIFY of the server fails. So a wait that ends reads everything that has arrived. Where more keeps coming, it
closes the connection: that drops the backlog, and a beat that begins to listen looks at the table anyway.
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
from celery_pgbeat.postgres.engine import create_engine

logger = logging.getLogger(__name__)

FIRST_PAUSE = 0.5  # seconds before a lost listening connection is made anew
DEBOUNCE = 0.05  # seconds between two notifications that end a wait: ten thousand edits must not cause as many cycles
DRAINED_WITHIN = 0.1  # seconds that reading notifications may take at a time; some 10 MB
FLOOD_PAUSE = 2.0  # seconds without a listening connection after a flood; polling finds what is due meanwhile
FLOOD_LOGGED_EVERY = 60.0  # seconds between two lines about floods
LONGEST_PAUSE = 30.0  # seconds; where listening never works, the attempts become rare


class Wakeup:
    """Waits on one listening connection of its own, made anew when it breaks."""

    def __init__(self, database: Database) -> None:
        self.database = database
        # Not the database's: its pool would hand over a connection that the next statement needs, and there may be no
        # other.
        self._engine = create_engine(database.url)
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
        except OSError:  # full: the wait ends anyway; closed: no thread waits any more
            return

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds`; return whether a notification came, or may have come before this listened."""
        ends = time.monotonic() + seconds
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
            readable += self._debounce(ends)
        if self._inner in readable:
            self._inner.recv(4096)
        if connection is not None and connection.fileno() in readable:
            self._read_notifications(connection)
        return bool(readable)

    def _debounce(self, ends: float) -> list[Any]:
        """Collect notifications that follow each other closely; only `notify` and the end of the wait end that."""
        rest = min(self._read_at + DEBOUNCE, ends) - time.monotonic()
        return select.select([self._inner], [], [], rest)[0] if rest > 0 else []

    def pause(self, seconds: float) -> None:
        """Close the listening connection; the first `wait` after this number of seconds makes another one."""
        self._disconnect()
        self._retry_at = max(self._retry_at, time.monotonic() + seconds)

    def close(self) -> None:
        """Close the listening connection and the socket pair."""
        self._disconnect()
        self._inner.close()
        self._outer.close()

    def _listen(self) -> bool:
        """Begin to listen if nothing does; return whether that was so."""
        if self._connection is not None or time.monotonic() < self._retry_at:
            return False
        try:
            fairy = self._engine.raw_connection()
            connection: Any = fairy.driver_connection
            fairy.detach()  # it is ours until it is closed
            cursor = connection.cursor()
            cursor.execute("select pg_backend_pid()")
            direct = cursor.fetchone()[0] == connection.info.backend_pid
            if direct:
                cursor.execute(f'listen "{self.database.schema}"')
            cursor.close()
        except Exception as error:  # noqa: BLE001  whatever a driver raises: polling still works
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
    """Drop the notifications that a driver has already read; return whether there were any."""
    notifies = getattr(connection, "notifies", None)
    if isinstance(notifies, list) and notifies:
        notifies.clear()
        return True
    return False


def _consume_all(connection: Any, until: float) -> bool:
    """Read until nothing is left; return whether that came before an instant of the monotonic clock."""
    while True:
        _consume(connection)
        if not select.select([connection.fileno()], [], [], 0)[0]:
            return True
        if time.monotonic() > until:
            return False


def _consume(connection: Any) -> None:
    """Read what has arrived, with psycopg2 or psycopg, and drop it: the payload has no meaning."""
    if hasattr(connection, "poll"):
        connection.poll()
        connection.notifies.clear()
        return
    connection.pgconn.consume_input()
    while connection.pgconn.notifies() is not None:
        pass
