"""The beat's own connection to the broker: made with time-outs, probed while the broker is away.

A broker that hangs accepts a connection and then does not answer before the time-outs end. So another thread probes it,
and a turn of the beat waits for the probe only for a moment.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from kombu.exceptions import OperationalError

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.timed_call import TimedCall

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT = 3.0  # seconds for one attempt to reach the broker
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0  # seconds between two probes of a broker that is away

# Used where the user has set nothing else. Without these a frozen Redis blocks a beat forever, and a RabbitMQ that
# dies loses every message that it had not confirmed.
CAUTION: dict[str, dict[str, Any]] = {
    "redis": {"socket_timeout": 5.0, "socket_connect_timeout": CONNECT_TIMEOUT, "socket_keepalive": True},
    "amqp": {"confirm_publish": True, "read_timeout": 10, "write_timeout": 10},
}


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
        self._pause = 0.0
        self._probe_at = 0.0
        self._changing = threading.RLock()
        self.producer: Any = None
        self.driver = ""

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
                self._connect()
            except Exception as error:  # noqa: BLE001  each transport has errors of its own; the broker is away
                self.disconnect(error)
                return False
            if self._pause:
                logger.warning("The broker is back.", extra={"action": "publish"})
            self._pause = 0.0
            return True

    @property
    def probe_in(self) -> float:
        """Seconds until the next probe of a broker that is away; the longest pause while a probe is under way."""
        return LONGEST_PAUSE if self._probing else max(0.0, self._probe_at - boottime())

    def disconnect(self, error: BaseException | str) -> None:
        """Drop the connection because of this error."""
        if not self._pause:
            logger.error(
                "The broker is not usable: %s. Nothing is marked until it is back; other beats may reach it.",
                error,
                extra={"action": "publish"},
            )
        with self._changing:
            # The first probe follows at once: a restarted broker breaks old connections and takes new ones.
            self._probe_at = boottime() + self._pause
            self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
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
                self._drop(lambda connection: connection.release())
            finally:
                self._changing.release()

    def is_connection_error(self, error: BaseException) -> bool:
        """Return whether an error leaves it unknown whether the message was sent."""
        # For its consumers kombu counts a KeyError among Redis's connection errors, and wraps it like them. While a
        # message is made, it is the message's own error: an unknown compression, for instance.
        inner = error.__cause__ if isinstance(error, OperationalError) else error
        if isinstance(inner, KeyError):
            return False
        connection = self._connection
        known: tuple[type[BaseException], ...] = (OSError, OperationalError)
        if connection is not None:
            known += tuple(connection.connection_errors) + tuple(connection.recoverable_connection_errors)
        return isinstance(error, known)

    def is_refusal(self, error: BaseException) -> bool:
        """Return whether the broker answered and refused."""
        connection = self._connection
        if connection is None:
            return False
        # RabbitMQ's "no" to a message, which kombu does not count among the errors of a channel.
        return isinstance(error, tuple(connection.channel_errors)) or type(error).__name__ == "MessageNacked"

    def _probe(self) -> None:
        self._probing = True
        try:
            self.ready()
        finally:
            self._probing = False
            self._on_probed()

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
        producer = self._sender.Producer(connection, auto_declare=False)
        self._on_connect(producer)
        self.producer = producer
