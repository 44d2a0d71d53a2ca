"""The periodic tasks: list, form, actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.http import urlencode

from celery_pgbeat.django.admin.acting import ActingAdmin
from celery_pgbeat.django.admin.definition_form import DefinitionForm
from celery_pgbeat.django.admin.keyset import Read, choice_filter, instance_of, is_acting, line, text_filter
from celery_pgbeat.django.joined import JoinedBeat
from celery_pgbeat.django.models import PeriodicTask
from celery_pgbeat.django.rights import name_of
from celery_pgbeat.django.schedule_field import described
from celery_pgbeat.errors import InvalidSchedule, MissingExtra, PgBeatError
from celery_pgbeat.texts.safe_text import one_line
from celery_pgbeat.web.actions import ACTIONS
from celery_pgbeat.web.definition_form import FIRST, NEVER_OF_SENSITIVE, REPLACING, SECTIONS, refusal_of
from celery_pgbeat.web.failures import said_of_change
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.pages.tasks import STATES, read_tasks


class PeriodicTaskAdmin(ActingAdmin):
    """Periodic tasks. What code declares is not edited here."""

    form = DefinitionForm
    list_display = (line("name"), "runs", "state", "next_run_at", "last_job", line("group_name"), line("managed_by"))
    list_filter = (
        choice_filter("state", "state", STATES.items()),
        text_filter("group", "group"),
        text_filter("manager", "manager"),
        text_filter("task", "Celery task"),
    )
    search_fields = ("name",)
    search_help_text = "A part of the name."
    page_parameters = ("after",)
    change_form_template = "admin/pgbeat/periodictask/change_form.html"
    acts: ClassVar = ("pause", "resume", "trigger", "take-over")

    def read_page(self, beat: JoinedBeat, query: Query) -> Read:
        """Read the rows that the dashboard would show."""
        page = read_tasks(beat, query).values
        more, looked_until = page["more"], page["looked_until"]
        last = more or looked_until
        note = ""
        if looked_until:
            note = f"Looked among {page['most']:,} tasks, up to {one_line(looked_until['name'])}."
        rows = [instance_of(PeriodicTask, row, beat.database.alias) for row in page["rows"]]
        return Read(rows, {"after": last["name"]} if last else None, note)

    @admin.display(description="runs")
    def runs(self, task: Any) -> str:
        """Return the schedule in words."""
        if task.row["runs"]:
            return one_line(task.row["runs"])
        if task.schedule:
            return one_line(task.schedule)
        return "after other tasks" if task.after else "on demand"

    @admin.display(description="state")
    def state(self, task: Any) -> str:
        """Return what it does or waits for, with its problem or the reason of its pause."""
        why = task.problem or (None if task.enabled else task.pause_reason)
        return one_line(": ".join(part for part in (task.row["state"], why) if part))

    @admin.display(description="last job")
    def last_job(self, task: Any) -> str | None:
        """Return how the last job ended."""
        failures = task.row["failures"]
        return f"{task.row['last_state']} ({failures} in a row)" if failures > 1 else task.row["last_state"]

    # Rights: a row that code declares is looked at; its actions need only the right to change.

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        """Refuse the form of a row that code declares; its actions are allowed."""
        may = bool(super().has_change_permission(request, obj))
        return may and (obj is None or is_acting(request) or _refusal(obj) is None)

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        """Refuse to delete a row that code declares: a beat would make it again."""
        return bool(super().has_delete_permission(request, obj)) and (obj is None or _refusal(obj) is None)

    # The form

    def get_fieldsets(self, request: Any, obj: Any = None) -> Any:
        """Return the columns by what they decide; of a sensitive row new arguments in place of those it has."""
        sections = [
            (title, {"fields": tuple(_without_hidden(names, obj)), "classes": ("collapse",)})
            for title, names in SECTIONS
        ]
        return ((None, {"fields": (*FIRST, *(() if obj is None else ("revision",)))}), *sections)

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Any:
        """Return the key of a row that exists: with another one Django would insert a second row."""
        return () if obj is None else ("name",)

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **given: Any) -> Any:
        """Return the form, on Django's connection, for the person who asks."""
        fields = given["fields"] if "fields" in given else flatten_fieldsets(self.get_fieldsets(request, obj))
        form = super().get_form(request, obj, change, **given)
        if fields is not None:  # Django keeps each field that the class declares, drawn or not, and would accept it
            drawn = {*fields, "revision"}
            form.base_fields = {name: field for name, field in form.base_fields.items() if name in drawn}
        form.beat = JoinedBeat().as_person(name_of(request.user))
        form.check_url = reverse(f"{self.admin_site.name}:pgbeat_periodictask_check")
        return form

    def save_model(self, request: Any, obj: Any, form: Any, change: bool) -> None:
        """Write what was changed, through the Python API."""
        form.write(form.beat)

    def delete_model(self, request: Any, obj: Any) -> None:
        """Remove it, through the Python API."""
        JoinedBeat().as_person(name_of(request.user)).unschedule(obj.pk)

    def delete_queryset(self, request: Any, queryset: Any) -> None:
        """Remove those that were ticked: all or, if another task runs after one of them, none."""
        names = list(queryset.values_list("pk", flat=True))
        JoinedBeat().as_person(name_of(request.user)).unschedule_many(names, missing_ok=True)

    def delete_view(self, request: Any, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Remove one, or say why not."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except PgBeatError as error:
            self.message_user(request, one_line(said_of_change(error)), messages.ERROR)
            return HttpResponseRedirect(reverse(f"{self.admin_site.name}:pgbeat_periodictask_change", args=[object_id]))

    # The pages

    def get_urls(self) -> list[Any]:
        """Add the check of a schedule while it is typed."""
        view = self.admin_site.admin_view(self.check_schedule)
        return [path("@check/", view, name="pgbeat_periodictask_check"), *super().get_urls()]

    def check_schedule(self, request: Any) -> HttpResponse:
        """Answer what a schedule means, as a part of the page."""
        if not (self.has_add_permission(request) or self.has_change_permission(request)):
            raise PermissionDenied
        query = Query(request.GET)
        zone = query.text("timezone") or JoinedBeat().zone
        try:
            return HttpResponse(described(query.long_text("schedule"), zone, query.name()))
        except (InvalidSchedule, MissingExtra) as error:
            return HttpResponse(one_line(str(error)), content_type="text/plain; charset=utf-8")

    def render_change_form(self, request: Any, context: Any, *args: Any, **given: Any) -> HttpResponse:
        """Add why it runs or not, and what may be done."""
        if context.get("original") is not None:
            context.update(self._around(request, context["original"]))
        return super().render_change_form(request, context, *args, **given)

    def _around(self, request: Any, task: Any) -> Mapping[str, Any]:
        beat = JoinedBeat()
        with beat.database.reading():
            explanation = beat.explain(task.pk)
        words = _offered(task) if self.may_act_on(request, task) else ()
        key = urlencode({"key": task.pk})
        return {
            "refusal": _refusal(task),
            "explanation": one_line(explanation),
            "act_links": [(ACTIONS[word].title, f"{self.act_url(word)}?{key}") for word in words],
        }


def _without_hidden(names: Iterable[str], task: Any) -> Iterator[str]:
    """Yield the names of the fields that the form of a row has; without a row, that of a new one."""
    if task is None or not task.sensitive:
        yield from names
        return
    instead = {column: field for field, column in REPLACING.items()}
    for name in names:
        if name in instead or name not in NEVER_OF_SENSITIVE:
            yield instead.get(name, name)


def _refusal(task: Any) -> str | None:
    return refusal_of(task.managed_by)


def _offered(task: Any) -> Sequence[str]:
    """Return the actions that the page of a task offers."""
    return (
        "resume" if not task.enabled else "pause",
        "trigger",
        *(["take-over"] if _refusal(task) else ()),
    )
