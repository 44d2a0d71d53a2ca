"""Answers the requests for actions: shows the form, checks who sends it and from where, and carries it out.

GET shows, and changes nothing. POST comes from a page of this dashboard, with the token of its form, or it is refused.
What Postgres or the API refuses stands beside the form, which keeps what was typed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import anyio
import anyio.to_thread
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from celery_pgbeat.errors import DatabaseUnavailable, NotPermitted, PgBeatError
from celery_pgbeat.web.access import Access, Person
from celery_pgbeat.web.actions.action import About, Action, Call, Field, Look
from celery_pgbeat.web.failures import NOT_THERE, page_of_error, page_of_fault, said_of_change
from celery_pgbeat.web.forgery import Tokens, comes_from_here
from celery_pgbeat.web.form import Form, FormRefused, Wrong, read_form
from celery_pgbeat.web.page import Address, Page, Query
from celery_pgbeat.web.reading import Reader
from celery_pgbeat.web.writing import Writer

logger = logging.getLogger(__name__)
MAY_NOT = "Ask the person who runs this dashboard: the setting is may_change."
FOREIGN = (
    "The form comes from another site, or the proxy in front of this dashboard changes the header Host: make it pass "
    "that header on unchanged, with its port."
)
STALE = "The form has expired, or belongs to another page. Nothing was changed: send it again."


@dataclass(frozen=True, slots=True)
class Shown:
    """A form as it is drawn: what was typed, what is wrong with it, and what it would do."""

    form: Form | None = None
    errors: Mapping[str, str] | None = None
    look: Look | None = None
    renewed: tuple[str, ...] = ()
    status: int = 200


class Acting:
    """The actions of one dashboard."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        access: Access,
        tokens: Tokens,
        limiter: anyio.CapacityLimiter,
        drawn: Callable[[Page, Request, Person | None], Response],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._access = access
        self._tokens = tokens
        self._limiter = limiter
        self._drawn = drawn

    async def answer(self, action: Action, request: Request) -> Response:
        """Return the answer to a request for an action."""
        person = await self._access.person(request)
        if person is None:
            return self._refused(request, None, "You may look, not change", MAY_NOT, 403)
        try:
            if request.method != "POST":
                return await self._in_thread(self._form, action, request, person, Shown())
            return await self._posted(action, request, person)
        except PgBeatError as error:
            return self._drawn(page_of_error(error), request, person)
        except Exception:  # noqa: BLE001 - the top of a request: what is wrong is in the log
            return self._drawn(page_of_fault(), request, person)

    async def _posted(self, action: Action, request: Request, person: Person) -> Response:
        here = comes_from_here(request)
        if here is False:
            return self._refused(request, person, "This form comes from another site", FOREIGN, 403)
        try:
            form = await read_form(request)
        except FormRefused as refusal:
            return self._refused(request, person, "This form cannot be read", refusal.sentence, refusal.status)
        if not self._tokens.is_right(request, person, form.raw("token")):
            if here is None:  # another site may have sent it, so nothing of it is shown again
                return self._refused(request, person, "This form comes from another site", STALE, 403)
            return await self._in_thread(self._form, action, request, person, Shown(form, {"": STALE}, status=403))
        return await self._in_thread(self._carried_out, action, request, person, form)

    async def _in_thread(self, call: Callable[..., Response], *arguments: Any) -> Response:
        return await anyio.to_thread.run_sync(call, *arguments, limiter=self._limiter)

    def _carried_out(self, action: Action, request: Request, person: Person, form: Form) -> Response:
        subject = Query(request.query_params)
        try:
            if action.look is not None and form.raw("step") == "look":
                with self._reader.database.reading():
                    look = action.look(self._reader, subject, form)
                return self._form(action, request, person, Shown(form, look=look))
            with self._writer.changing(person) as connection:
                done = action.do(Call(self._writer.beat, connection, subject, form, person, self._reader))
        except Wrong as wrong:
            shown = Shown(form, {wrong.field: wrong.sentence}, renewed=wrong.renewed, status=422)
        except NOT_THERE:
            raise
        except DatabaseUnavailable as error:
            shown = Shown(form, {"": said_of_change(error)}, status=503)
        except PgBeatError as error:
            status = 403 if isinstance(error, NotPermitted) else 422
            shown = Shown(form, {"": said_of_change(error)}, status=status)
        else:
            what, name = action.title, subject.name(action.parameter)
            logger.info("%s %r, by %s", what, name, person.name or "an unnamed user", extra={"action": done.word})
            # The page and its parameters are ours: no address that a user has typed is gone to.
            address = _address(request)(done.page, **done.parameters, done=done.word)
            return RedirectResponse(address, 303)
        return self._form(action, request, person, shown)

    def _form(self, action: Action, request: Request, person: Person, shown: Shown) -> Response:
        """Draw the form; if the database is away, without what is known of its subject."""
        subject = Query(request.query_params)
        try:
            with self._reader.database.reading():
                about = action.about(self._reader, subject)
        except DatabaseUnavailable:
            if shown.form is None:
                raise
            about = About()
        token, session = self._tokens.issue(request, person)
        name = subject.name(action.parameter)
        url = _address(request)
        fields = [_drawn_field(field, about, shown) for field in _asked(action, person, about)]
        kept = {parameter: subject.text(parameter) for parameter in action.also}
        page = Page(
            "action",
            f"{action.title} {name if action.parameter == 'name' else name[:8]}",
            {
                "action": action,
                "about": about,
                "look": shown.look,
                "sections": [Section(title, list(of)) for title, of in groupby(fields, lambda one: one.field.section)],
                "has_instants": any(one.field.is_in_zone for one in fields),
                "error": (shown.errors or {}).get(""),
                "token": token,
                "here_address": url(request.url.path.rpartition("/")[2], **{action.parameter: name}, **kept),
                "back": _back(url, action, name),
                "may_send": not action.must_look or shown.look is not None,
            },
            shown.status,
        )
        response = self._drawn(page, request, person)
        if session is not None:
            self._tokens.keep(response, session, request)
        return response

    def _refused(self, request: Request, person: Person | None, title: str, sentence: str, status: int) -> Response:
        return self._drawn(Page("error", title, {"error": None, "sentence": sentence}, status), request, person)


@dataclass(frozen=True, slots=True)
class DrawnField:
    """A field with what it has, and what is wrong with that."""

    field: Field
    value: Markup
    error: str | None


@dataclass(frozen=True, slots=True)
class Section:
    """Fields that stand together; without a title they are always in view."""

    title: str
    fields: Sequence[DrawnField]

    @property
    def is_open(self) -> bool:
        """Whether a field needs to be seen: it is wrong, or not what it is at first in a new row."""
        return any(one.error or one.value != one.field.initial for one in self.fields)


def _asked(action: Action, person: Person, about: About) -> Sequence[Field]:
    asked = [field for field in action.fields if person.name is None or not field.only_nameless]
    return [field for field in asked if field.name not in about.without]


def _drawn_field(field: Field, about: About, shown: Shown) -> DrawnField:
    if field.name == "seen" and shown.look is not None:
        value = shown.look.seen
    elif shown.form is not None and field.name not in shown.renewed:
        value = shown.form.raw(field.name)
    else:
        value = about.values.get(field.name, field.initial)
    error = (shown.errors or {}).get(field.name)
    return DrawnField(field, Markup(escape(value)), error)  # noqa: S704 - escaped; line breaks that were typed stay


def _back(url: Address, action: Action, name: str) -> str:
    if action.back in ("groups", "work"):
        return url(action.back)
    return url("task", name=name) if action.parameter == "name" else url("job", id=name)


def _address(request: Request) -> Address:
    return Address(request.scope.get("root_path", ""))
