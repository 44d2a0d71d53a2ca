"""What an action is: a form with facts above it, and a call of the Python API."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from sqlalchemy.engine import Connection

from celery_pgbeat.api import PgBeat
from celery_pgbeat.web.access import Person
from celery_pgbeat.web.form import Form
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form.

    Attributes:
        name: of the field.
        label: what it is called.
        kind: how it is drawn.
        hint: what may be typed.
        choices: of a `choice`, with what they mean.
        initial: what it has at first, unless `About.values` says otherwise.
        is_in_zone: whether an instant is typed, in the zone of the browser.
        only_nameless: whether it is asked only of a person whose name is not known.
        section: the heading under which it is folded away; empty for a field that is always in view.
        is_looked_at: whether it is part of what is checked while the user types.
    """

    name: str
    label: str
    kind: Literal["text", "area", "choice", "box", "hidden"] = "text"
    hint: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    initial: str = ""
    is_in_zone: bool = False
    only_nameless: bool = False
    section: str = ""
    is_looked_at: bool = False


@dataclass(frozen=True, slots=True)
class About:
    """What is known of the subject of a form.

    Attributes:
        facts: sentences above the form.
        values: what fields have at first.
        without: the names of fields that the form does not have.
        refusal: why this cannot be done, in place of the form; None if it can be.
    """

    facts: Sequence[str] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    without: Collection[str] = ()
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What an action would do; nothing was written.

    Attributes:
        template: the part that shows it.
        values: what that shows.
        seen: what the form carries from then on, so that nothing else is sent than what was looked at.
    """

    template: str
    values: Mapping[str, Any]
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """An action that was carried out.

    Attributes:
        word: what has been done, one of `DONE`.
        page: the page to go to.
        parameters: of its address.
    """

    word: str
    page: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """An action that a user wants.

    Attributes:
        beat: the Python API.
        connection: the transaction to join.
        subject: what it is about: the parameters of the address.
        form: what was typed.
        person: the user.
        reader: what reads, on connections of its own.
    """

    beat: PgBeat
    connection: Connection
    subject: Query
    form: Form
    person: Person
    reader: Reader


ReadAbout: TypeAlias = Callable[[Reader, Query], About]
LookAhead: TypeAlias = Callable[[Reader, Query, Form], Look]


@dataclass(frozen=True, slots=True)
class Action:
    """One action.

    Attributes:
        title: what the page is headed with, before the name of its subject.
        button: what the button says that carries it out.
        about: reads what is known of the subject.
        do: carries it out.
        fields: of the form.
        parameter: that of the address which names the subject.
        also: further parameters of the address, which the form keeps.
        back: the page of the subject.
        look: shows what it would do; None if there is nothing to show.
        looks: what the button says that shows it.
        must_look: whether that has to be shown first.
    """

    title: str
    button: str
    about: ReadAbout
    do: Callable[[Call], Done]
    fields: Sequence[Field] = ()
    parameter: Literal["name", "id"] = "name"
    also: Sequence[str] = ()
    back: Literal["task", "job", "groups", "work"] = "task"
    look: LookAhead | None = None
    looks: str = ""
    must_look: bool = False
