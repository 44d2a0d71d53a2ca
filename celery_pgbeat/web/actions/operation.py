"""Makes the actions of the table of operations: a form for the arguments, and a call of the method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from celery_pgbeat.api import RetriedJob
from celery_pgbeat.operations import OPERATIONS, Argument, Operation, Page
from celery_pgbeat.web.actions import groups, jobs, tasks
from celery_pgbeat.web.actions.action import About, Action, Call, Done, Field, ReadAbout
from celery_pgbeat.web.actions.typed import typed_instant, typed_json, typed_number
from celery_pgbeat.web.form import Wrong
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader

# What is known of a subject, and what some operations say instead.
ABOUT: Mapping[str, ReadAbout] = {
    "periodic task": tasks.about,
    "job": jobs.about,
    "group": groups.about,
    "resume": tasks.about_resume,
    "trigger": tasks.about_trigger,
    "pick_up": jobs.about_pick_up,
}
HEADINGS: Mapping[str, str] = {"periodic task": "{}", "job": "{}: job", "group": "{} group"}
# What is carried out in another way.
OWN: Mapping[str, Callable[[Call], Any]] = {"pick_up": jobs.pick_up}


def actions() -> Mapping[str, Action]:
    """Return the actions of the operations that have a page, by the words of their addresses."""
    return {one.address: action_of(one, one.page) for one in OPERATIONS if one.page is not None}


def action_of(operation: Operation, page: Page) -> Action:
    """Return the action of an operation: its page, a field for each argument, and what carries it out."""
    read = ABOUT.get(operation.name, ABOUT[operation.subject])
    asked = [argument for argument in operation.arguments if not argument.only_shell]
    parameter: Literal["name", "id"] = "id" if operation.subject == "job" else "name"

    def about(reader: Reader, subject: Query) -> About:
        known = read(reader, subject)
        return replace(known, facts=[*known.facts, operation.effect] if operation.effect else known.facts)

    def carry_out(call: Call) -> Any:
        given = {argument.name: _typed(argument, call) for argument in asked}
        return getattr(call.beat, operation.name)(call.subject.name(parameter), **given, connection=call.connection)

    do = OWN.get(operation.name, carry_out)
    return Action(
        HEADINGS[operation.subject].format(page.label),
        page.button,
        about,
        lambda call: _done(page, call.subject.name(parameter), do(call)),
        [_field(argument) for argument in asked],
        parameter,
        back=page.back,
    )


def _field(argument: Argument) -> Field:
    kind: Literal["text", "area", "choice", "box"] = "text"
    if argument.type is bool:
        kind = "box"
    elif argument.choices:
        kind = "choice"
    elif argument.is_long or argument.type in (list, dict):
        kind = "area"
    return Field(
        argument.name,
        argument.label,
        kind,
        argument.hint,
        argument.choices,
        next(iter(argument.choices), ""),
        is_in_zone=argument.type is datetime,
        only_nameless=argument.is_user,
    )


def _typed(argument: Argument, call: Call) -> Any:
    """Return what was typed for an argument.

    Raises:
        Wrong: it is no such value.
    """
    form, name = call.form, argument.name
    if argument.type is int:
        if not form.has(name):
            raise Wrong(name, "This was not sent: type a number, or leave it empty for no limit.")
        return typed_number(form, name)
    if argument.is_required:
        return form.required(name)
    if argument.type is bool:
        return form.switch(name)
    if argument.type is datetime:
        return typed_instant(form, name, call.reader.queries.clock())
    if argument.type in (list, dict):
        return typed_json(form, name, argument.type)
    return form.text(name)


def _done(page: Page, subject: str, answer: Any) -> Done:
    """Say where to go: to the job that was made, or back to the subject."""
    made = answer.job if isinstance(answer, RetriedJob) else answer
    if isinstance(made, UUID):
        return Done(page.done, "job", {"id": str(made)})
    parameters: Mapping[str, Mapping[str, str]] = {
        "task": {"name": subject},
        "job": {"id": subject},
        "groups": {"q": subject},
        "work": {},
    }
    return Done(page.done, page.back, parameters[page.back])
