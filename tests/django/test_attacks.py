"""Names and other texts are attackers' texts, on every page of the admin."""

from __future__ import annotations

import json

import pytest

from tests.django.visitor import TASKS, Visitor
from tests.harness.html import Seen
from tests.harness.situations import Situation

EVIL = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'{{ 7*7 }}{% now 'Y' %}/../?#&\u202e"


@pytest.fixture
def poisoned(well: Situation) -> Situation:
    """Whatever has a text has an evil one."""
    well.plan(
        name=EVIL,
        task=EVIL,
        group_name=EVIL,
        submitter=EVIL,
        subject=EVIL,
        queue=EVIL[:50],
        kwargs=json.dumps({EVIL: EVIL}),
        managed_by=EVIL,
        enabled=False,
        pause_reason=EVIL,
        paused_by=EVIL,
        problem=EVIL,
    )
    well.final("failed", periodic_task=EVIL, task=EVIL, error=EVIL, queue=EVIL[:50], worker=EVIL)
    well.final("skipped", periodic_task=EVIL, task=EVIL, reason="overlap")
    well.beat(node=EVIL)
    well.session.rows("select pgbeat.pause_group(%s, %s)", EVIL, EVIL)
    return well


def harmless(seen: Seen) -> bool:
    """Tell whether nothing of it became an element or a template, nor a mark of direction in what is read."""
    return "\u202e" not in seen.text and not any(
        evil in seen.html for evil in ("<script>alert", "<img src=x", "49/../")
    )


@pytest.mark.parametrize("model", ["periodictask", "job", "taskgroup", "change"])
def test_lists_escape_what_rows_contain(poisoned: Situation, anna: Visitor, model: str) -> None:
    seen = anna.open(f"/admin/pgbeat/{model}/")

    assert 200 == seen.status
    assert "alert(1)" in seen.html
    assert harmless(seen)


def test_the_page_of_a_task_its_forms_and_its_end_escape_what_it_contains(poisoned: Situation, anna: Visitor) -> None:
    from django.contrib.admin.utils import quote
    from django.urls import reverse

    row = reverse("admin:pgbeat_periodictask_change", args=[quote(EVIL)])
    pages = [
        anna.open(row),
        anna.open(row.replace("/change/", "/delete/")),
        anna.open(row.replace("change", "history")),
    ]
    pages += [anna.open(f"{TASKS}@act/{word}/", key=EVIL) for word in ("pause", "resume", "trigger")]
    pages += [anna.open(f"/admin/pgbeat/taskgroup/@act/{word}/", key=EVIL) for word in ("limit-group", "resume-group")]

    assert [200] * len(pages) == [page.status for page in pages]
    assert all(harmless(page) for page in pages[1:])
    assert not any(evil in pages[0].html for evil in ("<script>alert", "<img src=x", "49/../"))  # its fields keep all


def test_an_action_on_a_hostile_name_acts_on_that_row_and_shows_it_escaped(poisoned: Situation, anna: Visitor) -> None:
    form = anna.open(f"{TASKS}@act/resume/", key=EVIL)
    seen = anna.send(f"{TASKS}@act/resume/", {**form.fields, "key": EVIL})

    assert poisoned.session.task(EVIL)["enabled"]
    told = anna.open(seen.headers["location"])
    assert "It is resumed." in told.text
    assert harmless(told)
    assert harmless(anna.open("/admin/"))


@pytest.mark.parametrize("name", ["q", "state", "group", "manager", "task", "after", "sort", "p", "o", "e", "all"])
def test_parameters_of_the_list_are_escaped_and_bounded(well: Situation, anna: Visitor, name: str) -> None:
    for value in (EVIL, "x" * 5000, "\0", "-1", "9" * 30, "javascript:alert(1)"):
        seen = anna.open(TASKS, **{name: value})
        assert seen.status in (200, 302, 400), (value, seen.status)
        assert not any(evil in seen.html for evil in ("<script>alert", "<img src=x", "49/../")), value


@pytest.mark.parametrize("name", ["state", "reason", "look", "name", "task", "queue", "before", "before_at"])
def test_parameters_of_the_list_of_jobs_are_escaped_and_bounded(well: Situation, anna: Visitor, name: str) -> None:
    for value in (EVIL, "x" * 5000, "\0", "-1"):
        seen = anna.open("/admin/pgbeat/job/", **{name: value})
        assert seen.status in (200, 302, 400), (value, seen.status)
        assert not any(evil in seen.html for evil in ("<script>alert", "<img src=x", "49/../")), value


@pytest.mark.parametrize("lookup", ["kwargs__icontains", "sensitive", "name__gte", "password", "pk__in"])
def test_no_other_column_can_be_looked_for_through_the_address(well: Situation, anna: Visitor, lookup: str) -> None:
    well.plan(kwargs='{"token": "hush"}', sensitive=True)

    seen = anna.open(TASKS, **{lookup: "hush"})

    assert seen.status in (302, 400)


@pytest.mark.parametrize(
    "schedule", ["* * * * * *", "RRULE:FREQ=SECONDLY", "every 1us", "R/PT1S", "1--100000000 * * * *"]
)
def test_a_schedule_that_runs_often_takes_no_time_to_show(well: Situation, anna: Visitor, schedule: str) -> None:
    seen = anna.open(f"{TASKS}@check/", schedule=schedule)

    assert 200 == seen.status
    assert seen.html.count("<li>") <= 5


def test_an_action_without_djangos_token_does_nothing(well: Situation, anna: Visitor) -> None:
    well.plan()
    anna.open(f"{TASKS}@act/pause/?key=nightly")

    assert 403 == anna.send(f"{TASKS}@act/pause/", {"key": "nightly"}).status
    assert 200 == anna.open(f"{TASKS}@act/pause/", key="nightly", reason="x", _save="1").status
    assert well.session.task("nightly")["enabled"]
