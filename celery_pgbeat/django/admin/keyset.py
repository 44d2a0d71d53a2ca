"""Lists that hold with a million rows: the dashboard's reads, and pages that follow a key instead of a number.

Nothing is counted. A page names the last row that it shows, and the next one begins behind it. What the filters and the
search mean is decided by the reads of the dashboard, which look at a bounded number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import DEFERRED
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from celery_pgbeat.django.joined import JoinedBeat
from celery_pgbeat.errors import PgBeatError
from celery_pgbeat.texts.safe_text import one_line
from celery_pgbeat.web.failures import NOT_THERE, said_of_change, said_to_viewers
from celery_pgbeat.web.page import Query


@dataclass(frozen=True, slots=True)
class Read:
    """One page of a list.

    Attributes:
        rows: instances of the model.
        more: the parameters of the next page; None if this is the last one.
        note: a note about the result.
    """

    rows: Sequence[Any]
    more: Mapping[str, str] | None = None
    note: str = ""


class Uncounted(Paginator):
    """The pages of a list that is not counted: there is one, which the list itself fills."""

    @property
    def count(self) -> int:
        """The number of rows that are shown."""
        return len(self.object_list)


class KeysetChangeList(ChangeList):
    """Django's list with the rows of `KeysetAdmin.read_page`."""

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        """Return the parameters of filters, without those that name a page."""
        given = super().get_filters_params(params)
        return {name: value for name, value in given.items() if name not in self.model_admin.page_parameters}

    def get_results(self, request: Any) -> None:
        """Read the page."""
        beat = JoinedBeat()
        with beat.database.reading():
            read = self.model_admin.read_page(beat, Query(request.GET))
        self.read = read
        self.result_list = list(read.rows)
        self.result_count = len(self.result_list)
        self.full_result_count = self.result_count  # with another one Django offers to show all
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = False
        self.multi_page = False
        self.paginator = Uncounted(self.result_list, max(self.result_count, 1))

    @property
    def first_query(self) -> str:
        """The address of the first page."""
        return str(self.get_query_string(remove=self.model_admin.page_parameters))

    @property
    def more_query(self) -> str | None:
        """The address of the next page; None if there is none."""
        return None if self.read.more is None else str(self.get_query_string(dict(self.read.more)))

    @property
    def is_first(self) -> bool:
        """Whether this is the first page."""
        return not any(name in self.params for name in self.model_admin.page_parameters)


class ReadFilter(admin.SimpleListFilter):
    """A filter whose value the read of the page takes from the address, so it leaves Django's queryset alone."""

    def queryset(self, request: Any, queryset: Any) -> Any:
        """Return the queryset as it is."""
        return queryset


def choice_filter(name: str, heading: str, choices: Iterable[tuple[str, str]]) -> type[ReadFilter]:
    """Return a filter by one of these values."""
    known = list(choices)

    class Choice(ReadFilter):
        title = heading
        parameter_name = name

        def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
            """Return the values."""
            return known

    return Choice


def text_filter(name: str, heading: str) -> type[ReadFilter]:
    """Return a filter by a text that is typed: the texts there are would have to be looked up among all rows."""

    class Typed(ReadFilter):
        title = heading
        parameter_name = name
        template = "admin/pgbeat/text_filter.html"

        def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
            """Return nothing: there is a field in place of a list."""
            return []

        def has_output(self) -> bool:
            """Show it always."""
            return True

        def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
            """Return the field, and the other parameters that its form sends along."""
            dropped = {name, *changelist.model_admin.page_parameters}
            others = [(key, value) for key, value in changelist.params.items() if key not in dropped]
            yield {"name": name, "value": self.value() or "", "others": others, "remove": self._without(changelist)}

        def _without(self, changelist: Any) -> str:
            return str(changelist.get_query_string(remove=[name, *changelist.model_admin.page_parameters]))

    return Typed


def instance_of(model: Any, row: Mapping[str, Any], alias: str) -> Any:
    """Return an instance with the columns that a row has; the others are deferred."""
    values = [row.get(column.attname, DEFERRED) for column in model._meta.concrete_fields]
    made = model(*values)
    made._state.adding, made._state.db = False, alias
    made.row = row
    return made


class KeysetAdmin(admin.ModelAdmin):
    """What the admins of our models share: nothing is counted, nothing is edited in the list, errors are sentences.

    Attributes:
        page_parameters: those of the address that name a page.
    """

    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    sortable_by: Any = ()
    actions_selection_counter = False
    change_list_template = "admin/pgbeat/change_list.html"
    page_parameters: tuple[str, ...] = ("after",)
    show_facets = getattr(getattr(admin, "ShowFacets", None), "NEVER", None)

    def read_page(self, beat: JoinedBeat, query: Query) -> Read:
        """Read the page that an address names."""
        raise NotImplementedError

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        """Refuse lookups of columns by the address: they would tell what the columns of a hidden argument contain."""
        return lookup in {one.parameter_name for one in self.list_filter}

    def get_changelist(self, request: Any, **_: Any) -> type[ChangeList]:
        """Return the list that does not count."""
        return KeysetChangeList

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Leave Django's queryset alone: the read of the page searches."""
        return queryset, False

    def changelist_view(self, request: Any, extra_context: Any = None) -> HttpResponse:
        """Show the list, or say why it cannot be shown."""
        return self._told(request, lambda: super(KeysetAdmin, self).changelist_view(request, extra_context))

    def changeform_view(
        self, request: Any, object_id: Any = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show one row, or say why it cannot be shown or changed."""
        view = super().changeform_view
        return self._told(request, lambda: view(request, object_id, form_url, extra_context))

    def _told(self, request: Any, view: Callable[[], HttpResponse]) -> HttpResponse:
        try:
            return view()
        except PgBeatError as error:
            is_change = request.method == "POST" or isinstance(error, NOT_THERE)
            sentence = said_of_change(error) if is_change else said_to_viewers(error)
            self.message_user(request, one_line(sentence), messages.ERROR)
            return HttpResponseRedirect(reverse(f"{self.admin_site.name}:index"))


def is_acting(request: Any) -> bool:
    """Tell whether the right to change is asked for an action, and not for the form of a row."""
    return getattr(request, "pgbeat_acts", False)


def line(column: str) -> Any:
    """Return what a list shows of a text: one line, without characters that change how the rest is read."""

    @admin.display(description=column.replace("_", " "))
    def shown(row: Any) -> str | None:
        value = getattr(row, column)
        return None if value is None else one_line(str(value))

    return shown


class LookOnly(KeysetAdmin):
    """The rights to what is not added, deleted or edited in a form; actions need the right to change."""

    def has_add_permission(self, request: Any) -> bool:
        """Refuse it."""
        return False

    def get_object(self, request: Any, object_id: str, from_field: Any = None) -> Any:
        """Return a row to be shown: without characters that change how the rest is read."""
        found = super().get_object(request, object_id, from_field)
        for name, value in vars(found).items() if found is not None else ():
            if isinstance(value, str):
                setattr(found, name, one_line(value))
        return found

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        """Refuse it."""
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        """Allow the actions to a user who has the right; there is no form to save."""
        return (obj is None or is_acting(request)) and bool(super().has_change_permission(request))
