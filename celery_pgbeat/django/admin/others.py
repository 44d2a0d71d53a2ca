"""Groups, and who changed what."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, ClassVar, cast

from django.contrib import admin

from celery_pgbeat.django.admin.acting import ActingAdmin
from celery_pgbeat.django.admin.keyset import LookOnly, Read, choice_filter, instance_of, line, text_filter
from celery_pgbeat.django.joined import JoinedBeat
from celery_pgbeat.django.models import Change, TaskGroup
from celery_pgbeat.operations import addresses_of
from celery_pgbeat.texts.safe_text import one_line
from celery_pgbeat.web.page import Query

MOST_GROUPS, CHANGES = 200, 50  # that one page shows
KINDS = ("periodic_task", "group", "window")


class TaskGroupAdmin(ActingAdmin, LookOnly):
    """Groups: those that a periodic task names, and those that have settings."""

    list_display = (line("name"), "state", "max_active", "tasks", "under_way", "waiting", line("pause_reason"))
    list_display_links = None
    search_fields = ("name",)
    search_help_text = "A part of the name."
    acts: ClassVar = addresses_of("groups")

    def read_page(self, beat: JoinedBeat, query: Query) -> Read:
        """Read the groups whose names have these words."""
        words, after = (query.text("q") or "").lower(), query.name("after")
        found = [row for row in beat.queries.groups() if words in row["name"].lower() and row["name"] > after]
        shown = found[:MOST_GROUPS]
        rows = [instance_of(TaskGroup, row, beat.database.alias) for row in shown]
        return Read(rows, {"after": shown[-1]["name"]} if len(found) > MOST_GROUPS else None)

    @admin.display(description="state")
    def state(self, group: Any) -> str:
        """Return whether it is paused or finished."""
        return str(group.row["state"])

    @admin.display(description="tasks")
    def tasks(self, group: Any) -> int:
        """Return how many periodic tasks it has."""
        return int(group.row["tasks"])

    @admin.display(description="under way")
    def under_way(self, group: Any) -> int:
        """Return how many of its jobs are under way."""
        return int(group.row["active"])

    @admin.display(description="waiting")
    def waiting(self, group: Any) -> int:
        """Return how many of its jobs wait for a place."""
        return int(group.row["waiting"])


class ChangeAdmin(LookOnly):
    """Who changed what, the latest first. Arguments of a sensitive row are masked."""

    list_display = ("at", line("who"), "action", "kind", line("name"), "what", line("reason"))
    list_display_links = None
    list_filter = (text_filter("name", "name"), choice_filter("kind", "kind", ((kind, kind) for kind in KINDS)))
    page_parameters = ("before",)
    actions = None

    def read_page(self, beat: JoinedBeat, query: Query) -> Read:
        """Read a page of changes."""
        found = beat.changes(
            query.name() or None,
            kind=cast("Any", query.choice("kind", KINDS)),
            limit=CHANGES + 1,
            before=query.number("before"),
        )
        shown = found[:CHANGES]
        rows = [instance_of(Change, asdict(change), beat.database.alias) for change in shown]
        return Read(rows, {"before": str(shown[-1].id)} if len(found) > CHANGES else None)

    @admin.display(description="what")
    def what(self, change: Any) -> str:
        """Return the columns, with what they were and are."""
        return one_line("; ".join(_difference(change, column) for column in change.columns or ()), 300)


def _difference(change: Any, column: str) -> str:
    before, after = (change.before or {}), (change.after or {})
    if column not in before and column not in after:
        return column
    shown = (json.dumps(values.get(column), default=str, ensure_ascii=False) for values in (before, after))
    return f"{column}: {' → '.join(shown)}"
