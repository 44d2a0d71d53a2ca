"""Periodic tasks and jobs by plain SQL, as an operator writes them in psql."""

from __future__ import annotations

import json
from typing import Any

from tests.harness.connections import fetch

JSON_COLUMNS = ("args", "kwargs", "options")


def sql(url: str, statement: str, **values: Any) -> list[dict[str, Any]]:
    """Run one statement in a transaction of its own and return its rows."""
    return fetch(url, statement, values)


def insert_statement(name: str, **columns: Any) -> tuple[str, dict[str, Any]]:
    """Return the statement that inserts a periodic task, by default of the task `app.probe`, and its parameters.

    Lists and dicts for a column of JSON are written as JSON. Each client of the tests runs it on its own connection.
    """
    row = {"name": name, "task": "app.probe", **columns}
    values = {
        column: json.dumps(value) if column in JSON_COLUMNS and isinstance(value, (list, dict)) else value
        for column, value in row.items()
    }
    places = ", ".join(f"%({column})s" for column in values)
    return f"insert into pgbeat.periodic_task ({', '.join(values)}) values ({places})", values


def insert(url: str, name: str, schedule: str | None = "every 1s", **columns: Any) -> None:
    """Insert a row that runs `app.probe` under its own name."""
    statement, values = insert_statement(name, **{"schedule": schedule, "args": [name], **columns})
    sql(url, statement, **values)


def insert_many(
    url: str, count: int, schedule: str = "every 1s", overlap: str = "allow", task: str = "app.probe"
) -> None:
    """Insert rows `row-0001` and so on."""
    sql(
        url,
        "insert into pgbeat.periodic_task (name, task, schedule, args, overlap) "
        "select 'row-' || to_char(n, 'FM0000'), %(task)s, %(schedule)s, "
        "jsonb_build_array('row-' || to_char(n, 'FM0000')), %(overlap)s from generate_series(1, %(count)s) n",
        count=count,
        schedule=schedule,
        overlap=overlap,
        task=task,
    )


def jobs(url: str, name: str | None = None) -> list[dict[str, Any]]:
    """Return all jobs, or those of one row, by their instants."""
    return sql(
        url,
        "select * from pgbeat.job where %(name)s::text is null or periodic_task = %(name)s "
        "order by scheduled_for, created_at",
        name=name,
    )


def row(url: str, name: str) -> dict[str, Any]:
    """Return one row."""
    (found,) = sql(url, "select * from pgbeat.periodic_task where name = %(name)s", name=name)
    return found
