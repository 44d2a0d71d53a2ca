"""The servers of the demo: a Postgres and a broker, private or given."""

from __future__ import annotations

import json
import secrets
import shlex
import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.transport import redis

from celery_pgbeat.cli.command_line.failure import Failure
from celery_pgbeat.embedded import Postgres, Valkey
from celery_pgbeat.embedded.postgres import find_binaries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.postgres.migrate import migrate
from celery_pgbeat.texts.redaction import broker_error, masked_broker

CONNECT_TIMEOUT = 5.0  # seconds in which a given broker must accept a connection


class Servers:
    """A migrated schema and an empty queue; both are removed on exit.

    On a given Postgres the demo has a schema of its own, and on a given broker a queue of its own.

    Args:
        url: the Postgres to use; None for a private one.
        broker: the broker to use; None for a private Valkey.

    Raises:
        ServerUnavailable: a private server cannot be started here; the message says why.
        DatabaseUnavailable: the given Postgres is out of reach.
        Failure: the given broker is out of reach.
    """

    def __init__(self, url: str | None, broker: str | None) -> None:
        self._given_url = url
        self._given_broker = broker
        self._own_name = f"pgbeat_demo_{secrets.token_hex(3)}"
        self._cleaning = ExitStack()
        self.url = self.broker = ""
        self._passfile: Path | None = None

    def __enter__(self) -> Servers:
        try:
            self.url = self._given_url or self._private_database()
            self.broker = self._given_broker or self._cleaning.enter_context(Valkey()).url
            self.database = Database(self.url, self.schema)
            self._cleaning.callback(self.database.close)
            self._migrate()
            if self._given_broker is not None:
                self._check_broker()
                self._cleaning.callback(self._delete_queue)
        except BaseException:
            self._cleaning.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cleaning.close()

    @property
    def schema(self) -> str:
        """The schema of the periodic tasks."""
        return "pgbeat" if self._given_url is None else self._own_name

    @property
    def queue(self) -> str:
        """The queue of the demo's messages."""
        return "celery" if self._given_broker is None else self._own_name

    @property
    def shown_url(self) -> str:
        """The database's URL for psql, without its password."""
        return masked(normalise_url(self.url).set(drivername="postgresql"))

    @property
    def shown_broker(self) -> str:
        """The broker's URL without its password."""
        return masked_broker(self.broker)

    @property
    def psql_command(self) -> str:
        """The command that starts psql; a private server's password is in a file that only its owner can read."""
        passfile = f"PGPASSFILE={shlex.quote(str(self._passfile))} " if self._passfile is not None else ""
        url = normalise_url(self.url)._replace(drivername="postgresql")
        shown = url._replace(password=None).render_as_string() if self._passfile is not None else self.shown_url
        return f"{passfile}{shlex.join([self._psql, shown])}"

    @property
    def _psql(self) -> str:
        """The psql on PATH, else the one beside the private server."""
        beside = find_binaries() / "psql" if self._given_url is None else None
        if shutil.which("psql") is None and beside is not None and beside.exists():
            return str(beside)
        return "psql"

    def _private_database(self) -> str:
        postgres = self._cleaning.enter_context(Postgres())
        self._passfile = postgres.passfile
        return postgres.create_database("demo")

    def _migrate(self) -> None:
        try:
            migrate(self.database.engine, self.schema)
        except Exception as error:
            raise self.database.translated(error) from error
        if self._given_url is not None:
            self._cleaning.callback(self.database.execute, f'drop schema "{self.schema}" cascade')

    def _check_broker(self) -> None:
        try:
            with Connection(self.broker, connect_timeout=CONNECT_TIMEOUT) as connection:
                connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_TIMEOUT)
        except Exception as error:  # each transport has errors of its own
            raise Failure(
                f"The broker {self.shown_broker} cannot be used: {broker_error(error, self.broker)}"
            ) from error

    def _delete_queue(self) -> None:
        # If the broker is gone, so is the queue.
        with suppress(Exception), Connection(self.broker, connect_timeout=CONNECT_TIMEOUT) as connection:
            channel = connection.channel()
            queue = Queue(self.queue, Exchange(self.queue), routing_key=self.queue, channel=channel)
            queue.declare()  # some transports only delete the bindings that they know
            queue.delete()
            queue.exchange.delete()
            if isinstance(channel, redis.Channel):
                forget_unacknowledged(channel, self.queue)


def forget_unacknowledged(channel: redis.Channel, routing_key: str) -> None:
    """Remove what a worker that was killed has not acknowledged: on Redis that lies beside the queue, with others'."""
    for tag, text in channel.client.hscan_iter(channel.unacked_key):
        _, _, routed_by = json.loads(text)
        if routed_by == routing_key:
            channel.client.zrem(channel.unacked_index_key, tag)
            channel.client.hdel(channel.unacked_key, tag)
