"""An author of periodic tasks: plain SQL, at once or in a transaction that stays open for a while."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg2

from celery_pgbeat.postgres.engine import normalise_url
from tests.harness.rows import insert_statement

# How people define rows, each so that an hour has few enough occurrences to be followed one by one.
DEFINITIONS: list[dict[str, Any]] = [
    {"schedule": "every 1m"},
    {"schedule": "every 1m", "catchup": "none", "on_lost": "rerun"},
    {"schedule": "*/5 * * * *", "overlap": "allow", "catchup": "earliest"},
    {"schedule": "every 5m", "overlap": "buffer_one", "on_lost": "rerun"},
    {"schedule": "every 5m", "overlap": "buffer_all", "jitter": "20 seconds"},
    {"schedule": "*/10 * * * *", "overlap": "skip", "catchup": "all", "catchup_limit": 4},
    {"schedule": "every 2m", "overlap": "cancel_other"},
    {"schedule": "every 2m", "overlap": "terminate_other", "on_lost": "rerun", "max_runs": 5},
    {"schedule": "every 1m", "blackout": ["5,25,45 * * * * PT8M"]},
    {"schedule": "every 1m", "overlap": "allow", "blackout": ["*/20 * * * * PT5M"], "blackout_action": "skip"},
    {"schedule": "every 1m", "group_name": "g"},
    {"schedule": "every 2m", "group_name": "g", "overlap": "buffer_all", "on_lost": "rerun"},
    {"schedule": "every 5m", "group_name": "g", "overlap": "allow"},
    {"schedule": "every 1m", "pause_after_failures": 1},
    {"schedule": "every 1m", "pause_after_failures": 2, "overlap": "buffer_all"},
    {"schedule": "every 1m", "on_error": "ask"},
    {"schedule": "every 2m", "on_error": "ask", "overlap": "buffer_one", "on_lost": "rerun", "group_name": "g"},
    {"schedule": "every 5m", "on_error": "ask", "overlap": "cancel_other", "pause_after_failures": 1},
    {"schedule": "every 1m", "group_name": "q"},
    {"schedule": "every 2m", "group_name": "q", "overlap": "buffer_all", "on_lost": "rerun"},
    {"schedule": "*/5 * * * *", "group_name": "q", "overlap": "allow", "jitter": "20 seconds"},
    {"schedule": "every 2m", "group_name": "q", "overlap": "cancel_other", "on_error": "ask"},
    {"schedule": "every 5m", "kind": "human", "task": None, "due_in": "10 minutes", "overlap": "buffer_one"},
    {"schedule": "every 2m", "kind": "human", "task": None, "group_name": "g", "target": ["ann"], "overlap": "allow"},
    {"schedule": "every 5m", "kind": "human", "task": None, "overlap": "cancel_other", "pause_after_failures": 1},
    {"schedule": "every 2m", "after": ["a"]},
    {"schedule": "every 5m", "after": ["a"], "after_condition": "finish", "overlap": "buffer_all", "group_name": "g"},
    {"schedule": "every 1m", "after": ["b"], "overlap": "cancel_other", "on_lost": "rerun"},
    {"schedule": None, "after": ["a"]},
    {"schedule": None, "after": ["a", "b"], "after_condition": "finish", "overlap": "allow"},
    {"schedule": None},
]
EDITS: list[tuple[str, Any]] = [
    ("args", "[1]"),
    ("args", "[2]"),
    ("queue", "other"),
    ("schedule", "every 3m"),
    ("schedule", "7-59/10 * * * *"),
    ("catchup", "latest"),
]


class Author:
    """A client with an autocommitting connection, and another one for a transaction that it leaves open."""

    def __init__(self, url: str) -> None:
        plain = normalise_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._connection = psycopg2.connect(plain)
        self._connection.autocommit = True
        self._other = psycopg2.connect(plain)
        self.holds: str | None = None  # the name of the row that the open transaction has written to

    def close(self) -> None:
        """Close the connections."""
        self._other.close()
        self._connection.close()

    def insert(self, name: str, definition: dict[str, Any]) -> None:
        """Insert a row; one that would come after itself, or after what is not there, comes after nothing."""
        try:
            statement, values = insert_statement(name, **definition)
            self._run(statement, **values)
        except psycopg2.errors.InvalidParameterValue:
            assert "after" in definition
            statement, values = insert_statement(name, **definition | {"after": None})
            self._run(statement, **values)

    def edit(self, name: str, column: str, value: Any) -> None:
        """Change one column."""
        try:
            self._run(
                f"update pgbeat.periodic_task set {column} = %(value)s where name = %(name)s", name=name, value=value
            )
        except psycopg2.errors.InvalidParameterValue:
            assert column == "queue", "only a task for people refuses this, as it has no message"

    def delete(self, name: str) -> None:
        """Remove a row, unless another comes after it."""
        with suppress(psycopg2.errors.ObjectInUse):
            self._run("select pgbeat.unschedule(%(name)s)", name=name)

    def take_apart(self) -> None:
        """Have no row come after another any more."""
        self._run("update pgbeat.periodic_task set after = null where after is not null")

    def pause(self, name: str, until: datetime | None) -> None:
        """Pause a row."""
        self._run("select pgbeat.pause(%(name)s, 'because', %(until)s)", name=name, until=until)

    def resume(self, name: str) -> None:
        """Resume a row."""
        self._run("select pgbeat.resume(%(name)s)", name=name)

    def pause_group(self, name: str, paused: bool) -> None:
        """Pause or resume all rows of a group."""
        self._run("update pgbeat.task_group set paused = %(paused)s where name = %(name)s", name=name, paused=paused)

    def finish_queue(self, name: str) -> None:
        """Have a group take no new jobs."""
        self._run("select pgbeat.finish_group(%(name)s)", name=name)

    def resume_queue(self, name: str, retry: bool) -> bool:
        """Resume a group, with its failed jobs or without; return False if there are none, or none can run again."""
        try:
            self._run("select pgbeat.resume_group(%(name)s, %(retry)s)", name=name, retry=retry)
        except (
            psycopg2.errors.ObjectNotInPrerequisiteState,
            psycopg2.errors.ObjectInUse,
            psycopg2.errors.NoDataFound,
        ):
            return False
        return True

    def trigger(self, name: str, force: bool) -> bool:
        """Trigger a run; return False if a job that is not final prevents it, or its group is finished."""
        try:
            self._run("select pgbeat.trigger(%(name)s, %(force)s)", name=name, force=force)
        except (psycopg2.errors.ObjectInUse, psycopg2.errors.ObjectNotInPrerequisiteState):
            return False
        return True

    def decide(self, job: UUID, run_again: bool) -> None:
        """Decide about a job that has failed: it runs again, or it is given up."""
        self._run(f"select pgbeat.{'retry_job' if run_again else 'fail_job'}(%(job)s)", job=str(job))

    def work(self, call: str, **values: Any) -> bool:
        """Do something with a task for people; return False if it is refused."""
        places = ", ".join(f"{name} => %({name})s" for name in values)
        try:
            self._run(f"select pgbeat.{call}({places})", **values)
        except (
            psycopg2.errors.ObjectInUse,
            psycopg2.errors.ObjectNotInPrerequisiteState,
            psycopg2.errors.InsufficientPrivilege,
        ):
            return False
        return True

    def open(self, name: str, column: str, value: Any) -> None:
        """Change one column in a transaction that stays open."""
        try:
            with self._other.cursor() as cursor:
                cursor.execute(f"update pgbeat.periodic_task set {column} = %s where name = %s", (value, name))
        except psycopg2.errors.InvalidParameterValue:
            assert column == "queue", "only a task for people refuses this, as it has no message"
            self._other.rollback()
            return
        self.holds = name

    def let_go(self, keep: bool) -> None:
        """Commit what is open, or roll it back."""
        if keep:
            self._other.commit()
        else:
            self._other.rollback()
        self.holds = None

    def _run(self, statement: str, **values: Any) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
