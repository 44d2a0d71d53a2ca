"""A form field for schedules: it refuses what a beat would refuse, in the same words, and shows the next runs."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from celery_pgbeat.errors import InvalidSchedule, MissingExtra
from celery_pgbeat.schedules import parse
from celery_pgbeat.texts.safe_text import one_line

SHOWN = 5  # occurrences below the field
LONGEST = 5_000  # characters; the longest schedule, a recurrence rule, has 4,000
HINT = "0 3 * * *, every 5m, Mon..Fri 09:00, @daily, R/PT1H, 2026-12-24 08:00, RRULE:FREQ=…"


def described(text: str, zone: str, name: str = "") -> SafeString:
    """Return a schedule in words with its next runs, as HTML.

    Raises:
        InvalidSchedule: it is wrong; names the field and the value.
        MissingExtra: its kind needs a package that is not installed.
    """
    schedule = parse(text, zone, name=name)
    runs = schedule.occurrences(datetime.now(timezone.utc), limit=SHOWN)
    items = format_html_join("", "<li>{}</li>", ((f"{run:%Y-%m-%d %H:%M:%S} UTC",) for run in runs))
    return format_html("<span>{}</span><ol>{}</ol>", one_line(schedule.describe()), items)


class ScheduleInput(forms.TextInput):
    """A line of text with the next runs below it.

    Args:
        check_url: what the script asks while a person types; None for no script.
    """

    def __init__(self, attrs: Any = None, check_url: str | None = None) -> None:
        super().__init__({"size": 60, "maxlength": LONGEST, "spellcheck": "false", **(attrs or {})})
        self.check_url = check_url
        self.zone = "UTC"

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the HTML of the field and of what its value means."""
        field = super().render(name, value, attrs, renderer)
        try:
            shown = described(value, self.zone) if isinstance(value, str) and value.strip() else ""
        except (InvalidSchedule, MissingExtra):
            shown = ""  # the form says what is wrong
        return format_html(
            '<div class="pgbeat-schedule">{}<div class="pgbeat-next" data-schedule="{}" data-check="{}">{}</div></div>',
            field,
            name,
            self.check_url or "",
            shown,
        )

    class Media:
        js = ("pgbeat/schedule.js",)


class ScheduleField(forms.CharField):
    """A schedule in any of the languages of celery-pgbeat.

    Args:
        timezone: the IANA zone whose clock counts, if the text names none.
    """

    widget = ScheduleInput

    def __init__(self, *, timezone: str = "UTC", **given: Any) -> None:
        self.timezone = timezone
        super().__init__(**{"help_text": HINT, "max_length": LONGEST, **given})

    def widget_attrs(self, widget: Any) -> dict[str, Any]:
        """Tell the widget the zone."""
        widget.zone = self.timezone
        return super().widget_attrs(widget)  # type: ignore[no-any-return]

    def clean(self, value: Any) -> Any:
        """Return the text.

        Raises:
            ValidationError: it is no schedule; says why.
        """
        text = super().clean(value)
        if not text:
            return text
        try:
            parse(text, self.timezone)
        except (InvalidSchedule, MissingExtra) as error:
            raise forms.ValidationError(str(error), code="invalid") from None
        return text
