"""Periodic tasks: declare, change and pause them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from celery_pgbeat.api import many
from celery_pgbeat.api.batch import Batch
from celery_pgbeat.api.methods.reading import ReadingMethods
from celery_pgbeat.api.rows import read_row
from celery_pgbeat.columns import PeriodicTask
from celery_pgbeat.declare import Changes, Columns, Declaration, declarations_of, define
from celery_pgbeat.declare.columns import read_end
from celery_pgbeat.declare.lazy import storable_arguments
from celery_pgbeat.declare.update import changes_of
from celery_pgbeat.declare.when import has_hook
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.schedules.wallclock.zones import zone_named
from celery_pgbeat.settings import Settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

Task = TypeVar("Task")


# For checks of a declaration before the app's configuration may be read.
ANY_APP = Settings(min_interval=timedelta(microseconds=1))


class PeriodicTaskMethods(ReadingMethods):
    """What `PgBeat` does with periodic tasks."""

    def periodic_task(
        self,
        schedule: Any = None,
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
                with a method `to_pgbeat()` that returns one of these. None, with `after`: it runs when the tasks named
                there have ended.
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
        if schedule is None and not columns.get("after"):
            raise InvalidPeriodicTask("periodic_task was given neither a schedule nor the tasks in `after`")
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
        take_over: bool = False,
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
            managed_by: who keeps the definition of the row. One that begins with `code:` is refused: only beats declare
                such rows, from the code of their app.
            take_over: take a row that code declares from the code, which no longer changes it; without this such a row
                is refused.
            connection: join this transaction; a SQLAlchemy connection or session, or one of psycopg's. On asyncpg it is
                the synchronous session inside `await session.run_sync(...)`.
            **columns: see `Columns`.

        Raises:
            InvalidPeriodicTask: a column is wrong (names it and its value), or code declares the row.
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
            taking_over=[definition.name] if take_over else [],
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
        self._queries.schedule(
            batch.records, batch.keeping_next_run, batch.running_first, batch.taking_over, connection
        )

    def unschedule(self, name: str, *, connection: Any = None) -> bool:
        """Remove a row; return whether it existed. Messages already at the broker still run.

        Raises:
            PeriodicTaskInUse: another periodic task runs after it.

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
            PeriodicTaskInUse: one that stays runs after one of these.
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
        until: datetime | timedelta | None = None,
        *,
        missing_ok: bool = False,
        connection: Any = None,
    ) -> Sequence[str]:
        """Pause many rows at once: all of them or, if one is unknown, none. Return the names of those that existed.

        Args:
            names: of the rows.
            reason: why; free text, shown by `explain` and in lists.
            until: when they resume by themselves, as for `pause`.
            missing_ok: leave out the names that do not exist, instead of an error.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidPeriodicTask: `until` is in the past, or neither a datetime nor a timedelta.

        Example:
            >>> beat.pause_many(["nightly"], reason="stocktaking")
            ['nightly']
        """
        return many.pause(self._queries, names, reason, until, self._timezone, missing_ok, connection)

    def resume(self, name: str, *, connection: Any = None) -> PeriodicTask:
        """Resume a paused row. Its next run is the next one after now; runs missed while paused are not caught up.

        Other reasons that keep it from running stay, and the returned row shows them: `group_paused`, `problem`.

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

    def replan(
        self, names: Iterable[str] | None = None, zone: str | None = None, *, connection: Any = None
    ) -> Sequence[str]:
        """Have beats plan next runs again, after a change of their time zone tables; return the names concerned.

        An instant that a beat has stored stays, though a country has changed its clocks. Restart all beats with the new
        tables first. A next run that reads as its schedule says stays as it is, and so does one that SQL has set.
        Nothing is lost or sent twice: an occurrence that is due already is sent as it was planned, or at its later time
        by the new tables.

        Args:
            names: of the rows; None for all.
            zone: only rows that name this time zone, as theirs, in their schedule or in a blackout window.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidSchedule: there is no such time zone.

        Example:
            >>> beat.replan(zone="America/Asuncion")
            []
        """
        wanted = None if names is None else many.wanted(self._queries, names, False, connection)
        known = None if zone is None else zone_named(zone).name
        return [row["name"] for row in self._queries.run("replan", connection, names=wanted, zone=known)]
