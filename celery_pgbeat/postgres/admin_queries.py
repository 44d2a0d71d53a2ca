"""The statements of operators, by the CLI and what is built on it: pages of rows, nodes, what is stuck, what grows.

Reading takes no lock. What writes (`import`, `remove`) runs in the operator's own transaction, prepared in full before
it begins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

from celery_pgbeat.postgres.api_queries import ApiQueries, Person, Row, translating
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.roles import ROLES

PAGE = 1_000  # rows of one statement, where all are to be read


class AdminQueries:
    """The statements of operators, for one database."""

    def __init__(self, database: Database, person: Person | None = None) -> None:
        self.database = database
        self._api = ApiQueries(database.schema, lambda: database, person)

    def page_of_tasks(self, *, limit: int, after: str = "", **filters: Any) -> list[Row]:
        """Read a page of periodic tasks in name order.

        Args:
            limit: the most rows to return.
            after: only names later than this: the last one of the page before.
            **filters: pattern (of SQL's LIKE), task, queue, managed_by, group_name, enabled, with_problem;
                None for any.
        """
        known = dict.fromkeys(("pattern", "task", "queue", "managed_by", "group_name", "enabled", "with_problem"))
        return self._run("page_of_tasks", limit=limit, after=after, **{**known, **filters})

    def page_of_open_tasks(self, *, limit: int, after: str = "", **filters: Any) -> list[Row]:
        """Read a page of periodic tasks as `page_of_tasks` does, without what the role of a dashboard may not read."""
        known = dict.fromkeys(("pattern", "task", "queue", "managed_by", "group_name", "enabled", "with_problem"))
        return self._run("page_of_open_tasks", limit=limit, after=after, **{**known, **filters})

    def all_tasks(self, **filters: Any) -> Iterator[Row]:
        """Read all periodic tasks in name order, as `page_of_tasks` does, one page after the other.

        Each page is as it was when it was read: no transaction stays open meanwhile.
        """
        after = ""
        while rows := self.page_of_tasks(limit=PAGE, after=after, **filters):
            yield from rows
            after = rows[-1]["name"]

    def page_of_jobs(
        self, *, limit: int, before: str | None = None, before_at: datetime | None = None, **filters: Any
    ) -> list[Row]:
        """Read a page of jobs, the latest first.

        Args:
            limit: the most rows to return.
            before: the id of the last job of the page before.
            before_at: when that one was created.
            **filters: name, pattern (of SQL's LIKE), states, reason, task, queue, group_name, since,
                until; None for any.
        """
        known = dict.fromkeys(("name", "pattern", "states", "reason", "task", "queue", "group_name", "since", "until"))
        return self._run("page_of_jobs", limit=limit, before=before, before_at=before_at, **{**known, **filters})

    def changed_jobs(self, since: datetime, known: Collection[str], **filters: Any) -> list[Row]:
        """Read the jobs that are not final, those made since then, and those of the known ids, in order of creation.

        Args:
            since: jobs that were made at this time or later are read even if they are final.
            known: ids of jobs that were not final and may be by now.
            **filters: name, pattern (of SQL's LIKE), task, queue, group_name; None for any.
        """
        any_job = dict.fromkeys(("name", "pattern", "task", "queue", "group_name"))
        return self._run("changed_jobs", since=since, ids=list(known), **{**any_job, **filters})

    def created_at_of(self, job: str) -> datetime | None:
        """Return when a job was created; None if there is no such job."""
        rows = self._run("created_at_of", job=job)
        return rows[0]["created_at"] if rows else None

    def jobs_between(self, lowest: str, highest: str, limit: int) -> list[Row]:
        """Read the jobs whose ids are in this range, both ends included; active ones and those of the history."""
        return self._run("jobs_between", lowest=lowest, highest=highest, limit=limit)

    def arguments_of_job(self, id: str) -> Row | None:
        """Read the arguments of a job where they are kept, as JSON, else None; sensitive ones are only `hidden`."""
        return next(iter(self._run("arguments_of_job", id=id)), None)

    def sent_or_shadowed(self, since: datetime, until: datetime) -> list[Row]:
        """Read the occurrences of a time range that beats have sent, or would have sent in shadow, in order."""
        return self._run("sent_or_shadowed", since=since, until=until)

    def unsent_in_shadow(self, since: datetime) -> list[Row]:
        """Read what was recorded in shadow since an instant and has no later job, in order."""
        return self._run("unsent_in_shadow", since=since)

    def statuses_of(self, names: Collection[str]) -> dict[str, Row]:
        """Read the status of the periodic tasks of these names, by name."""
        return {row["name"]: row for row in self._run("statuses_of", names=list(names))}

    def overdue(self, limit: int) -> list[Row]:
        """Read what should have happened and has not, the longest late first, with the reason."""
        return self._run("overdue", limit=limit)

    def nodes(self) -> list[Row]:
        """List the beats and workers that were seen within a day, with what each is doing at this moment."""
        return self._run("nodes")

    def no_beat(self) -> str | None:
        """Return the sentence that no beat is alive, with since when; None while one is."""
        sentence: str | None = self._run("no_beat")[0]["no_beat"]
        return sentence

    def definitions_of(self, names: Collection[str]) -> dict[str, Row]:
        """Read the periodic tasks of these names, by name."""
        return {row["name"]: row for row in self._run("definitions_of", names=list(names))}

    def names_managed_by(self, managed_by: str) -> Iterator[str]:
        """Read the names of one manager's periodic tasks in name order."""
        after = ""
        while rows := self._run("names_managed_by", managed_by=managed_by, after=after, limit=PAGE):
            yield from (row["name"] for row in rows)
            after = rows[-1]["name"]

    def names_meant(self, names: Collection[str], patterns: Collection[str] = ()) -> list[Row]:
        """Find the periodic tasks of these names, and those that these patterns of SQL's LIKE match, in name order."""
        return self._run("names_meant", names=list(names), patterns=list(patterns))

    def names_that_begin_with(self, begin: str, limit: int) -> list[str]:
        """Read the first names that begin with a text."""
        return [row["name"] for row in self._run("names_that_begin_with", begin=begin, limit=limit)]

    def similar_name(self, name: str) -> str | None:
        """Return the name that may have been meant."""
        return self._api.similar_name(name)

    def refused_declarations(
        self, *, pattern: str | None = None, managed_by: str | None = None, limit: int = PAGE
    ) -> list[Row]:
        """Read what code declares and its beats refuse, in name order."""
        return self._run("refused_declarations", pattern=pattern, managed_by=managed_by, limit=limit)

    def apps(self) -> list[Row]:
        """Read the apps whose beats are alive, the one that has the schema first."""
        return self._run("apps")

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Open a transaction; what is done with its connection is done as a whole or not at all.

        Raises:
            DatabaseUnavailable: Postgres is out of reach, or went away before the end.
        """
        transactional = self.database.engine.execution_options(isolation_level="READ COMMITTED")
        with translating(self.database), transactional.begin() as connection:
            yield connection

    def lock_rows(self, names: Collection[str], connection: Any) -> dict[str, str]:
        """Lock the periodic tasks of these names until the transaction ends; return the `managed_by` of each."""
        return {row["name"]: row["managed_by"] for row in self._run("lock_rows", connection, names=list(names))}

    def schedule(self, records: Iterable[str], taking_over: Collection[str], connection: Any) -> int:
        """Declare periodic tasks, each a record as JSON text; return how many were new or differed."""
        given = f"[{','.join(records)}]"
        rows = self._run("schedule", connection, definitions=given, running_first=[], taking_over=list(taking_over))
        return len(rows)

    def pause_many(self, names: Collection[str], reason: str, connection: Any) -> list[str]:
        """Pause periodic tasks until they are resumed; return the names of those that existed."""
        rows = self._run("pause_many", connection, names=list(names), reason=reason, until=None, seconds=None)
        return [row["name"] for row in rows]

    def count_from(self, since: Mapping[str, datetime], connection: Any) -> list[str]:
        """Let new periodic tasks count from instants before they were written; return the names of those that do."""
        rows = self._run("count_from", connection, names=list(since), instants=list(since.values()))
        return [row["name"] for row in rows]

    def shared_rows(self) -> list[Row]:
        """Read the groups with settings and the named windows, in the order of an export."""
        return self._run("shared_rows")

    def write_groups(self, groups: str, connection: Any) -> None:
        """Set what groups are, except for what they wait for; `groups` is a JSON array of objects."""
        self._run("write_groups", connection, groups=groups)

    def order_groups(self, groups: str, connection: Any) -> None:
        """Set what groups wait for, once all groups and periodic tasks of a file are written."""
        self._run("order_groups", connection, groups=groups)

    def check_after(self, later: bool, connection: Any) -> None:
        """Check what the periodic tasks of this transaction come after: later, or now and from then on at once."""
        self._run("check_after", connection, later=later)

    def write_windows(self, windows: str, connection: Any) -> None:
        """Set named windows, given as a JSON array of objects."""
        self._run("write_windows", connection, windows=windows)

    def remove(self, names: Collection[str], managed_by: str, connection: Any) -> list[str]:
        """Remove periodic tasks of this manager; return the names of those that existed."""
        rows = self._run("remove", connection, names=list(names), managed_by=managed_by)
        return [row["name"] for row in rows]

    def clock(self) -> datetime:
        """Return the time by the clock that decides everything."""
        now: datetime = self._run("clock")[0]["now"]
        return now

    def zones_in_use(self) -> dict[str, str]:
        """Read the time zones of the periodic tasks that run, each with the name of one of them."""
        return {row["timezone"]: row["name"] for row in self._run("zones_in_use")}

    def to_replan(self, names: Collection[str] | None, zone: str | None) -> list[str]:
        """Read the names of the periodic tasks that `replan` would have planned again, in name order."""
        return [row["name"] for row in self._run("to_replan", names=None if names is None else list(names), zone=zone)]

    def planned_runs(self, names: Collection[str]) -> dict[str, Row]:
        """Read the next runs of periodic tasks, by name, and whether they are still to be planned."""
        return {row["name"]: row for row in self._run("planned_runs", names=list(names))}

    def stored_runs(self, limit: int) -> list[Row]:
        """Read periodic tasks with the next run that a beat has planned, and what decides when it should be."""
        return self._run("stored_runs", limit=limit)

    def offsets_of(self, zone: str, instants: Sequence[datetime]) -> dict[datetime, int]:
        """Return how far a zone's clock is from UTC at these instants, in seconds."""
        rows = self._run("offsets_of", zone=zone, instants=list(instants))
        return {row["instant"]: row["seconds"] for row in rows}

    def due_together(self, least: int) -> Row | None:
        """Read the instant at which the most periodic tasks are due together; none if they are fewer than `least`."""
        return next(iter(self._run("due_together", least=least)), None)

    def tasks_in_use(self) -> list[Row]:
        """Read the Celery tasks of the periodic tasks that run, each with their number and one of their names."""
        return self._run("tasks_in_use")

    def calls_in_use(self) -> list[Row]:
        """Read the shapes of the calls of the rows that run: each with their number and one of their names."""
        return self._run("calls_in_use")

    def routes_in_use(self) -> list[Row]:
        """Read where tracked rows that run want their messages to go: each with their number and one of their names."""
        return self._run("routes_in_use")

    def longest_waits(self) -> Row:
        """Return how long the definitions of the periodic tasks that run let a message stay unacknowledged."""
        return self._run("longest_waits")[0]

    def stuck(self) -> dict[str, Row]:
        """Return what is wrong, by its code: how many, one of them, since when."""
        return {row["code"]: row for row in self._run("stuck")}

    def tables(self) -> list[Row]:
        """Return what Postgres knows of the size of our tables and of the dead rows in them."""
        return self._run("tables", schema=self.database.schema)

    def oldest_transaction(self) -> Row | None:
        """Return the oldest transaction that keeps dead rows from being removed, as far as this user may see it."""
        return next(iter(self._run("oldest_transaction")), None)

    def days(self) -> Row:
        """Return which days of the history there are, and whether the default partition has a row."""
        return self._run("days")[0]

    def missing_grants(self) -> list[Row]:
        """Read the rights that a beat needs and this user lacks, and which of our other roles the user has."""
        others = [f"{self.database.schema}_{role}" for role in ROLES if role != "beat"]
        return self._run("missing_grants", others=others)

    def open_schemas(self) -> list[Row]:
        """Read the schemas in which others than their owner may put a function in the place of one of Postgres' own."""
        return self._run("open_schemas")

    def activity(self, seconds: float) -> Row:
        """Return the present state, and what was made within the last `seconds`."""
        return self._run("activity", seconds=seconds)[0]

    def problems(self, limit: int) -> list[Row]:
        """Read the first periodic tasks that cannot be planned."""
        return self._run("problems", limit=limit)

    def longest_running(self, limit: int) -> list[Row]:
        """Read the jobs that have been running longest."""
        return self._run("longest_running", limit=limit)

    def latest_due(self, limit: int) -> list[Row]:
        """Read what has been overdue longest, without the reasons."""
        return self._run("latest_due", limit=limit)

    def _run(self, name: str, /, connection: Any = None, **parameters: Any) -> list[Row]:
        rows = self._api.run(name, connection, **parameters)
        return [{column: _in_utc(value) for column, value in row.items()} for row in rows]


def _in_utc(value: Any) -> Any:
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value
