"""Change the definition of a periodic task that SQL or the API owns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule, NotPermitted
from celery_pgbeat.web.actions.action import About, Action, Call, Done, Field, Look
from celery_pgbeat.web.actions.definition_fields import FIELDS, NAMES, replaced, shown, typed_changes
from celery_pgbeat.web.actions.tasks import known_row
from celery_pgbeat.web.definition_form import (
    EDITABLE,
    NEVER_OF_SENSITIVE,
    REPLACING,
    field_of,
    refusal_of,
    replaced_unseen,
)
from celery_pgbeat.web.failures import said_of_change
from celery_pgbeat.web.form import Form, Wrong
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.pages.definition import runs_in_words
from celery_pgbeat.web.reading import Reader

SHOWN = 10  # occurrences
HIDDEN = tuple(name for name, column in EDITABLE.items() if column.hidden)  # not every user may read them
LOOKED_AT = tuple(field.name for field in FIELDS if field.is_looked_at)


def _about(reader: Reader, subject: Query) -> About:
    row = known_row(reader, subject)
    if refusal := refusal_of(row["managed_by"]):
        return About(refusal=refusal)
    words = runs_in_words(row, reader.zone)
    facts = [f"Now: {words}."] if words else []
    call = _call(reader, row)
    if row["sensitive"]:
        facts.append("Its arguments are sensitive: they are not shown. New ones can replace them.")
    elif not call:
        facts.append("The dashboard's database user may not read its arguments, so they cannot be changed here.")
    drawn = {*row, *call}
    if row["sensitive"]:
        drawn = drawn - NEVER_OF_SENSITIVE | {*REPLACING}
    return About(facts, {**shown({**row, **call}), "revision": str(row["revision"])}, NAMES - drawn)


def _call(reader: Reader, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read the arguments and options; nothing of a sensitive row, or if this user of the database may not."""
    if row["sensitive"]:
        return {}
    try:
        with reader.database.attempt():
            found = reader.queries.arguments_of(row["name"])
    except NotPermitted:
        return {}
    return {name: json.loads(found[name]) for name in HIDDEN}


def look_ahead(reader: Reader, subject: Query, form: Form) -> Look:
    """Compute when the task would run.

    Raises:
        Wrong: it could not run so.
    """
    row = known_row(reader, subject)
    now = reader.queries.clock()
    times = {name: value for name, value in typed_changes(form, row, now).items() if name in LOOKED_AT}
    with _at_its_field(form):
        changed = reader.runs_after_change(row["name"], times, SHOWN)
    after = {**row, **changed.columns}
    words = runs_in_words(after, reader.zone)
    return Look("schedule", {"has_times": bool(after["schedule"]), "words": words, "runs": changed.runs, "now": now})


def _edit(call: Call) -> Done:
    name, form = call.subject.name(), call.form
    row = call.beat.get(name, connection=call.connection)
    if refusal := refusal_of(row.managed_by):
        raise Wrong("", refusal)
    stored = {column: getattr(row, column) for column in EDITABLE}
    without = NEVER_OF_SENSITIVE if row.sensitive else ()
    changes = typed_changes(form, stored, call.reader.queries.clock(), without)
    changes |= replaced(form) if row.sensitive else {}
    if form.text("revision") != str(row.revision):
        raise Wrong("", replaced_unseen(changes, row), renewed=("revision",))
    if not changes:
        return Done("unchanged", "task", {"name": name})
    with _at_its_field(form):
        new = call.beat.update(name, connection=call.connection, **changes)
    if new.revision > row.revision + 1:  # another transaction committed between the two statements
        sentence = "Another person has just changed this task. Your change was not saved: compare, and save again."
        raise Wrong("", sentence, renewed=("revision",))
    return Done("edited", "task", {"name": name})


@contextmanager
def _at_its_field(form: Form) -> Iterator[None]:
    """Say what is wrong with a definition at the field that it is about."""
    try:
        yield
    except (InvalidSchedule, InvalidPeriodicTask) as error:
        sentence = said_of_change(error)
        sent = [name for name in NAMES if form.has(name)]
        raise Wrong(field_of(error, sentence, sent, form.raw("blackout")) or "", sentence) from None


EDIT = Action(
    "Edit",
    "Save",
    _about,
    _edit,
    (*FIELDS, Field("revision", "", "hidden")),
    look=look_ahead,
    looks="Check",
)
