"""Take a periodic task from the code that declares it, so that people change it from then on."""

from __future__ import annotations

from typing import Any

from celery_pgbeat.declare.columns import GIVEN
from celery_pgbeat.web.actions.action import About, Action, Call, Done
from celery_pgbeat.web.actions.tasks import known_row
from celery_pgbeat.web.definition_form import is_of_code
from celery_pgbeat.web.form import Wrong
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader

MANAGER = "api"  # the new one


def _about(reader: Reader, subject: Query) -> About:
    row = known_row(reader, subject)
    name, manager = row["name"], row["managed_by"]
    if refusal := _refusal(manager):
        return About(refusal=refusal)
    schema = reader.settings.schema
    back = f"update {schema}.periodic_task set managed_by = {_quoted(manager)} where name = {_quoted(name)}"  # noqa: S608 - shown, not run
    return About(
        [
            f"{manager} declares it. From then on it belongs to {MANAGER}: it can be edited here, and the code no "
            "longer changes or removes it.",
            "Its definition, its pause, its next run and its jobs stay.",
            f"To give it back to the code, in SQL: {back}",
        ]
    )


def _refusal(managed_by: str) -> str | None:
    return None if is_of_code(managed_by) else f"No code declares it: {managed_by} manages it, so it can be edited."


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _take_over(call: Call) -> Done:
    name = call.subject.name()
    row = call.beat.get(name, connection=call.connection)
    if refusal := _refusal(row.managed_by):
        raise Wrong("", refusal)
    columns: dict[str, Any] = {column: getattr(row, column) for column in GIVEN}
    call.beat.schedule(
        name,
        row.task,
        row.schedule,
        managed_by=MANAGER,
        take_over=True,
        keep_next_run=True,
        connection=call.connection,
        **{column: value for column, value in columns.items() if value is not None},
    )
    return Done("taken-over", "task", {"name": name})


TAKE_OVER = Action("Take over", "Take it over", _about, _take_over)
