"""The schema and its nodes: migrate, look, export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from celery_pgbeat.api.exchange import line_of
from celery_pgbeat.api.methods.connected import Connected
from celery_pgbeat.api.nodes import Health, Node, read_health, read_node
from celery_pgbeat.api.shared_lines import shared_of
from celery_pgbeat.postgres.api_queries import translating
from celery_pgbeat.postgres.migrate import migrate
from celery_pgbeat.texts import name_patterns

PAGE = 1_000  # rows of one statement, where all are to be read


class OperatorMethods(Connected):
    """What `PgBeat` does for operators."""

    def migrate(self) -> int:
        """Create the schema, or bring it up to date, and return how many migrations were applied.

        The same as `celery-pgbeat migrate`. Any number of processes may do it at once.

        Raises:
            SchemaTooNew: a newer package has made the schema incompatible with this one.
            DatabaseBusy: another session holds the lock of migrations; the message names it.
            DatabaseUnavailable: Postgres is away.

        Example:
            >>> beat.migrate()  # the schema is up to date
            0
        """
        with translating(self.database):
            return migrate(self.database.engine, self.database.schema)

    def nodes(self, *, connection: Any = None) -> Sequence[Node]:
        """List the beats and workers that have sent a heartbeat within the last day, the beats first.

        Example:
            >>> [node.role for node in beat.nodes() if node.alive]
            []
        """
        return [read_node(row) for row in self._queries.run("nodes", connection)]

    def health(
        self, max_lag: timedelta | None = None, hostname: str | None = None, *, connection: Any = None
    ) -> Health:
        """Check that a beat is alive and that nothing is overdue but what people have to do, to decide or to end.

        `celery-pgbeat health` also checks the schema's version and the broker.

        Args:
            max_lag: how late it may be; None for what counts as on time, 2 × (lease + poll). Less changes nothing.
            hostname: count only beats of this host.
            connection: read in this transaction.

        Raises:
            DatabaseUnavailable: Postgres is out of reach.
            SchemaMissing: there is no schema.

        Example:
            >>> health = beat.health()
            >>> (health.healthy, health.beats)
            (False, 0)
        """
        (row,) = self._queries.run("health", connection, hostname=hostname)
        return read_health(row, self.settings.on_time if max_lag is None else max_lag)

    def export(
        self, *, managed_by: str | None = None, like: str | None = None, connection: Any = None
    ) -> Iterator[str]:
        """Iterate over the definitions in name order, each as one line of JSON, which `celery-pgbeat import` reads.

        First come the groups with a limit and the named blackout windows, unless a manager or names are chosen.
        Without a connection each page of 1,000 rows is as it was when it was read.

        Args:
            managed_by: only rows with this `managed_by`.
            like: only names like this, see `list`.
            connection: read in this transaction.

        Raises:
            InvalidPeriodicTask: the JSON of a row cannot be read; names the row.

        Example:
            >>> print(*beat.export(like="night*"))
            {"name": "nightly", "task": "shop.report", "schedule": "0 3 * * *", "timezone": "UTC", "managed_by": "api"}
        """
        others = dict.fromkeys(("task", "queue", "group_name", "enabled", "with_problem"))
        filters = {**others, "managed_by": managed_by, "pattern": None if like is None else name_patterns.like(like)}
        if managed_by is None and like is None:
            yield from (shared_of(row).line for row in self._queries.run("shared_rows", connection))
        after = ""
        while rows := self._queries.run("page_of_tasks", connection, **filters, limit=PAGE, after=after):
            yield from (line_of(row) for row in rows)
            after = rows[-1]["name"]
