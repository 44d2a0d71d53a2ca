"""`PgBeat`: the API, one object per app."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, overload
from uuid import UUID
from zoneinfo import ZoneInfo

from celery_pgbeat import name_patterns
from celery_pgbeat.api import many
from celery_pgbeat.api.ahead import coming_runs
from celery_pgbeat.api.backfills import check_terms, preview, range_in, read_backfill_id, read_ends, refuse_empty
from celery_pgbeat.api.batch import Batch
from celery_pgbeat.api.configure import configure
from celery_pgbeat.api.exchange import line_of
from celery_pgbeat.api.groups import GroupStatus, TaskGroup
from celery_pgbeat.api.jobs import read_job_id
from celery_pgbeat.api.nodes import Health, Node, read_health, read_node
from celery_pgbeat.api.rows import Backfill, BackfillPreview, Job, RetriedJob, Upcoming, read_row
from celery_pgbeat.api.zones import refuse_unknown_zone
from celery_pgbeat.choices import BackfillMode, BackfillState, JobState
from celery_pgbeat.columns import PeriodicTask
from celery_pgbeat.declare import Changes, Columns, Declaration, Definition, app_timezone, declarations_of, define
from celery_pgbeat.declare.columns import read_choice, read_count, read_end, read_group_name, read_instant
from celery_pgbeat.declare.definition import read_arguments
from celery_pgbeat.declare.lazy import storable_arguments
from celery_pgbeat.declare.signature import check_call
from celery_pgbeat.declare.update import changes_of
from celery_pgbeat.declare.when import has_hook
from celery_pgbeat.errors import (
    GroupInUse,
    InvalidPeriodicTask,
    PgBeatError,
    UnknownGroup,
    UnknownJob,
    UnknownPeriodicTask,
)
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.api_queries import ApiQueries, translating
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.postgres.migrate import migrate
from celery_pgbeat.safe_text import type_of
from celery_pgbeat.settings import Settings
from celery_pgbeat.suggestions import did_you_mean

if TYPE_CHECKING:
    from celery import Celery
    from typing_extensions import Unpack

Task = TypeVar("Task")

PAGE = 1_000  # rows of one statement, where all are to be read

# For checks of a declaration before the app's configuration may be read.
ANY_APP = Settings(min_interval=timedelta(microseconds=1))


class PgBeat:
    """Periodic tasks in Postgres, from Python.

    Args:
        app: the Celery app. It uses our scheduler then, and its workers guard and track jobs. None for no app: then
            `periodic_task` cannot be used, and the zone of a row without one is known only when a beat has written
            its app's there. A text in its place is the URL.
        url: `postgresql://user@host/database`; None for `pgbeat_url` of the app's configuration, else PGBEAT_URL.
        schema: the database schema; None for `pgbeat_schema`, else `pgbeat`.

    Raises:
        InvalidSetting: the URL is not a Postgres URL.
        MissingDriver: its driver is not installed.
        TypeError: `app` is neither a Celery app nor a text.

    Example:
        >>> from celery import Celery
        >>> from celery_pgbeat import PgBeat, cron
        >>> app = Celery("shop", broker="redis://localhost")
        >>> beat = PgBeat(app, url="postgresql://localhost/shop")
        >>> @beat.periodic_task(cron("0 3 * * *", timezone="Europe/Berlin"), max_run_time="30m")
        ... @app.task
        ... def nightly_report(): ...
    """

    def __init__(self, app: Celery | str | None = None, url: str | None = None, schema: str | None = None) -> None:
        if isinstance(app, str):
            if url is not None:
                raise TypeError("PgBeat was given two URLs, as its first argument and as url")
            app, url = None, app
        elif app is not None and not hasattr(app, "conf"):
            raise TypeError(f"app is {type_of(app)}, neither a Celery app nor the URL of a database")
        self._app = app
        self._given = {"pgbeat_url": url, "pgbeat_schema": schema}
        self._settings: Settings | None = None
        self._databases: dict[
            int, Database
        ] = {}  # by process: a child must not use its parent's connections after a fork
        if app is not None:
            configure(app, url, schema)
        elif url is not None:
            normalise_url(url)

    def __repr__(self) -> str:
        settings = self._known_settings()
        url = self._given["pgbeat_url"] if settings is None else settings.url
        schema = self._given["pgbeat_schema"] if settings is None else settings.schema
        app = [] if self._app is None else [repr(self._app.main)]
        return f"PgBeat({', '.join([*app, f'url={url and masked(normalise_url(url))!r}', f'schema={schema!r}'])})"

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
            schedule: `cron(...)`, `every(...)`, text, a timedelta, seconds, Celery's own schedule objects, or an object
                with a method `to_pgbeat()` that returns one of these.
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
        if callable(schedule) and not issubclass(type(schedule), type) and not has_hook(schedule):
            raise InvalidPeriodicTask(
                "periodic_task was given the task in place of a schedule: write @beat.periodic_task(every(minutes=5)) "
                "above it, with the schedule in parentheses"
            )
        if self._app is None:
            raise InvalidPeriodicTask("PgBeat was made without an app: a declaration in code needs PgBeat(app)")
        args, kwargs = storable_arguments(columns.get("args") or (), columns.get("kwargs") or {})
        checked = {**columns, "args": args, "kwargs": kwargs}
        define(name or "unnamed", "unnamed", schedule, checked, ANY_APP, "UTC")  # so that the traceback shows the line
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

        With an app that knows the task, the arguments are checked against its signature, as Celery does when it sends.
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
            connection: join this transaction; a SQLAlchemy connection or session, or one of psycopg's. On asyncpg it is
                the synchronous session inside `await session.run_sync(...)`.
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

    def unschedule_many(
        self, names: Iterable[str], *, missing_ok: bool = False, connection: Any = None
    ) -> Sequence[str]:
        """Remove many rows at once: all of them or, if one is unknown, none. Return the names of those that existed.

        Args:
            names: of the rows.
            missing_ok: leave out the names that do not exist, instead of an error.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.unschedule_many(["nightly", "unknown"], missing_ok=True)
            ['nightly']
        """
        return [row["name"] for row in many.run_for(self._queries, "unschedule_many", names, missing_ok, connection)]

    def pause(
        self, name: str, reason: str | None = None, until: datetime | timedelta | None = None, *, connection: Any = None
    ) -> PeriodicTask:
        """Pause a row until a time, or until it is resumed.

        Args:
            name: of the row.
            reason: why; free text, shown by `explain` and in lists.
            until: when it resumes by itself; a naive datetime is read in the app's zone, a timedelta counts from now.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidPeriodicTask: `until` is in the past, or neither a datetime nor a timedelta.

        Example:
            >>> beat.pause("nightly", reason="stocktaking").enabled
            False
        """
        end = read_end("until", until, self._timezone)
        (row,) = self._queries.run("pause", connection, name=name, reason=reason, **end)
        return read_row(PeriodicTask, row)

    def pause_many(
        self,
        names: Iterable[str],
        reason: str | None = None,
        until: datetime | None = None,
        *,
        missing_ok: bool = False,
        connection: Any = None,
    ) -> Sequence[str]:
        """Pause many rows at once: all of them or, if one is unknown, none. Return the names of those that existed.

        Args:
            names: of the rows.
            reason: why; free text, shown by `explain` and in lists.
            until: when they resume by themselves; a naive datetime is read in the app's zone.
            missing_ok: leave out the names that do not exist, instead of an error.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidPeriodicTask: `until` is in the past, or not a datetime.

        Example:
            >>> beat.pause_many(["nightly"], reason="stocktaking")
            ['nightly']
        """
        return many.pause(self._queries, names, reason, self._aware("until", until), missing_ok, connection)

    def resume(self, name: str, *, connection: Any = None) -> PeriodicTask:
        """Resume a paused row. Its next run is the next one after now; runs missed while paused are not caught up.

        What else keeps it from running stays, and the returned row shows it: `group_paused`, `problem`.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.resume("nightly").enabled
            True
        """
        (row,) = self._queries.run("resume", connection, name=name)
        return read_row(PeriodicTask, row)

    def resume_many(self, names: Iterable[str], *, missing_ok: bool = False, connection: Any = None) -> Sequence[str]:
        """Resume many rows at once: all of them or, if one is unknown, none. Return the names of those that existed.

        Args:
            names: of the rows.
            missing_ok: leave out the names that do not exist, instead of an error.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.resume_many(["nightly"])
            ['nightly']
        """
        return [row["name"] for row in many.run_for(self._queries, "resume_many", names, missing_ok, connection)]

    def trigger(
        self,
        name: str,
        force: bool = False,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        *,
        connection: Any = None,
    ) -> UUID:
        """Start a job of a row now, even of a paused one; return the id of the job, which is the Celery task id.

        A beat sends it as soon as the transaction has committed. The next run does not change.

        Args:
            name: of the row.
            force: start it even while another job of the row is not final.
            args: positional arguments of this job alone; None for those of the row.
            kwargs: keyword arguments of this job alone; None for those of the row.
            connection: join this transaction.

        Raises:
            JobInTheWay: a job of the row is not final, and neither `force` nor `overlap = 'allow'` permits two.
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidPeriodicTask: an argument is not JSON, or both are too large together.

        Example:
            >>> job = beat.trigger("nightly", force=True)
            >>> job = beat.trigger("nightly", force=True, kwargs={"day": "2026-12-24"})
        """
        texts: tuple[str | None, str | None] = (None, None)
        if args is not None or kwargs is not None:
            sensitive = self.get(name, connection=connection).sensitive
            positional, keywords = read_arguments(args or (), kwargs or {}, sensitive)
            texts = (None if args is None else positional, None if kwargs is None else keywords)
        (row,) = self._queries.run("trigger", connection, name=name, force=force, args=texts[0], kwargs=texts[1])
        return UUID(str(row["job"]))

    def trigger_many(
        self, names: Iterable[str], force: bool = False, *, missing_ok: bool = False, connection: Any = None
    ) -> Mapping[str, UUID | None]:
        """Start a job of each of many rows now. Return the id of each job by the name of its row.

        A row with a job that is not final is left out: its id is None. Otherwise all jobs are started or none.

        Args:
            names: of the rows.
            force: start them even while another job of the row is not final.
            missing_ok: leave out the names that do not exist, instead of an error.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.trigger_many(["nightly"])  # a job of it is not final
            {'nightly': None}
        """
        return many.trigger(self._queries, names, force, missing_ok, connection)

    def retry_job(self, id: UUID | str, force: bool = False, *, connection: Any = None) -> RetriedJob:
        """Submit a job that has ended without success again, as a new manual job of its row.

        The new job has the arguments of that job where the history has them: of a manual job, and of a lost one that
        never started. Otherwise it has those that the row has now; `arguments_of` says which. Everything else is as
        for `trigger`.

        Args:
            id: of the job.
            force: start it even while another job of the row is not final.
            connection: join this transaction.

        Raises:
            UnknownJob: there is no such job.
            JobNotRetriable: it is not final, has succeeded, or called another task than the row calls now.
            JobInTheWay: a job of the row is not final, and neither `force` nor `overlap = 'allow'` permits two.
            UnknownPeriodicTask: the row was removed.

        Example:
            >>> [beat.retry_job(job.id).job for job in beat.jobs("nightly", "failed", limit=1)]  # none has failed
            []
        """
        (row,) = self._queries.run("retry_job", connection, id=str(read_job_id(id)), force=force)
        return RetriedJob(UUID(str(row["job"])), row["periodic_task"], row["arguments_of"])

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
        like: str | None = None,
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
            like: only names like this: `*` stands for any text, `?` for one character; without them a pattern of SQL's
                LIKE.
            task: only rows of this task.
            managed_by: only rows of this owner.
            group_name: only rows of this group.
            enabled: True for only enabled rows, False for only paused ones.
            with_problem: True for only rows that cannot be planned, False for only the others.
            limit: how many to return at most.
            after: only names later than this one: the last name of the page before.
            connection: read in this transaction.

        Example:
            >>> [row.name for row in beat.list(like="night*", managed_by="api")]
            ['nightly']
        """
        rows = self._queries.run(
            "page_of_tasks",
            connection,
            pattern=None if like is None else name_patterns.like(like),
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
        self, name: str | None = None, state: JobState | None = None, limit: int = 100, *, connection: Any = None
    ) -> Sequence[Job]:
        """Read jobs, the latest first.

        Args:
            name: only jobs of this row.
            state: only jobs in this state.
            limit: how many to return at most.
            connection: read in this transaction.

        Raises:
            InvalidPeriodicTask: there is no such state; suggests a near one.

        Example:
            >>> [job.origin for job in beat.jobs("nightly")]
            ['manual']
        """
        if state is not None:
            read_choice("state", state, get_args(JobState))
        others = dict.fromkeys(("pattern", "reason", "task", "queue", "since", "until", "before", "before_at"))
        states = None if state is None else [state]
        rows = self._queries.run("page_of_jobs", connection, name=name, states=states, limit=limit, **others)
        return [read_row(Job, row) for row in rows]

    def job(self, id: UUID | str, *, connection: Any = None) -> Job:
        """Read one job.

        Raises:
            UnknownJob: there is no such job. Final ones are kept for `pgbeat_retention`.

        Example:
            >>> beat.job(beat.jobs("nightly", limit=1)[0].id).periodic_task
            'nightly'
        """
        wanted = read_job_id(id)
        rows = self._queries.run("job", connection, id=str(wanted))
        if not rows:
            raise UnknownJob(f"There is no job {wanted}: jobs are kept for pgbeat_retention")
        return read_row(Job, rows[0])

    def upcoming(
        self, name: str | None = None, limit: int = 100, *, after: datetime | None = None, connection: Any = None
    ) -> Sequence[Upcoming]:
        """Read the next run of each row, the soonest first, or the coming runs of one row.

        Paused and finished rows, and rows that cannot be planned, have none. The runs of one row are computed with
        bounds, jitter and blackout windows; a later edit, an outage or a job that blocks the row changes them.

        Args:
            name: of one row; None for the next run of every row.
            limit: how many to return at most.
            after: only runs later than this; a naive datetime is read in the app's zone.
            connection: read in this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            UnknownTimezone: no beat has planned the row yet, it has no `timezone`, and there is no app.
            InvalidSchedule: the row cannot be planned.

        Example:
            >>> [run.next_run_at.minute for run in beat.upcoming("nightly", limit=3)]
            [0, 0, 0]
        """
        after = self._aware("after", after)
        if name is None:
            rows = self._queries.run("upcoming", connection, limit=limit, after=after)
            return [read_row(Upcoming, row) for row in rows]
        row = self._row("preview_row", name, connection)
        if row["enabled"] and row["problem"] is None:
            refuse_unknown_zone(row, self._app_timezone)
        return list(islice(coming_runs(row, self._rules, after), limit))

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
        """Resume a group. Missed runs are not caught up, and a row that was paused by name stays paused.

        Raises:
            UnknownGroup: the group has never been paused or limited.

        Example:
            >>> beat.resume_group("reports").paused
            False
        """
        (row,) = self._queries.run("resume_group", connection, name=name)
        return TaskGroup(**row)

    def remove_group(self, name: str, *, connection: Any = None) -> TaskGroup:
        """Remove a group that no periodic task names, with its limit and its pause; return what it was.

        Raises:
            UnknownGroup: there is no such group.
            GroupInUse: periodic tasks name it.

        Example:
            >>> beat.limit_group("raports", max_active=2).name
            'raports'
            >>> beat.remove_group("raports").max_active
            2
        """
        rows = self._queries.run("remove_group", connection, name=name)
        if not rows:
            tasks = {group.name: group.tasks for group in self.groups(connection=connection)}
            if name not in tasks:
                raise UnknownGroup(f"No group is named {name!r}{did_you_mean(name, tasks) or '.'}")
            raise GroupInUse(
                f"{tasks[name]} periodic tasks are in the group {name!r}: give them another group_name first, or "
                "remove its limit (None) and resume it"
            )
        return TaskGroup(**rows[0])

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
        since: date,
        until: date,
        mode: BackfillMode = ...,
        max_active: int = ...,
        dry_run: Literal[False] = ...,
        *,
        connection: Any = ...,
    ) -> Backfill: ...

    @overload
    def backfill(
        self,
        name: str,
        since: date,
        until: date,
        mode: BackfillMode = ...,
        max_active: int = ...,
        *,
        dry_run: Literal[True],
        connection: Any = ...,
    ) -> BackfillPreview: ...

    def backfill(
        self,
        name: str,
        since: date,
        until: date,
        mode: BackfillMode = "missing",
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
            since: where the range begins: an instant, inclusive, or a date, which means that day in the row's zone.
            until: where it ends: an instant, inclusive, or a date, whose whole day is included; of today the part that
                has passed. It may not be in the future. Naive datetimes are read in the row's zone.
            mode: `missing`: occurrences that never had a job, or were only skipped; `failed`: those that failed, were
                lost or expired, and have not succeeded since; `all`: every one, again. The history has the last
                `pgbeat_retention`: older occurrences count as missing.
            max_active: how many of its jobs may be under way at once, up to 1,000.
            dry_run: return what it would do, and write nothing.
            connection: join this transaction.

        Raises:
            InvalidPeriodicTask: the row has no schedule, an argument is wrong, or an interval has no occurrence yet at
                `until`; names the value.
            UnknownPeriodicTask: there is no such row; suggests a near name.
            UnknownTimezone: the row's zone is needed, no beat has filled it in yet, and there is no app.
            InvalidSchedule: with `dry_run`: the row cannot be planned.

        Example:
            >>> from datetime import date
            >>> may = date(2026, 5, 1), date(2026, 5, 31)
            >>> beat.backfill("nightly", *may, dry_run=True).to_submit
            31
            >>> beat.backfill("nightly", *may, max_active=2).state
            'running'
        """
        read_ends(since, until)
        check_terms(mode, max_active)
        row = self._row("preview_backfill", name, connection)
        begin, end = range_in(row, since, until, self._app_timezone)
        refuse_empty(row, begin, end, self._app_timezone)
        if dry_run:
            refuse_unknown_zone(row, self._app_timezone)
            return preview(self._queries, connection, row, self._rules, begin, end, mode, max_active)
        (made,) = self._queries.run(
            "backfill", connection, name=name, since=begin, until=end, mode=mode, max_active=max_active
        )
        return self._backfill(made["id"], connection)

    def backfills(
        self,
        name: str | None = None,
        state: BackfillState | None = None,
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
            InvalidPeriodicTask: there is no such state.

        Example:
            >>> [(one.state, one.active) for one in beat.backfills("nightly", limit=1)]
            [('running', 0)]
        """
        wanted = None if id is None else str(read_backfill_id(id))
        if state is not None:
            read_choice("state", state, get_args(BackfillState))
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

    def nodes(self, *, connection: Any = None) -> Sequence[Node]:
        """List the beats and workers that have sent a heartbeat within the last day, the beats first.

        Example:
            >>> [node.role for node in beat.nodes() if node.alive]
            []
        """
        dead_after = self.settings.dead_after.total_seconds()
        return [read_node(row) for row in self._queries.run("nodes", connection, dead_after=dead_after)]

    def health(
        self, max_lag: timedelta | None = None, hostname: str | None = None, *, connection: Any = None
    ) -> Health:
        """Check that a beat is alive and that no row waits too long.

        A row waits while it is due and no beat has marked it. `celery-pgbeat health` also checks the schema's version
        and the broker.

        Args:
            max_lag: how long a row may wait; None for what counts as on time, 2 × (lease + poll).
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
        (row,) = self._queries.run(
            "health",
            connection,
            dead_after=self.settings.dead_after.total_seconds(),
            lease=self.settings.lease.total_seconds(),
            hostname=hostname,
        )
        return read_health(row, self.settings.on_time if max_lag is None else max_lag)

    def export(
        self, *, managed_by: str | None = None, like: str | None = None, connection: Any = None
    ) -> Iterator[str]:
        """Iterate over the definitions in name order, each as one line of JSON, which `celery-pgbeat import` reads.

        Without a connection each page of 1,000 rows is as it was when it was read.

        Args:
            managed_by: only rows of this owner.
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
        after = ""
        while rows := self._queries.run("page_of_tasks", connection, **filters, limit=PAGE, after=after):
            yield from (line_of(row) for row in rows)
            after = rows[-1]["name"]

    def close(self) -> None:
        """Close this process's connections; the next statement opens new ones."""
        if (database := self._databases.get(os.getpid())) is not None:
            database.close()

    def _known_settings(self) -> Settings | None:
        """Return the settings if they are right and reading them loads no configuration; otherwise None."""
        if self._settings is None and self._app is not None and not self._app.configured:
            return None
        try:
            return self.settings
        except PgBeatError:
            return None

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

    def _aware(self, argument: str, instant: datetime | None) -> datetime | None:
        """Return an instant as an aware datetime; a naive one is read in the app's zone."""
        if instant is not None and read_instant(argument, instant).tzinfo is None:
            return instant.replace(tzinfo=ZoneInfo(self._timezone))
        return instant

    def _row(self, statement: str, name: str, connection: Any) -> Mapping[str, Any]:
        rows = self._queries.run(statement, connection, name=name)
        if not rows:
            raise UnknownPeriodicTask(self._queries.unknown(name, connection))
        return rows[0]

    def _backfill(self, id: UUID | str, connection: Any) -> Backfill:
        (row,) = self.backfills(id=id, connection=connection)
        return row

    def _define(self, name: Any, task: Any, schedule: Any, columns: Mapping[str, Any], managed_by: str) -> Definition:
        definition = define(name, task, schedule, columns, self.settings, self._app_timezone, managed_by)
        check_call(definition, self._app)
        return definition
