"""`PgBeat`: one object per app, beside its tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from celery_pgbeat.api.ahead import coming_runs
from celery_pgbeat.api.backfills import BackfillApi
from celery_pgbeat.api.batch import Batch
from celery_pgbeat.api.configure import configure
from celery_pgbeat.api.groups import GroupApi
from celery_pgbeat.api.rows import Job, Upcoming, read_row
from celery_pgbeat.columns import PeriodicTask
from celery_pgbeat.declare import Columns, Declaration, Definition, app_timezone, declarations_of, define
from celery_pgbeat.declare.columns import read_instant
from celery_pgbeat.declare.lazy import storable_arguments
from celery_pgbeat.errors import InvalidPeriodicTask, UnknownPeriodicTask
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.api_queries import ApiQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings

if TYPE_CHECKING:
    from celery import Celery
    from typing_extensions import Unpack

Task = TypeVar("Task")

# What a declaration can be checked against before the app's configuration may be read.
ANY_APP = Settings(min_interval=timedelta(microseconds=1))


class PgBeat(GroupApi, BackfillApi):
    """Periodic tasks in Postgres, from Python.

    Args:
        app: the Celery app; its beat becomes ours and its workers guard and track jobs. None where there is no
            app at hand: then the zone of what carries none is UTC, and `periodic_task` has nowhere to declare.
        url: `postgresql://user@host/database`; None for `pgbeat_url` of the app's configuration, else PGBEAT_URL.
        schema: the database schema; None for `pgbeat_schema`, else `pgbeat`.

    Raises:
        InvalidSetting: the URL is no Postgres URL.
        MissingDriver: its driver is not installed.

    Example:
        >>> from celery import Celery
        >>> from celery_pgbeat import PgBeat, cron
        >>> app = Celery("shop", broker="redis://localhost")
        >>> beat = PgBeat(app, url="postgresql://localhost/shop")
        >>> @beat.periodic_task(cron("0 3 * * *", timezone="Europe/Berlin"), max_run_time="30m")
        ... @app.task
        ... def nightly_report(): ...
    """

    def __init__(self, app: Celery | None = None, url: str | None = None, schema: str | None = None) -> None:
        self._app = app
        self._given = {"pgbeat_url": url, "pgbeat_schema": schema}
        self._settings: Settings | None = None
        self._databases: dict[int, Database] = {}  # by process: after a fork the parent's connections are the parent's
        if app is not None:
            configure(app, url, schema)

    def __repr__(self) -> str:
        return f"PgBeat({'' if self._app is None else self._app.main!r})"

    @property
    def settings(self) -> Settings:
        """The settings in force, read when they are first needed.

        Raises:
            InvalidSetting: one of them is wrong; names it and its value.
        """
        if self._settings is None:
            self._settings = Settings.from_mapping(self._given if self._app is None else self._app.conf)
        return self._settings

    @property
    def database(self) -> Database:
        """The database of this process; nothing connects before the first statement.

        Raises:
            InvalidSetting: no URL is set.
        """
        process = os.getpid()
        if process not in self._databases:
            # Of threads that come at once, one wins: a second pool of connections would never be closed.
            self._databases.setdefault(process, Database(self.settings.required_url, self.settings.schema))
        return self._databases[process]

    def periodic_task(
        self,
        schedule: Any,
        name: str | None = None,
        *,
        run_on_start: bool = False,
        **columns: Unpack[Columns],
    ) -> Callable[[Task], Task]:
        """Declare a task periodic; a beat creates the row when it starts, and keeps it in sync with the code.

        The decorator stands above `@app.task` (below works too) and returns what it was given. An operator's pause
        or edit stands until the code changes that very column; a declaration that vanishes pauses its row.

        Args:
            schedule: `cron(...)`, `every(...)`, text, a timedelta, seconds, or Celery's own schedule objects.
            name: of the row; default the task's name.
            run_on_start: have the row run at once when it is new.
            **columns: see `Columns`.

        Raises:
            InvalidPeriodicTask: a column is wrong; names it and its value.
            InvalidSchedule: the schedule is wrong; names the field and the value.

        Example:
            >>> from celery import Celery
            >>> app = Celery("shop")
            >>> beat = PgBeat(app, url="postgresql://localhost/shop")
            >>> @beat.periodic_task("every 5m", name="poll-inbox", kwargs={"box": 1})
            ... @app.task
            ... def poll(box): ...
        """
        if self._app is None:
            raise InvalidPeriodicTask("PgBeat was made without an app: a declaration in code needs PgBeat(app)")
        args, kwargs = storable_arguments(columns.get("args") or (), columns.get("kwargs") or {})
        define(
            name or "unnamed", "unnamed", schedule, {**columns, "args": args, "kwargs": kwargs}, ANY_APP
        )  # here the traceback shows the line that is wrong
        declarations = declarations_of(self._app)

        def declare(task: Task) -> Task:
            declarations.append(Declaration(task, schedule, name, dict(columns), run_on_start))
            return task

        return declare

    def schedule(
        self,
        name: str,
        task: Any = None,
        schedule: Any = None,
        *,
        keep_next_run: bool = False,
        run_on_start: bool = False,
        managed_by: str = "api",
        connection: Any = None,
        **columns: Unpack[Columns],
    ) -> PeriodicTask:
        """Declare a row, from any process: insert it, or change what differs. An equal one is left untouched.

        It declares the whole definition: what is omitted becomes the default. It never touches a pause, the next
        run or the history of the row; a changed schedule has its next run planned anew.

        Args:
            name: of the row, up to 200 characters.
            task: a Celery task, the name of one, or a signature, whose arguments and options count too.
            schedule: as for `periodic_task`; None for a row that only `trigger` starts.
            keep_next_run: keep the next run even when the schedule changes.
            run_on_start: have the row run at once when it is new.
            managed_by: who declares this.
            connection: join this transaction; a SQLAlchemy connection or session, or one of psycopg's.
            **columns: see `Columns`.

        Raises:
            InvalidPeriodicTask: a column is wrong; names it and its value.
            InvalidSchedule: the schedule or the zone is wrong; names the field and the value.
            DatabaseUnavailable: Postgres is out of reach.

        Example:
            >>> beat.schedule("poll-inbox", task="mail.poll", schedule=every("5m"), kwargs={"box": 1}).schedule
            'every 5m'
        """
        definition = self._define(name, task, schedule, columns, managed_by)
        rows = self._queries.schedule(
            [definition.record()],
            keeping_next_run=[definition.name] if keep_next_run else [],
            running_first=[definition.name] if run_on_start else [],
            connection=connection,
        )
        return read_row(PeriodicTask, rows[0]) if rows else self.get(definition.name, connection=connection)

    def schedule_many(self, definitions: Iterable[Mapping[str, Any]], connection: Any = None) -> None:
        """Declare many rows at once: all of them or, if any is invalid, none.

        Args:
            definitions: for each row a dict of what `schedule` takes.
            connection: join this transaction.

        Raises:
            InvalidPeriodicTask: lists every definition that is wrong, and why.
            DatabaseUnavailable: Postgres is out of reach.

        Example:
            >>> shops = [{"name": f"shop-{n}", "task": "shop.sync", "schedule": "@hourly", "args": [n]} for n in (1, 2)]
            >>> beat.schedule_many(shops)
        """
        batch = Batch(self._define)
        for definition in definitions:
            batch.add(definition)
        batch.refuse_if_wrong()
        self._queries.schedule(batch.records, batch.keeping_next_run, batch.running_first, connection)

    def unschedule(self, name: str, *, connection: Any = None) -> bool:
        """Remove a row; return whether there was one. Messages already at the broker still run.

        Example:
            >>> beat.unschedule("nobody")
            False
        """
        return self._queries.unschedule(name, connection)

    def pause(
        self, name: str, reason: str | None = None, until: datetime | None = None, *, connection: Any = None
    ) -> PeriodicTask:
        """Pause a row until a time, or until somebody resumes it.

        Args:
            name: of the row.
            reason: why; free text for those who wonder.
            until: when it resumes by itself; a naive datetime is read in the app's zone.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidPeriodicTask: `until` is no datetime.

        Example:
            >>> beat.pause("nightly", reason="stocktaking").enabled
            False
        """
        if until is not None and read_instant("until", until).tzinfo is None:
            until = until.replace(tzinfo=ZoneInfo(self._timezone))
        (row,) = self._queries.run("pause", connection, name=name, reason=reason, until=until)
        return read_row(PeriodicTask, row)

    def resume(self, name: str, *, connection: Any = None) -> PeriodicTask:
        """Resume a paused row; its next run is the next one after now, paused time is never caught up.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.resume("nightly").enabled
            True
        """
        (row,) = self._queries.run("resume", connection, name=name)
        return read_row(PeriodicTask, row)

    def trigger(self, name: str, force: bool = False, *, connection: Any = None) -> UUID:
        """Start a job of a row now, even of a paused one; return the id of job and Celery task.

        A beat sends it, within a moment after the transaction has committed. The next run stays where it is.

        Args:
            name: of the row.
            force: send it even beside a job that is not final yet.
            connection: join this transaction.

        Raises:
            JobInTheWay: a job of the row is not final, and neither `force` nor `overlap = 'allow'` permits two.
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> job = beat.trigger("nightly", force=True)
        """
        (row,) = self._queries.run("trigger", connection, name=name, force=force)
        return UUID(str(row["job"]))

    def get(self, name: str, *, connection: Any = None) -> PeriodicTask:
        """Read one row.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.get("nightly").schedule
            '0 3 * * *'
        """
        return read_row(PeriodicTask, self._row("get", name, connection))

    def list(
        self,
        *,
        task: str | None = None,
        managed_by: str | None = None,
        group_name: str | None = None,
        enabled: bool | None = None,
        with_problem: bool | None = None,
        limit: int = 100,
        after: str = "",
        connection: Any = None,
    ) -> Sequence[PeriodicTask]:
        """Read rows in name order, a page at a time.

        Args:
            task: only rows of this task.
            managed_by: only rows that this manager declared.
            group_name: only rows of this group.
            enabled: only rows that are enabled, or only paused ones.
            with_problem: only rows that cannot be planned, or only the others.
            limit: at most so many.
            after: only names later than this one: the last name of the page before.
            connection: read in this transaction.

        Example:
            >>> [row.name for row in beat.list(managed_by="api")]
            ['nightly']
        """
        rows = self._queries.run(
            "page_of_tasks",
            connection,
            pattern=None,
            queue=None,
            task=task,
            managed_by=managed_by,
            group_name=group_name,
            enabled=enabled,
            with_problem=with_problem,
            limit=limit,
            after=after,
        )
        return [read_row(PeriodicTask, row) for row in rows]

    def jobs(
        self, name: str | None = None, state: str | None = None, limit: int = 100, *, connection: Any = None
    ) -> Sequence[Job]:
        """Read jobs, the latest first.

        Args:
            name: only jobs of this row.
            state: only jobs in this state.
            limit: at most so many.
            connection: read in this transaction.

        Example:
            >>> [job.origin for job in beat.jobs("nightly")]
            ['manual']
        """
        others = dict.fromkeys(("pattern", "reason", "task", "queue", "since", "before", "before_at"))
        rows = self._queries.run("page_of_jobs", connection, name=name, state=state, limit=limit, **others)
        return [read_row(Job, row) for row in rows]

    def upcoming(self, name: str | None = None, limit: int = 100, *, connection: Any = None) -> Sequence[Upcoming]:
        """Read what runs next: of each row the next run, the soonest first, or of one row the coming runs.

        What is paused, finished or in trouble is not among them. The runs of one row are told in advance, with
        bounds, jitter and blackout windows; a later edit, an outage or a job in the way changes them.

        Args:
            name: of one row; None for the next run of all.
            limit: at most so many.
            connection: read in this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidSchedule: the row cannot be planned as it is.

        Example:
            >>> [run.next_run_at.minute for run in beat.upcoming("nightly", limit=3)]
            [0, 0, 0]
        """
        if name is None:
            return [read_row(Upcoming, row) for row in self._queries.run("upcoming", connection, limit=limit)]
        return list(islice(coming_runs(self._row("foresee", name, connection), self._rules), limit))

    def explain(self, name: str, *, connection: Any = None) -> str:
        """Say in one sentence why a row is, or is not, running now.

        It is told by the tables alone, so it is right when every beat is dead; instants are in UTC. Of all rows at once
        the views `status` and `overdue` tell.

        Args:
            name: of the row.
            connection: read in this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.explain("nightly").partition(":")[0]
            "'nightly' is not running"
        """
        (row,) = self._queries.run("explain", connection, name=name)
        return str(row["sentence"])

    def close(self) -> None:
        """Close this process's connections; the next statement makes new ones."""
        if (database := self._databases.get(os.getpid())) is not None:
            database.close()

    @property
    def _queries(self) -> ApiQueries:
        return ApiQueries(self.settings.schema, lambda: self.database)

    @property
    def _rules(self) -> Rules:
        return Rules(
            timezone=self._timezone,
            on_time=self.settings.on_time,
            lease=self.settings.lease,
            pickup_deadline=self.settings.pickup_deadline,
            min_interval=self.settings.min_interval,
        )

    @property
    def _timezone(self) -> str:
        return "UTC" if self._app is None else app_timezone(self._app)

    def _row(self, statement: str, name: str, connection: Any) -> Mapping[str, Any]:
        rows = self._queries.run(statement, connection, name=name)
        if not rows:
            meant = self._queries.similar_name(name, connection)
            hint = f" Did you mean {meant!r}?" if meant else ""
            raise UnknownPeriodicTask(f"No periodic task is named {name!r}.{hint}")
        return rows[0]

    def _define(self, name: Any, task: Any, schedule: Any, columns: Mapping[str, Any], managed_by: str) -> Definition:
        return define(name, task, schedule, columns, self.settings, self._timezone, managed_by)
