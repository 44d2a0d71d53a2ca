"""`PgBeat`: the API, one object per app."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload
from uuid import UUID
from zoneinfo import ZoneInfo

from celery_pgbeat.api.ahead import coming_runs
from celery_pgbeat.api.backfills import check_terms, preview, read_backfill_id, read_range
from celery_pgbeat.api.batch import Batch
from celery_pgbeat.api.configure import configure
from celery_pgbeat.api.groups import GroupStatus, TaskGroup
from celery_pgbeat.api.rows import Backfill, BackfillPreview, Job, Upcoming, read_row
from celery_pgbeat.api.zones import refuse_unknown_zone
from celery_pgbeat.columns import PeriodicTask
from celery_pgbeat.declare import Changes, Columns, Declaration, Definition, app_timezone, declarations_of, define
from celery_pgbeat.declare.columns import read_count, read_group_name, read_instant
from celery_pgbeat.declare.lazy import storable_arguments
from celery_pgbeat.declare.update import changes_of
from celery_pgbeat.errors import InvalidPeriodicTask, UnknownPeriodicTask
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.api_queries import ApiQueries, translating
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.migrate import migrate
from celery_pgbeat.settings import Settings
from celery_pgbeat.suggestions import question

if TYPE_CHECKING:
    from celery import Celery
    from typing_extensions import Unpack

Task = TypeVar("Task")

# For checks of a declaration before the app's configuration may be read.
ANY_APP = Settings(min_interval=timedelta(microseconds=1))


class PgBeat:
    """Periodic tasks in Postgres, from Python.

    Args:
        app: the Celery app. It uses our scheduler then, and its workers guard and track jobs. None for no app: then
            `periodic_task` cannot be used, and the zone of a row without one is known only when a beat has written
            its app's there.
        url: `postgresql://user@host/database`; None for `pgbeat_url` of the app's configuration, else PGBEAT_URL.
        schema: the database schema; None for `pgbeat_schema`, else `pgbeat`.

    Raises:
        InvalidSetting: the URL is not a Postgres URL.
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
        self._databases: dict[
            int, Database
        ] = {}  # by process: a child must not use its parent's connections after a fork
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
            # setdefault: if two threads come at once, both get one object. A second pool would never be closed.
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
        """Declare a task as periodic. A beat creates the row when it starts, and keeps it in sync with the code.

        Put the decorator above `@app.task` (below works too); it returns the task unchanged. An operator's pause or
        edit stays until the code changes that same column. If a declaration is removed, its row is disabled.

        Args:
            schedule: `cron(...)`, `every(...)`, text, a timedelta, seconds, or Celery's own schedule objects.
            name: of the row; default the task's name.
            run_on_start: run the row at once when it is new.
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
        )  # checked here, so that the traceback shows the wrong line
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
        """Declare a row, from any process: insert it, or change the columns that differ. An equal row is not written.

        It declares the whole definition: omitted columns get their default. It never changes a pause, the next run or
        the history of the row; but after a change of the schedule a beat plans the next run again. Without a zone the
        row gets that of its app from the first beat that plans it, and keeps it.

        Args:
            name: of the row, up to 200 characters.
            task: a Celery task, the name of one, or a signature; its arguments and options are used too.
            schedule: as for `periodic_task`; None for a row that only `trigger` starts.
            keep_next_run: keep the next run even when the schedule changes.
            run_on_start: run the row at once when it is new.
            managed_by: the owner of the row.
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

    def update(self, name: str, *, connection: Any = None, **columns: Unpack[Changes]) -> PeriodicTask:
        """Change the named columns of a row and no others; return the row. An equal row is not written.

        The same as an UPDATE in SQL, with Python's checks. A row that code declares keeps the change until the code
        changes that very column.

        Args:
            name: of the row.
            connection: join this transaction.
            **columns: `task`, `schedule`, or any of `Columns`. None sets a column to its default. A schedule with a
                zone of its own sets `timezone` too.

        Raises:
            UnknownPeriodicTask: no row has this name; the message has the name that was meant.
            InvalidPeriodicTask: a column is wrong; names it and its value.
            InvalidSchedule: the schedule or the zone is wrong; names the field and the value.
            DatabaseUnavailable: Postgres is out of reach.

        Example:
            >>> beat.update("nightly", queue="reports", max_run_time=None).queue
            'reports'
        """
        changes = changes_of(self.get(name, connection=connection), columns, self.settings, self._app_timezone)
        rows = self._queries.update(name, changes, connection)
        return read_row(PeriodicTask, rows[0]) if rows else self.get(name, connection=connection)

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
        """Remove a row; return whether it existed. Messages already at the broker still run.

        Example:
            >>> beat.unschedule("unknown")
            False
        """
        return self._queries.unschedule(name, connection)

    def pause(
        self, name: str, reason: str | None = None, until: datetime | None = None, *, connection: Any = None
    ) -> PeriodicTask:
        """Pause a row until a time, or until it is resumed.

        Args:
            name: of the row.
            reason: why; free text, shown by `explain` and in lists.
            until: when it resumes by itself; a naive datetime is read in the app's zone.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidPeriodicTask: `until` is not a datetime.

        Example:
            >>> beat.pause("nightly", reason="stocktaking").enabled
            False
        """
        if until is not None and read_instant("until", until).tzinfo is None:
            until = until.replace(tzinfo=ZoneInfo(self._timezone))
        (row,) = self._queries.run("pause", connection, name=name, reason=reason, until=until)
        return read_row(PeriodicTask, row)

    def resume(self, name: str, *, connection: Any = None) -> PeriodicTask:
        """Resume a paused row. Its next run is the next one after now; runs missed while paused are not caught up.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.resume("nightly").enabled
            True
        """
        (row,) = self._queries.run("resume", connection, name=name)
        return read_row(PeriodicTask, row)

    def trigger(self, name: str, force: bool = False, *, connection: Any = None) -> UUID:
        """Start a job of a row now, even of a paused one; return the id of the job, which is the Celery task id.

        A beat sends it as soon as the transaction has committed. The next run does not change.

        Args:
            name: of the row.
            force: start it even while another job of the row is not final.
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
            managed_by: only rows of this owner.
            group_name: only rows of this group.
            enabled: True for only enabled rows, False for only paused ones.
            with_problem: True for only rows that cannot be planned, False for only the others.
            limit: how many to return at most.
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
            limit: how many to return at most.
            connection: read in this transaction.

        Example:
            >>> [job.origin for job in beat.jobs("nightly")]
            ['manual']
        """
        others = dict.fromkeys(("pattern", "reason", "task", "queue", "since", "before", "before_at"))
        rows = self._queries.run("page_of_jobs", connection, name=name, state=state, limit=limit, **others)
        return [read_row(Job, row) for row in rows]

    def upcoming(self, name: str | None = None, limit: int = 100, *, connection: Any = None) -> Sequence[Upcoming]:
        """Read the next run of each row, the soonest first, or the coming runs of one row.

        Paused and finished rows, and rows that cannot be planned, have none. The runs of one row are computed with
        bounds, jitter and blackout windows; a later edit, an outage or a job that blocks the row changes them.

        Args:
            name: of one row; None for the next run of every row.
            limit: how many to return at most.
            connection: read in this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            UnknownTimezone: no beat has planned the row yet, it has no `timezone`, and there is no app.
            InvalidSchedule: the row cannot be planned.

        Example:
            >>> [run.next_run_at.minute for run in beat.upcoming("nightly", limit=3)]
            [0, 0, 0]
        """
        if name is None:
            return [read_row(Upcoming, row) for row in self._queries.run("upcoming", connection, limit=limit)]
        row = self._row("preview_row", name, connection)
        if row["enabled"] and row["problem"] is None:
            refuse_unknown_zone(row, self._app_timezone)
        return list(islice(coming_runs(row, self._rules), limit))

    def explain(self, name: str, *, connection: Any = None) -> str:
        """Return in one sentence why a row is, or is not, running now.

        The sentence comes from the tables alone, so it is right even if every beat is dead. Instants are in UTC. The
        views `status` and `overdue` have the same for all rows.

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

    def limit_group(self, name: str, max_active: int | None, *, connection: Any = None) -> TaskGroup:
        """Set how many jobs of a group may be under way at once, in the whole cluster.

        Other jobs wait and start in order of `scheduled_for`. A lower limit ends no job.

        Args:
            name: of the group.
            max_active: at least 1; None for no limit.
            connection: join this transaction.

        Raises:
            InvalidPeriodicTask: the name is not a text of 1 to 200 characters, or `max_active` is not at least 1.

        Example:
            >>> beat.limit_group("reports", max_active=2).max_active
            2
        """
        limit = None if max_active is None else read_count("max_active", max_active)
        (row,) = self._queries.run("limit_group", connection, name=read_group_name("name", name), max_active=limit)
        return TaskGroup(**row)

    def pause_group(self, name: str, reason: str | None = None, *, connection: Any = None) -> TaskGroup:
        """Pause all periodic tasks of a group. Messages already at the broker still run.

        Raises:
            UnknownGroup: no periodic task names the group, and it has no limit.

        Example:
            >>> beat.pause_group("reports", reason="stocktaking").paused
            True
        """
        (row,) = self._queries.run("pause_group", connection, name=name, reason=reason)
        return TaskGroup(**row)

    def resume_group(self, name: str, *, connection: Any = None) -> TaskGroup:
        """Resume a group. Missed runs are not caught up, and a row that was paused by itself stays paused.

        Raises:
            UnknownGroup: the group has never been paused or limited.

        Example:
            >>> beat.resume_group("reports").paused
            False
        """
        (row,) = self._queries.run("resume_group", connection, name=name)
        return TaskGroup(**row)

    def groups(self, *, connection: Any = None) -> Sequence[GroupStatus]:
        """List all groups that a periodic task names or that have a limit or a pause, in name order.

        Example:
            >>> [(group.name, group.tasks) for group in beat.groups()]
            [('reports', 0)]
        """
        return [GroupStatus(**row) for row in self._queries.run("groups", connection)]

    @overload
    def backfill(
        self,
        name: str,
        since: datetime,
        until: datetime,
        mode: str = ...,
        max_active: int = ...,
        dry_run: Literal[False] = ...,
        *,
        connection: Any = ...,
    ) -> Backfill: ...

    @overload
    def backfill(
        self,
        name: str,
        since: datetime,
        until: datetime,
        mode: str = ...,
        max_active: int = ...,
        *,
        dry_run: Literal[True],
        connection: Any = ...,
    ) -> BackfillPreview: ...

    def backfill(
        self,
        name: str,
        since: datetime,
        until: datetime,
        mode: str = "missing",
        max_active: int = 1,
        dry_run: bool = False,
        *,
        connection: Any = None,
    ) -> Backfill | BackfillPreview:
        """Submit the occurrences of a range, each as a job of its own with that instant as its `scheduled_for`.

        The beats submit them, the oldest first, also for a paused or finished row. Jitter and blackout windows do not
        apply, and the jobs do not count for `max_runs`. Unless the row's overlap is `allow`, no job of the backfill
        starts beside another job of the row. The occurrences are those of the present schedule; an interval without
        `anchor` or `start_at`, and a recurrence rule without DTSTART, have none from before they were set.

        Args:
            name: of the row.
            since: the first instant of the range, inclusive; aware.
            until: the last instant of the range, inclusive; aware, and not in the future.
            mode: `missing`: occurrences that never had a job, or were only skipped; `failed`: those that failed, were
                lost or expired, and have not succeeded since; `all`: every one, again. The history has the last
                `pgbeat_retention`: older occurrences count as missing.
            max_active: how many of its jobs may be under way at once, up to 1,000.
            dry_run: return what it would do, and write nothing.
            connection: join this transaction.

        Raises:
            InvalidPeriodicTask: the row has no schedule, or an argument is wrong; names it and its value.
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidSchedule: with `dry_run`: the row cannot be planned.

        Example:
            >>> from datetime import datetime, timezone
            >>> may = datetime(2026, 5, 1, tzinfo=timezone.utc), datetime(2026, 5, 31, tzinfo=timezone.utc)
            >>> beat.backfill("nightly", *may, dry_run=True).to_submit
            30
            >>> beat.backfill("nightly", *may, max_active=2).state
            'running'
        """
        since, until = read_range(since, until)
        check_terms(mode, max_active)
        if dry_run:
            row = self._row("preview_backfill", name, connection)
            return preview(self._queries, connection, row, self._rules, since, until, mode, max_active)
        (made,) = self._queries.run(
            "backfill", connection, name=name, since=since, until=until, mode=mode, max_active=max_active
        )
        return self._backfill(made["id"], connection)

    def backfills(
        self,
        name: str | None = None,
        state: str | None = None,
        limit: int = 100,
        *,
        id: UUID | str | None = None,
        connection: Any = None,
    ) -> Sequence[Backfill]:
        """Read backfills and their progress, the latest first. Ended ones are kept for `pgbeat_retention`.

        Args:
            name: only those of this row.
            state: only those that are `running`, `finished` or `cancelled`.
            limit: how many to return at most.
            id: only this one.
            connection: read in this transaction.

        Raises:
            UnknownBackfill: `id` is not a UUID.

        Example:
            >>> [(one.state, one.active) for one in beat.backfills("nightly", limit=1)]
            [('running', 0)]
        """
        wanted = None if id is None else str(read_backfill_id(id))
        rows = self._queries.run("backfills", connection, name=name, state=state, id=wanted, limit=limit)
        return [read_row(Backfill, row) for row in rows]

    def cancel_backfill(self, id: UUID | str, *, connection: Any = None) -> Backfill:
        """Cancel a backfill: it submits nothing more. Jobs that it has submitted go on.

        Raises:
            UnknownBackfill: there is none with this id.
            BackfillOver: it has already finished or been cancelled.

        Example:
            >>> beat.cancel_backfill(beat.backfills("nightly", "running")[0].id).state
            'cancelled'
        """
        (row,) = self._queries.run("cancel_backfill", connection, id=str(read_backfill_id(id)))
        return self._backfill(row["id"], connection)

    def migrate(self) -> int:
        """Create the schema, or bring it up to date, and return how many migrations were applied.

        The same as `celery-pgbeat migrate`. Any number of processes may do it at once.

        Raises:
            SchemaTooNew: a newer package has made the schema incompatible with this one.
            DatabaseBusy: another session holds the advisory lock of migrations; the message names it.
            DatabaseUnavailable: Postgres is away.

        Example:
            >>> beat.migrate()  # the schema is up to date
            0
        """
        with translating(self.database):
            return migrate(self.database.engine, self.database.schema)

    def close(self) -> None:
        """Close this process's connections; the next statement opens new ones."""
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
        return self._app_timezone or "UTC"

    @property
    def _app_timezone(self) -> str | None:
        return None if self._app is None else app_timezone(self._app)

    def _row(self, statement: str, name: str, connection: Any) -> Mapping[str, Any]:
        rows = self._queries.run(statement, connection, name=name)
        if not rows:
            meant = self._queries.similar_name(name, connection)
            raise UnknownPeriodicTask(f"No periodic task is named {name!r}{question(meant) if meant else '.'}")
        return rows[0]

    def _backfill(self, id: UUID | str, connection: Any) -> Backfill:
        (row,) = self.backfills(id=id, connection=connection)
        return row

    def _define(self, name: Any, task: Any, schedule: Any, columns: Mapping[str, Any], managed_by: str) -> Definition:
        return define(name, task, schedule, columns, self.settings, self._app_timezone, managed_by)
