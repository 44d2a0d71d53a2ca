"""The beat's own connection to the broker: made with time-outs, probed while the broker is away.

A broker that hangs accepts a connection and then does not answer before the time-outs end. So another thread probes it,
and a cycle of the beat waits for the probe only for a moment.

A connection proves nothing: a broker may accept one and take no message. So the broker is back when it has taken a
message, and until then the pauses grow and one message at a time is tried (`is_proven`). RabbitMQ blocks a connection
that publishes while it lacks memory or disk space. That connection is kept until RabbitMQ unblocks it: it would take a
message from each closed one, too.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Protocol

from kombu.exceptions import OperationalError

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.timed_call import TimedCall
from celery_pgbeat.texts.redaction import error_text

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT = 3.0  # seconds for one attempt to reach the broker
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0  # seconds between two probes of a broker that is away

# Used where the user has set nothing else. Without these a frozen Redis blocks a beat forever, and a RabbitMQ that
# dies loses every message that it had not confirmed.
CAUTION: dict[str, dict[str, Any]] = {
    "redis": {"socket_timeout": 5.0, "socket_connect_timeout": CONNECT_TIMEOUT, "socket_keepalive": True},
    "amqp": {"confirm_publish": True, "read_timeout": 10, "write_timeout": 10},
}


# A code of Redis, but for the two that are about one command; redis-py takes off those that it knows.
_CODE_OF_REDIS = re.compile(r"(?!ERR |WRONGTYPE )[A-Z]+ ")


class Blocked(OSError):
    """RabbitMQ takes no message from this connection until it unblocks it."""


class Sender(Protocol):
    """What publishing needs of Celery's scheduler. It calls these methods, because other code may have wrapped them."""

    app: Any
    Producer: Any

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send one entry; an error is noted on the entry."""

    def apply_async(self, entry: Any, producer: Any = None) -> Any:
        """Send one entry; raises any error."""


class Broker:
    """One connection, or none; the delivery uses it, and it or a probe makes it.

    Args:
        sender: Celery's scheduler.
        on_connect: called with the producer of each new connection.
        on_probed: called at the end of each probe, in its thread.

    Attributes:
        producer: None while the broker is away.
        driver: the driver type of kombu's transport, once there was a connection.
        problem: why the broker is away, for people; None once it has taken a message.
    """

    def __init__(
        self, sender: Sender, on_connect: Callable[[Any], None], on_probed: Callable[[], None] = lambda: None
    ) -> None:
        self._sender = sender
        self._on_connect = on_connect
        self._on_probed = on_probed
        self._prober = TimedCall("pgbeat-probe")
        self._probing = False
        self._connection: Any = None
        self._pause = 0.0  # until a message is taken
        self._probe_at = 0.0
        self._blocked: Any = None  # the connection that RabbitMQ has blocked
        self._changing = threading.RLock()
        self.producer: Any = None
        self.driver = ""
        self.problem: str | None = None

    def is_ready_within(self, seconds: float) -> bool:
        """Return whether the broker is there; if it was away, probe it when that is due, and wait at most so long."""
        if self._is_connected():
            return True
        if boottime() < self._probe_at:
            return False
        self._prober.call(self._probe, seconds)
        return self._is_connected()

    def ready(self) -> bool:
        """Return whether the broker is there; if it was away, probe it when that is due, however long that takes."""
        if self._is_connected():
            return True
        with self._changing:
            if self._is_connected():  # by the other thread, meanwhile
                return True
            if boottime() < self._probe_at:
                return False
            try:
                if self._is_blocked():
                    raise Blocked("RabbitMQ has blocked the connection: it lacks memory or disk space")
                self._connect()
            except Exception as error:  # noqa: BLE001  each transport has errors of its own; the broker is away
                self.disconnect(error)
                return False
            return True

    @property
    def is_proven(self) -> bool:
        """Whether a message was taken since the broker was away, if it ever was."""
        return not self._pause

    def took(self) -> None:
        """Note that the broker has taken a message: it is back."""
        if self._pause:
            logger.warning("The broker is back.", extra={"action": "publish"})
            self._pause, self.problem = 0.0, None

    @property
    def probe_in(self) -> float:
        """Seconds until the next probe of a broker that is away; the longest pause while a probe is under way."""
        return LONGEST_PAUSE if self._probing else max(0.0, self._probe_at - boottime())

    def disconnect(self, error: BaseException | str) -> None:
        """Drop the connection because of this error; keep one that is blocked, to see when it is unblocked."""
        if not self._pause:
            self.problem = f"it is away: {error}"
            logger.error(
                "The broker is not usable: %s. Nothing is marked until it is back; other beats may reach it.",
                error,
                extra={"action": "publish"},
            )
        with self._changing:
            # The first probe follows at once: a restarted broker breaks old connections and takes new ones.
            self._probe_at = boottime() + self._pause
            self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            if isinstance(error, Blocked):
                self.producer = None
                return
            self._blocked = None
            self._drop(lambda connection: connection.collect())  # not `close`: AMQP would wait for an answer to that

    def reconnect(self) -> None:
        """Connect again: a refusal may have closed the connection or its channel, as in AMQP."""
        with self._changing:
            self.close()
            self.ready()

    def close(self) -> None:
        """Close the connection; one that another thread is making ends with the process."""
        if self._changing.acquire(blocking=False):
            try:
                # RabbitMQ does not answer to a `close` on a connection that it has blocked.
                self._drop(lambda connection: connection.collect() if self._blocked else connection.release())
                self._blocked = None
            finally:
                self._changing.release()

    def is_connection_error(self, error: BaseException) -> bool:
        """Return whether an error leaves it unknown whether the message was sent."""
        # For its consumers kombu counts a KeyError among Redis's connection errors, and wraps it like them. While a
        # message is made, it is the message's own error: an unknown compression, for instance.
        if isinstance(_inner(error), KeyError) or self.is_closed_by(error):
            return False
        connection = self._connection
        known: tuple[type[BaseException], ...] = (OSError, OperationalError)
        if connection is not None:
            known += tuple(connection.connection_errors) + tuple(connection.recoverable_connection_errors)
        return isinstance(error, known)

    def is_refusal(self, error: BaseException) -> bool:
        """Return whether the broker answered and refused."""
        connection = self._connection
        return connection is not None and isinstance(error, tuple(connection.channel_errors))

    def is_closed_by(self, error: BaseException) -> bool:
        """Return whether the broker answered that it takes no message for a queue now, whatever the message is."""
        error = _inner(error)
        if self.driver == "amqp":
            return type(error).__name__ in ("AccessRefused", "MessageNacked")  # of amqp and of kombu
        if self.driver == "redis":
            from redis.exceptions import ResponseError

            # redis-py has a class of its own for the codes that it knows: OOM, READONLY, NOPERM.
            return isinstance(error, ResponseError) and (
                type(error) is not ResponseError or _CODE_OF_REDIS.match(str(error)) is not None
            )
        return False

    @staticmethod
    def may_be_of_one(error: BaseException) -> bool:
        """Return whether another message for the same queue might be taken: of another size, or another priority."""
        return type(_inner(error)).__name__ in ("MessageNacked", "NoPermissionError")

    @staticmethod
    def said(error: BaseException) -> str:
        """Return what the broker said when it closed a queue; RabbitMQ rejects a message without a word."""
        return error_text(_inner(error)).removesuffix(": ")

    def _probe(self) -> None:
        self._probing = True
        try:
            self.ready()
        finally:
            self._probing = False
            self._on_probed()

    def _is_blocked(self) -> bool:
        """Return whether RabbitMQ still blocks the connection; one that it has unblocked, or closed, is made anew."""
        if self._blocked is not None:
            with suppress(socket.timeout):
                self._blocked.drain_events(timeout=0)
        return self._blocked is not None

    def _block(self, connection: Any) -> None:
        self._blocked = connection
        raise Blocked("RabbitMQ has blocked the connection: it lacks memory or disk space")

    def _unblock(self) -> None:
        self._blocked = None

    def _is_connected(self) -> bool:
        connection = self._connection
        return self.producer is not None and connection is not None and bool(connection.connected)

    def _drop(self, how: Callable[[Any], None]) -> None:
        connection, self._connection, self.producer = self._connection, None, None
        if connection is not None:
            try:
                how(connection)
            except Exception:
                logger.debug("Closing the broker connection failed", exc_info=True)

    def _connect(self) -> None:
        self.close()
        connection = self._sender.app.connection_for_write(connect_timeout=CONNECT_TIMEOUT)
        self.driver = str(connection.transport.driver_type)
        caution = CAUTION.get(self.driver, {})
        connection.transport_options = {**caution, **(connection.transport_options or {})}
        self._connection = connection
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=CONNECT_TIMEOUT)
        channel = connection.default_channel  # virtual transports connect with the first channel only
        if self.driver == "redis":
            # Otherwise kombu makes a new client for each message, which costs more than the message.
            channel.Client = lru_cache(channel.Client)
        if self.driver == "amqp":
            amqp = connection.connection
            amqp.on_blocked, amqp.on_unblocked = lambda _reason: self._block(amqp), self._unblock
        producer = self._sender.Producer(connection, auto_declare=False)
        self._on_connect(producer)
        self.producer = producer


def _inner(error: BaseException) -> BaseException:
    """Return the error of the transport, which kombu may have wrapped."""
    return error.__cause__ or error if isinstance(error, OperationalError) else error
