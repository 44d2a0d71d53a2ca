"""Put the definition of a periodic task back to what it was before one of its changes."""

from __future__ import annotations

from typing import Any

from celery_pgbeat.api.exchange import differences, spoken_value
from celery_pgbeat.declare.definition import record_of
from celery_pgbeat.errors import UnknownPeriodicTask
from celery_pgbeat.web.actions.action import About, Action, Call, Done, Field
from celery_pgbeat.web.definition_form import refusal_of
from celery_pgbeat.web.form import Wrong
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader

LONGEST = 200  # characters of a value that is shown
STAYS_SENSITIVE = "It stays sensitive: only code or SQL can undo that."


def _about(reader: Reader, subject: Query) -> About:
    name, change = subject.name(), subject.number("change")
    row = reader.queries.definitions_of([name]).get(name)
    if row is None:
        raise UnknownPeriodicTask(reader.queries.unknown(name))
    if refusal := refusal_of(row["managed_by"]):
        return About(refusal=refusal)
    if change is None:
        return About(refusal="The address names no change: open the page of the task, and choose one there.")
    old, new = record_of(row), reader.definition_before(name, change=change)
    changed = differences(old, new)
    if new["name"] != name:
        changed = {"name": (name, new["name"]), **changed}
    sensitive = [STAYS_SENSITIVE] if row["sensitive"] else []
    if not changed:
        return About(refusal=" ".join(["Its definition already has these values.", *sensitive]))
    facts = [
        f"{column}: {_spoken(column, was)} becomes {_spoken(column, becomes)}"
        for column, (was, becomes) in changed.items()
    ]
    facts += [*sensitive, "The pause, the next run and the jobs stay."]
    return About(facts, {"revision": str(row["revision"])})


def _spoken(column: str, value: Any) -> str:
    spoken = spoken_value(column, value)
    text = "nothing" if spoken is None else str(spoken)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _revert(call: Call) -> Done:
    name = call.subject.name()
    row = call.beat.get(name, connection=call.connection)
    if refusal := refusal_of(row.managed_by):
        raise Wrong("", refusal)
    if call.form.text("revision") != str(row.revision):
        raise _changed_meanwhile()
    reverted = call.beat.revert(name, change=call.subject.number("change"), connection=call.connection)
    if reverted.revision > row.revision + 1:  # another transaction committed between the two statements
        raise _changed_meanwhile()
    return Done("reverted", "task", {"name": reverted.name})


def _changed_meanwhile() -> Wrong:
    sentence = "Another person has changed this task: check again what this would change."
    return Wrong("", sentence, renewed=("revision",))


REVERT = Action(
    "Put back",
    "Put it back",
    _about,
    _revert,
    (Field("revision", "", "hidden"),),
    also=("change",),
)
