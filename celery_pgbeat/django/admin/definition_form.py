"""The form of a periodic task: a field for each column that a declaration gives, checked as the Python API checks it.

Only what was changed is written. Postgres has its own say before the form counts as valid: the change is tried in a
savepoint, which is rolled back. Until the request ends the row is locked, so it does not change in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, get_origin

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.db import transaction

from celery_pgbeat.columns import Column
from celery_pgbeat.django.joined import JoinedBeat
from celery_pgbeat.django.models import PeriodicTask
from celery_pgbeat.django.schedule_field import HINT, LONGEST, ScheduleInput
from celery_pgbeat.errors import InvalidPeriodicTask, PgBeatError
from celery_pgbeat.schedules.durations import spoken
from celery_pgbeat.web.definition_form import EDITABLE, FIRST, REPLACES, REPLACING, field_of, replaced_unseen
from celery_pgbeat.web.failures import said_of_change

TAKEN = "name is that of a periodic task that exists already"


class TriedOut(Exception):
    """Ends a savepoint in which a change was tried."""


class Lines(forms.CharField):
    """A list of texts, one on each line."""

    widget = forms.Textarea(attrs={"rows": 3, "cols": 60})

    def prepare_value(self, value: Any) -> Any:
        """Return what the field shows."""
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str] | None:
        """Return the lines that are not blank; None if there is none."""
        found = [line.strip() for line in super().clean(value).splitlines() if line.strip()]
        return found or None

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Tell whether the lines differ."""
        return bool(super().has_changed(self.prepare_value(initial), data.replace("\r\n", "\n") if data else data))


class Duration(forms.CharField):
    """A length of time as the Python API reads it, such as `30m`."""

    def prepare_value(self, value: Any) -> Any:
        """Return what the field shows."""
        return spoken(value) or "0s" if isinstance(value, timedelta) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Tell whether the text differs."""
        return bool(super().has_changed(self.prepare_value(initial), data))


class Json(forms.JSONField):
    """A JSON array or object; empty for the column's default."""

    def __init__(self, *, of: type, **given: Any) -> None:
        super().__init__(**given)
        self.of = of

    def clean(self, value: Any) -> Any:
        """Return the value.

        Raises:
            ValidationError: it is not JSON, or of another kind; its text is not quoted, because it may be secret.
        """
        try:
            found = super().clean(value)
        except forms.ValidationError as error:
            raise forms.ValidationError("This is not JSON.", code=error.code) from None
        if found is None:
            return self.of()
        if not isinstance(found, self.of):
            raise forms.ValidationError("This is not an array." if self.of is list else "This is not an object.")
        return found


class Replacing(Json):
    """A JSON array or object that replaces one that is not shown; empty for none."""

    def prepare_value(self, value: Any) -> Any:
        """Return what the field shows: nothing but what was typed."""
        return super().prepare_value(value) if value is not None else ""

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Tell whether something was typed."""
        return bool(data and data.strip())


def _line(**given: Any) -> forms.Field:
    return forms.CharField(empty_value=None, widget=forms.TextInput(attrs={"size": 60, "spellcheck": "false"}), **given)


def _area() -> forms.Widget:
    return forms.Textarea(attrs={"rows": 3, "cols": 60, "spellcheck": "false"})


def _json(kind: type, **given: Any) -> forms.Field:
    return Json(of=kind, initial=kind, widget=_area(), **given)


def _replacing(name: str) -> forms.Field:
    given = {"label": f"new {name}", "help_text": REPLACES.format(name), "required": False}
    return Replacing(of=get_origin(EDITABLE[name].type), widget=_area(), **given)


# By the type of a column; a text with choices and the schedule have fields of their own.
FIELDS: Mapping[Any, Callable[..., forms.Field]] = {
    str: _line,
    int: forms.IntegerField,
    bool: forms.BooleanField,
    datetime: partial(forms.SplitDateTimeField, widget=AdminSplitDateTime),
    timedelta: partial(Duration, empty_value=None),
    list[str]: Lines,
    list[Any]: partial(_json, list),
    dict[str, Any]: partial(_json, dict),
}


def _field(column: Column) -> forms.Field:
    given: dict[str, Any] = {"label": column.name, "help_text": column.says, "required": False}
    if column.name == "name":
        return _line(**{**given, "required": True, "strip": False})
    if column.name == "schedule":
        return _schedule_line(**{**given, "help_text": HINT})
    if column.choices:
        meant = [(value, f"{value}: {means}" if means else value) for value, means in column.choices.items()]
        return forms.ChoiceField(choices=meant, **{**given, "required": True, "initial": column.default})
    return FIELDS[column.type](**given)


def _schedule_line(**given: Any) -> forms.Field:
    """Return the field of the schedule. The API checks it together with the zone."""
    return forms.CharField(empty_value=None, widget=ScheduleInput, max_length=LONGEST, **given)


class _DefinitionForm(forms.ModelForm):
    """What the fields of the columns are added to. The admin gives it `beat` and `check_url`."""

    revision = forms.CharField(required=False, widget=forms.HiddenInput)
    beat: JoinedBeat
    check_url = ""
    data: Any

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._is_new = self.instance._state.adding
        if "schedule" in self.fields:
            widget = self.fields["schedule"].widget
            widget.check_url = self.check_url
            widget.zone = getattr(self.instance, "timezone", None) or self.beat.zone

    def changes(self) -> dict[str, Any]:
        """Return the columns that were changed, with their new values. A field that was not sent changes nothing."""
        columns = {name: REPLACING.get(name, name) for name in self.changed_data if self._was_sent(name)}
        return {column: self.cleaned_data[name] for name, column in columns.items() if column in EDITABLE}

    def _was_sent(self, name: str) -> bool:
        widget = self.fields[name].widget
        return not widget.value_omitted_from_data(self.data, self.files, self.add_prefix(name))

    def write(self, beat: JoinedBeat) -> None:
        """Write what was changed, or the new row; the form must be valid.

        Raises:
            PgBeatError: Postgres refuses it.
        """
        changes = self.changes()
        if not self._is_new:
            if changes:
                beat.update(self.instance.pk, **changes)
            return
        columns = {name: value for name, value in changes.items() if name not in FIRST[:3] and value is not None}
        row = beat.schedule(changes["name"], changes.get("task"), changes.get("schedule"), **columns)
        if row.revision != 1:  # another person has made it a moment ago
            raise InvalidPeriodicTask(TAKEN)

    def _post_clean(self) -> None:
        """Check what no field can see alone. The instance stays as it was read."""
        if self.errors:
            return
        try:
            with transaction.atomic(using=self.beat.database.alias):
                self.beat.bound_waits()
                if self._is_new:
                    self._refuse_known_name()
                else:
                    self._refuse_what_others_changed()
                if not self.errors:
                    self._try_out()
        except PgBeatError as error:
            self._blame(error)
        if self._is_new and not self.errors:
            self.instance.name = self.cleaned_data["name"]

    def _refuse_known_name(self) -> None:
        if PeriodicTask.objects.filter(pk=self.cleaned_data["name"]).exists():
            raise InvalidPeriodicTask(TAKEN)

    def _refuse_what_others_changed(self) -> None:
        """Lock the row, and refuse a form that was drawn of an older definition."""
        if not self.beat.queries.lock_rows([self.instance.pk], None):
            self.add_error(None, "Another person has removed it meanwhile.")
            return
        row = PeriodicTask.objects.get(pk=self.instance.pk)
        if self.cleaned_data["revision"] == str(row.revision):
            return
        self.add_error(None, replaced_unseen(self.changes(), row))
        self.data = self.data.copy()
        self.data["revision"] = str(row.revision)

    def _try_out(self) -> None:
        """Have Postgres check the change, without making it.

        Raises:
            PgBeatError: it is refused.
        """
        try:
            with transaction.atomic(using=self.beat.database.alias):
                self.write(self.beat)
                raise TriedOut
        except TriedOut:
            pass

    def _blame(self, error: PgBeatError) -> None:
        """Put an error at the field that it names."""
        sentence = said_of_change(error)
        self.add_error(field_of(error, sentence, self.fields, self.data.get("blackout", "")), sentence)


DefinitionForm = type(forms.ModelForm)(
    "DefinitionForm",
    (_DefinitionForm,),
    {
        **{name: _field(column) for name, column in EDITABLE.items()},
        **{name: _replacing(column) for name, column in REPLACING.items()},
    },
)
