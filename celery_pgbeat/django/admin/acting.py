"""Actions in the admin: the dashboard's own, asked for by a form of Django's, for one row or for those that are ticked.

Each row is a transaction of its own, by the name of Django's user. What one row refuses does not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied, SuspiciousOperation, ValidationError
from django.db import transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone

from celery_pgbeat.django.admin.keyset import KeysetAdmin
from celery_pgbeat.django.joined import JoinedBeat
from celery_pgbeat.django.rights import name_of
from celery_pgbeat.errors import PgBeatError
from celery_pgbeat.texts.safe_text import one_line
from celery_pgbeat.web.access import Person
from celery_pgbeat.web.actions import ACTIONS, DONE
from celery_pgbeat.web.actions.action import About, Action, Call, Field
from celery_pgbeat.web.failures import said_of_change
from celery_pgbeat.web.form import Form, Wrong
from celery_pgbeat.web.page import Query

MOST = 200  # rows that one action takes
BOX = "on"  # what a ticked box sends


def _form_field(field: Field) -> forms.Field:
    given: dict[str, Any] = {"label": field.label, "help_text": field.hint, "required": False}
    if field.is_in_zone:
        given["help_text"] = f"{field.hint}; in {timezone.get_current_timezone_name()}"
    if field.kind == "box":
        return forms.BooleanField(**given)
    if field.kind == "choice":
        return forms.ChoiceField(choices=list(field.choices.items()), initial=field.initial, **given)
    widgets = {"area": forms.Textarea(attrs={"rows": 3, "cols": 60}), "hidden": forms.HiddenInput()}
    widget = widgets.get(field.kind, forms.TextInput(attrs={"size": 60}))
    return forms.CharField(strip=False, initial=field.initial, widget=widget, **given)


def form_of(action: Action, data: Any = None, initial: Mapping[str, str] | None = None) -> forms.Form:
    """Return Django's form of an action of the dashboard."""
    form = forms.Form(data, initial=dict(initial or {}))
    form.fields.update({field.name: _form_field(field) for field in action.fields if not field.only_nameless})
    return form


def _typed(form: forms.Form) -> Form:
    """Return what was typed, as the dashboard's own actions read it."""
    sent = {name: value for name, value in form.cleaned_data.items() if name in form.data}
    given = {name: BOX if value is True else value for name, value in sent.items() if value is not False}
    return Form({**given, "zone": timezone.get_current_timezone_name()})


@dataclass(frozen=True, slots=True)
class Asked:
    """A form that is shown.

    Attributes:
        word: of the action.
        action: what is to be done.
        keys: of the rows.
        form: what is typed.
        about: what is known of the only row.
    """

    word: str
    action: Action
    keys: Sequence[str]
    form: forms.Form
    about: About = field(default_factory=About)

    def subject(self, key: str) -> Query:
        """Return what one row is called in the dashboard's addresses."""
        return Query({self.action.parameter: key})


class ActingAdmin(KeysetAdmin):
    """A list with actions of the dashboard. They need the right to change.

    Attributes:
        acts: their words, as in `ACTIONS`.
    """

    acts: ClassVar[Sequence[str]] = ()

    def get_urls(self) -> list[Any]:
        """Add the page of the forms. No key of a row begins with @ in an address."""
        view = self.admin_site.admin_view(self.act)
        own = [path("@act/<str:word>/", view, name=self._act_name)]
        return [*own, *super().get_urls()]

    @property
    def _act_name(self) -> str:
        return f"pgbeat_{self.opts.model_name}_act"

    def act_url(self, word: str) -> str:
        """Return the address of an action's form."""
        return str(reverse(f"{self.admin_site.name}:{self._act_name}", args=[word]))

    def get_actions(self, request: Any) -> dict[str, Any]:
        """Add the actions for the rows that are ticked, if this user may change them."""
        known: dict[str, Any] = super().get_actions(request)
        if self.has_change_permission(request) and "_popup" not in request.GET:
            for word in self.acts:
                known[word] = (_ticked(word), word, f"{ACTIONS[word].button}…")
        return known

    def act(self, request: Any, word: str) -> HttpResponse:
        """Show the form of an action, or carry it out."""
        if word not in self.acts:
            raise Http404
        if not self.has_change_permission(request):
            raise PermissionDenied
        action = ACTIONS[word]
        if request.method != "POST":
            return self.ask(request, word, request.GET.getlist("key"))
        keys = self._allowed(request, _checked(request.POST.getlist("key")))
        asked = Asked(word, action, keys, form_of(action, request.POST))
        return self._carried_out(request, asked) if asked.form.is_valid() else self._shown(request, asked)

    def ask(self, request: Any, word: str, keys: Sequence[str]) -> HttpResponse:
        """Show the form of an action for these rows."""
        action = ACTIONS[word]
        asked = Asked(word, action, self._allowed(request, _checked(keys)), form_of(action))
        if len(asked.keys) == 1:
            beat = JoinedBeat()
            try:
                with beat.database.reading():
                    about = action.about(beat, asked.subject(asked.keys[0]))
            except PgBeatError as error:
                about = About(refusal=said_of_change(error))
            asked = replace(asked, form=form_of(action, initial=about.values), about=about)
        return self._shown(request, asked)

    def may_act_on(self, request: Any, obj: Any) -> bool:
        """Ask the right to change for one row, which a project's subclass may refuse.

        What our own classes refuse is the form of a row, not its actions.
        """
        request.pgbeat_acts = True
        try:
            return bool(self.has_change_permission(request, obj))
        finally:
            del request.pgbeat_acts

    def _allowed(self, request: Any, keys: Sequence[str]) -> list[str]:
        """Return those of the rows that this user may change, and say which ones not.

        Raises:
            PermissionDenied: there is none.
        """
        rows = {key: self._row(request, key) for key in keys}
        allowed = [key for key, row in rows.items() if row is not None and self.may_act_on(request, row)]
        if not allowed:
            raise PermissionDenied
        for key in keys:
            if key not in allowed:
                self._say(request, f"{key!r}: You may not change it.", messages.ERROR)
        return allowed

    def _row(self, request: Any, key: str) -> Any:
        """Return a row; None if it is not in the queryset that a project's subclass gives this user.

        For one that does not exist, such as a group without settings, it is an instance with that key.
        """
        found = self.get_object(request, key)
        if found is not None:
            return found
        try:
            is_hidden = self.model.objects.filter(pk=key).exists()
        except ValidationError:  # no id of a job
            is_hidden = False
        return None if is_hidden else self.model(pk=key)

    def _refused(self, request: Any, asked: Asked, at: str, sentence: str) -> HttpResponse:
        asked.form.add_error(at if at in asked.form.fields else None, sentence)
        return self._shown(request, asked)

    def _carried_out(self, request: Any, asked: Asked) -> HttpResponse:
        person = name_of(request.user)
        beat, reader, typed = JoinedBeat().as_person(person), JoinedBeat(), _typed(asked.form)
        left = list(asked.keys)
        while left:
            key = left[0]
            try:
                with transaction.atomic(using=beat.database.alias):
                    beat.bound_waits()
                    connection = cast("Any", beat.database.connection)  # the API takes Django's too
                    done = asked.action.do(Call(beat, connection, asked.subject(key), typed, Person(person), reader))
            except Wrong as wrong:
                return self._refused(request, replace(asked, keys=left), wrong.field, wrong.sentence)
            except PgBeatError as error:
                self._say(request, f"{key!r}: {said_of_change(error)}", messages.ERROR)
            else:
                self._say(request, f"{key!r}: {DONE[done.word]}", messages.SUCCESS)
                self.log_change(request, self.model(pk=key), done.word.replace("-", " "))
            left.pop(0)
        return HttpResponseRedirect(self._list_url())

    def _list_url(self) -> str:
        """Return the address of the list. No parameter says where to go."""
        return str(reverse(f"{self.admin_site.name}:pgbeat_{self.opts.model_name}_changelist"))

    def _say(self, request: Any, sentence: str, level: int) -> None:
        self.message_user(request, one_line(sentence), level)

    def _shown(self, request: Any, asked: Asked) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": asked.action.title if len(asked.keys) > 1 else f"{asked.action.title} {one_line(asked.keys[0])}",
            "opts": self.opts,
            "asked": asked,
            "shown_keys": [one_line(key) for key in asked.keys],
            "facts": [one_line(fact) for fact in asked.about.facts],
            "refusal": one_line(asked.about.refusal or ""),
            "act_url": self.act_url(asked.word),
            "list_url": self._list_url(),
        }
        status = 422 if asked.form.errors else 200
        return TemplateResponse(request, "admin/pgbeat/act.html", context, status=status)


def _checked(keys: Sequence[str]) -> list[str]:
    if not 0 < len(keys) <= MOST:
        raise SuspiciousOperation(f"An action takes 1 to {MOST} rows, not {len(keys)}")
    return list(dict.fromkeys(keys))


def _ticked(word: str) -> Callable[[Any, Any, Any], HttpResponse | None]:
    """Return what Django calls for the rows that are ticked. It takes these, and never all that match a filter."""

    def ask(model_admin: Any, request: Any, _queryset: Any) -> HttpResponse | None:
        keys = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if request.POST.get("select_across") == "1" or len(keys) > MOST:
            model_admin.message_user(request, "Choose the rows on the page: nothing was done.", messages.ERROR)
            return None
        answer: HttpResponse = model_admin.ask(request, word, keys)
        return answer

    return ask
