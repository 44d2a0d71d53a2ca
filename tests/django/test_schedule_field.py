"""The form field for schedules, in forms of one's own."""

from __future__ import annotations

from typing import Any

import pytest


def form_with(text: str, zone: str = "UTC", **given: Any) -> Any:
    from django import forms

    from celery_pgbeat.django.schedule_field import ScheduleField

    return type("Form", (forms.Form,), {"when": ScheduleField(timezone=zone, **given)})({"when": text})


def test_a_schedule_is_shown_in_words_with_its_next_runs() -> None:
    form = form_with("0 4 * * *", "Europe/Berlin")

    assert form.is_valid()
    assert "0 4 * * *" == form.cleaned_data["when"]
    html = str(form["when"])
    assert "04:00" in html
    assert 5 == html.count("<li>")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 25 * * *", "hour 25 is not in 0-23"),
        ("<script>", "&lt;script&gt;"),
        ("", "This field is required."),
        ("x" * 6000, "at most 5000 characters"),
    ],
)
def test_what_a_beat_would_refuse_is_refused_in_its_words_and_kept(text: str, says: str) -> None:
    form = form_with(text)

    assert not form.is_valid()
    assert says in str(form.errors)
    assert "<script>" not in form.as_p()


def test_it_may_be_left_empty_if_it_is_not_required() -> None:
    assert form_with("", required=False).is_valid()
