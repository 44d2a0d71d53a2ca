"""Periodic tasks: search, filters, and pages that follow the names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from celery_pgbeat.web.page import Page, Query
from celery_pgbeat.web.pages.definition import runs_in_words
from celery_pgbeat.web.reading import Reader

ROWS = 50
# How many rows one page looks at: of names alone many more than of whole rows.
MOST_NAMES, MOST_ROWS = 1_000_000, 50_000
SORTS = ("name", "next")
STATES: Mapping[str, str] = {
    "on": "planned",
    "active": "with a job",
    "overdue": "overdue",
    "paused": "paused",
    "problem": "with a problem",
    "idle": "without a next run",
}


def read_tasks(reader: Reader, query: Query) -> Page:
    """Read a page of periodic tasks."""
    by_next_run, state = query.choice("sort", SORTS) == "next", query.choice("state", STATES)
    if by_next_run and state is not None:
        query.notes.append("Ordered by next run, the list ignores the state: order by name to filter by it.")
    filters: dict[str, Any] = {
        "words": query.text("q"),
        "state": None if by_next_run else state,
        "group_name": query.text("group"),
        "task": query.text("task"),
        "managed_by": query.text("manager"),
    }
    chosen = {name: value for name, value in filters.items() if value is not None}
    look = _look_ahead if by_next_run else _look_through
    looked = look(reader, filters, chosen, query)
    shown = looked.rows[:ROWS]
    statuses = reader.queries.statuses_of([row["name"] for row in shown])
    return Page(
        "tasks",
        "Tasks",
        {
            "now": reader.queries.clock(),
            "rows": [{**row, **statuses[row["name"]], "runs": runs_in_words(row, reader.zone)} for row in shown],
            "filters": filters,
            "chosen": chosen,
            "states": STATES,
            "by_next_run": by_next_run,
            "after": query.name("after"),
            "more": shown[-1] if len(looked.rows) > ROWS else None,
            "looked_until": looked.until,
            "most": looked.most,
        },
    )


class Looked(NamedTuple):
    """What was found: one row more than a page has, if there are more; the most rows looked at; where that ended."""

    rows: Sequence[Mapping[str, Any]]
    most: int
    until: Mapping[str, Any] | None


def _look_through(reader: Reader, filters: Mapping[str, Any], chosen: Mapping[str, Any], query: Query) -> Looked:
    most = MOST_NAMES if set(chosen) <= {"words", "group_name"} else MOST_ROWS
    after = query.name("after")
    rows = reader.queries.look_through(limit=ROWS + 1, most=most, after=after, **filters)
    if len(rows) > ROWS or not chosen:
        return Looked(rows, most, None)
    until = reader.queries.looked_until(most=most, after=after, group_name=filters["group_name"])
    return Looked(rows, most, until)


def _look_ahead(reader: Reader, filters: Mapping[str, Any], chosen: Mapping[str, Any], query: Query) -> Looked:
    after_at = query.instant("after_at")
    place: dict[str, Any] = {"after": query.name("after") if after_at else "", "after_at": after_at}
    given = {name: value for name, value in filters.items() if name != "state"}
    rows = reader.queries.look_ahead(limit=ROWS + 1, most=MOST_ROWS, **place, **given)
    if len(rows) > ROWS or not chosen:
        return Looked(rows, MOST_ROWS, None)
    return Looked(rows, MOST_ROWS, reader.queries.looked_ahead_until(most=MOST_ROWS, **place))
