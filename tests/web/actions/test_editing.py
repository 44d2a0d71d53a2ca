"""The definition of a periodic task, edited by a form as a browser without script sends it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.columns import DECLARED
from celery_pgbeat.web import dashboard
from celery_pgbeat.web.actions.definition_fields import NAMES
from celery_pgbeat.web.definition_form import REPLACING
from tests.harness.situations import NOON, Situation
from tests.harness.visitor import Visitor, gone_to

EDIT = "/edit?name=nightly"
SAVED = "/task?name=nightly&done=edited"


def test_the_schedule_is_shown_before_it_is_saved(well: Situation, anna: Visitor) -> None:
    well.plan(timezone="UTC")
    before = well.session.task("nightly")["revision"]

    look = anna.act("/edit?name=nightly", step="look", schedule="0 4 * * 1-5", timezone="Europe/Berlin")

    assert 200 == look.status
    assert "✓ at 04:00 on Monday to Friday" in look.text or "04:00" in look.text
    assert 10 == look.html.split('id="look"')[1].split("</ol>")[0].count("<li>")
    assert before == well.session.task("nightly")["revision"]
    gone_to(anna.send("/edit?name=nightly", {**look.fields, "step": "do"}), "/task?name=nightly&done=edited")
    row = well.session.task("nightly")
    assert ("0 4 * * 1-5", "Europe/Berlin") == (row["schedule"], row["timezone"])


def test_what_beats_decide_while_a_person_types_is_no_change_by_another_person(well: Situation, anna: Visitor) -> None:
    well.plan(timezone="UTC")
    well.task("load", schedule=None, after=["nightly"])
    form = anna.open("/edit?name=load")
    at = NOON + timedelta(seconds=1)
    well.final("succeeded", at)
    well.session.rows("insert into pgbeat.dependency_to_check (upstream) values ('nightly')")
    assert 1 == well.session.value("select pgbeat.settle_downstream()")

    gone_to(
        anna.send("/edit?name=load", {**form.fields, "step": "do", "max_run_time": "10m"}),
        "/task?name=load&done=edited",
    )
    row = well.session.task("load")
    assert (at, timedelta(minutes=10), 2) == (row["planned_for"], row["max_run_time"], row["revision"])


def test_what_is_shown_of_a_new_schedule_is_what_a_beat_plans(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    well.plan(timezone="UTC", blackout=["cron: 0 0 2 3 * P1D"])

    look = anna.act("/edit?name=nightly", step="look", schedule="every 7h", timezone="UTC")
    anna.send("/edit?name=nightly", {**look.fields, "step": "do"})

    for run in beat.upcoming("nightly", 10):
        assert run.next_run_at.isoformat(timespec="seconds") in look.html


@pytest.mark.parametrize("schedule", ["0 25 * * *", "every tuesday", "* * * * * * * *", "every 1us"])
def test_a_wrong_schedule_is_refused_in_words_and_kept(well: Situation, anna: Visitor, schedule: str) -> None:
    well.plan()

    for step in ("look", "do"):
        seen = anna.act("/edit?name=nightly", step=step, schedule=schedule)
        assert 422 == seen.status
        assert schedule == seen.fields["schedule"]
        assert 'role="alert"' in seen.html
    assert "0 * * * *" == well.session.task("nightly")["schedule"]


def test_while_it_is_typed_a_schedule_is_checked_without_being_written(well: Situation, anna: Visitor) -> None:
    well.plan(timezone="UTC")

    right = anna.open("/check-schedule", name="nightly", schedule="0 4 * * *", timezone="UTC")
    wrong = anna.open("/check-schedule", name="nightly", schedule="0 25 * * *", timezone="UTC")

    assert (200, 10) == (right.status, right.html.count("<li>"))
    assert "'0 25 * * *': hour 25 is not in 0-23" == wrong.text
    assert "It has no times of its own" in anna.open("/check-schedule", name="nightly", schedule=" ").text
    assert "No periodic task is named 'unknown'" in anna.open("/check-schedule", name="unknown", schedule="@daily").text
    assert "0 * * * *" == well.session.task("nightly")["schedule"]


def test_a_change_by_another_person_in_between_is_not_overwritten_unseen(
    well: Situation, anna: Visitor, beat: PgBeat
) -> None:
    well.plan()
    form = anna.open("/edit?name=nightly")
    beat.update("nightly", schedule="0 7 * * *")

    seen = anna.send("/edit?name=nightly", {**form.fields, "schedule": "0 8 * * *", "step": "do"})

    assert 422 == seen.status
    assert 'Saving again would replace schedule (now "0 7 * * *")' in seen.text
    assert "0 8 * * *" == seen.fields["schedule"]
    assert "0 7 * * *" == well.session.task("nightly")["schedule"]
    assert 303 == anna.send("/edit?name=nightly", {**seen.fields, "step": "do"}).status
    assert "0 8 * * *" == well.session.task("nightly")["schedule"]


def test_a_task_that_code_declares_is_not_edited_here(well: Situation, anna: Visitor) -> None:
    well.plan(managed_by="code:shop")
    well.task("other")
    form = anna.open("/edit?name=other")

    seen = anna.open("/edit?name=nightly")
    sent = anna.send("/edit?name=nightly", {**form.fields, "schedule": "@daily", "step": "do"})

    assert "Code declares this task (code:shop): change it there." in seen.text
    assert {} == seen.fields
    assert 422 == sent.status
    assert "0 * * * *" == well.session.task("nightly")["schedule"]


# --- columns

TYPED: dict[str, tuple[str, Any]] = {
    "task": ("shop.close", "shop.close"),
    "schedule": ("@daily", "@daily"),
    "timezone": ("Europe/Berlin", "Europe/Berlin"),
    "args": ('[1, "a, b"]', [1, "a, b"]),
    "kwargs": ('{"month": "2026-11"}', {"month": "2026-11"}),
    "options": ('{"expires": 60}', {"expires": 60}),
    "sensitive": ("true", True),
    "queue": ("reports", "reports"),
    "priority": ("9", 9),
    "anchor": ("2100-03-05T09:00:00Z", NOON.replace(day=5, hour=9)),
    "dst": ("skip", "skip"),
    "start_at": ("2100-03-05 09:00", NOON.replace(day=5, hour=8)),  # typed in Berlin
    "end_at": ("2100-03-31", NOON.replace(day=30, hour=22)),
    "max_runs": ("7", 7),
    "jitter": ("90s", timedelta(seconds=90)),
    "overlap": ("buffer_one", "buffer_one"),
    "catchup": ("all", "all"),
    "catchup_window": ("1h30m", timedelta(minutes=90)),
    "catchup_limit": ("5", 5),
    "min_gap": ("55s", timedelta(seconds=55)),
    "max_run_time": ("50%", timedelta(minutes=30)),
    "blackout": ("cron: 0 0 * * * PT5H\n\ncron: 0 12 * * * PT1H", ["cron: 0 0 * * * PT5H", "cron: 0 12 * * * PT1H"]),
    "blackout_action": ("skip", "skip"),
    "group_name": ("reports", "reports"),
    "submitter": ("Anna", "Anna"),
    "subject": ("the books", "the books"),
    "pause_after_failures": ("3", 3),
    "on_lost": ("rerun", "rerun"),
    "on_error": ("ask", "ask"),
    "tracking": ("result", "result"),
    "kind": ("human", "human"),
    "target": ("anna\nclerks", ["anna", "clerks"]),
    "due_in": ("4h", timedelta(hours=4)),
    "after": ("morning", ["morning"]),
    "after_condition": ("finish", "finish"),
}
OF_PEOPLE = ("target", "due_in")


def test_the_form_has_every_column_of_a_definition_but_its_name_and_its_owner() -> None:
    assert DECLARED.keys() - {"name", "managed_by"} == NAMES - REPLACING.keys() == TYPED.keys()


@pytest.mark.parametrize("column", TYPED)
def test_a_column_is_changed_alone_and_emptied_again(well: Situation, anna: Visitor, column: str) -> None:
    typed, stored = TYPED[column]
    people = {"kind": "human"} if column in OF_PEOPLE else {}
    well.plan(timezone="UTC", **people)
    well.task("morning")
    before = well.session.task("nightly")

    gone_to(anna.act(EDIT, **{column: typed}, zone="Europe/Berlin"), SAVED)

    after = well.session.task("nightly")
    changed = {name for name in DECLARED if before[name] != after[name]}
    assert ({column}, stored) == (changed, after[column])
    if column in ("sensitive", "task", "schedule"):
        return
    seen = anna.act(EDIT, **{column: DECLARED[column].default if DECLARED[column].choices else ""})
    gone_to(seen, SAVED)
    assert before[column] == well.session.task("nightly")[column] or column == "timezone"


def test_a_form_that_changes_nothing_writes_nothing(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    well.task("morning")
    well.plan(timezone="UTC")
    given = {name: value for name, (_, value) in TYPED.items() if name not in ("sensitive", "kind", *OF_PEOPLE)}
    beat.update("nightly", **given)
    before = well.session.task("nightly")

    form = anna.open(EDIT)
    gone_to(anna.send(EDIT, {**form.fields, "step": "do"}), "/task?name=nightly&done=unchanged")

    assert before == well.session.task("nightly")


def test_a_schedule_of_several_lines_has_a_field_of_several_lines(well: Situation, anna: Visitor) -> None:
    rule = "DTSTART:21000301T090000Z\nRRULE:FREQ=DAILY\nEXDATE:21000303T090000Z"
    well.plan(schedule=rule, timezone="UTC")

    form = anna.open(EDIT)
    gone_to(anna.send(EDIT, {**form.fields, "queue": "x", "step": "do"}), SAVED)

    assert '<textarea id="schedule"' in form.html
    row = well.session.task("nightly")
    assert (rule, "x") == (row["schedule"], row["queue"])


def test_a_section_is_open_where_something_is_set(well: Situation, anna: Visitor) -> None:
    well.plan(jitter="10 s")

    html = anna.open(EDIT).html

    assert '<details class="section" open><summary>When, in detail' in html
    assert '<details class="section"><summary>Around a run' in html


@pytest.mark.parametrize(
    ("typed", "column", "says"),
    [
        ({"priority": "high"}, "priority", "This is not a whole number."),
        ({"priority": "300"}, "priority", "300"),
        ({"jitter": "soon"}, "jitter", "soon"),
        ({"args": "[1"}, "args", "This is not JSON"),
        ({"options": "[]"}, "options", "This is JSON, but not an object"),
        ({"options": '{"serializer": "pickle"}'}, "options", "pickle"),
        ({"start_at": "someday"}, "start_at", "'someday' is not an instant"),
        ({"blackout": "cron: 0 0 * * 9 PT1H"}, "blackout", "cron: 0 0 * * 9 PT1H"),
        ({"target": "anna"}, "target", "target is set, but kind is 'task'"),
        ({"after": "unknown"}, "after", "unknown"),
        ({"timezone": "Mars/Olympus"}, "timezone", "Mars/Olympus"),
        ({"task": ""}, "task", "task is missing"),
        ({"group_name": "x" * 300}, "group_name", "200"),
    ],
)
def test_a_wrong_value_is_refused_at_its_field_and_kept(
    well: Situation, anna: Visitor, typed: dict[str, str], column: str, says: str
) -> None:
    well.plan(timezone="UTC")
    before = well.session.task("nightly")

    seen = anna.act(EDIT, **typed)

    assert 422 == seen.status
    assert says in seen.html.split(f'id="{column}-error"')[1].split("</span>")[0].replace("&#39;", "'")
    assert typed.items() <= seen.fields.items()
    assert before == well.session.task("nightly")


def test_a_circle_of_tasks_is_refused_by_its_path(well: Situation, anna: Visitor) -> None:
    well.plan()
    well.task("morning", after=["nightly"])

    seen = anna.act(EDIT, after="morning")

    assert (422, "morning") == (seen.status, seen.fields["after"])
    assert "'morning'" in seen.html.split('class="banner bad"')[1].split("</div>")[0].replace("&#39;", "'")
    assert well.session.task("nightly")["after"] is None


def test_a_value_that_is_not_among_the_choices_is_refused(well: Situation, anna: Visitor) -> None:
    well.plan()

    seen = anna.act(EDIT, overlap="sometimes")

    assert (422, True) == (seen.status, "sometimes" in seen.text)
    assert "skip" == well.session.task("nightly")["overlap"]


def test_what_decides_the_times_is_looked_at_while_it_is_typed(well: Situation, anna: Visitor) -> None:
    well.plan(schedule="0 * * * *", timezone="UTC")
    well.session.rows("insert into pgbeat.blackout (name, windows) values ('noon', array['cron: 0 12 * * * PT3H'])")

    def runs(**typed: str) -> list[str]:
        html = anna.open("/check-schedule", name="nightly", zone="Europe/Berlin", **typed).html
        return [part.split('"')[0][11:16] for part in html.split('datetime="')[1:]]

    assert ["15:00", "16:00"] == runs(blackout="window: noon")[:2]
    assert ["08:00", "09:00"] == runs(start_at="2100-03-05 09:00")[:2]
    assert ["13:00", "14:00"] == runs(max_runs="2")
    assert runs() == runs(queue="reports")


def test_the_arguments_of_a_sensitive_task_are_neither_shown_nor_uncovered(
    well: Situation, anna: Visitor, beat: PgBeat
) -> None:
    well.plan(args='["secret"]', options='{"headers": {"key": "secret"}}', sensitive=True)

    form = anna.open(EDIT)
    sent = {**form.fields, "args": "[]", "kwargs": "{}", "sensitive": "false", "subject": "the books"}
    gone_to(anna.send(EDIT, {**sent, "step": "do"}), SAVED)

    assert "secret" not in form.html
    assert {"args", "kwargs", "options", "sensitive"}.isdisjoint(form.fields)
    assert "Its arguments are sensitive" in form.text
    row = beat.get("nightly")
    assert (["secret"], True, "the books") == (row.args, row.sensitive, row.subject)


def test_new_arguments_of_a_sensitive_task_replace_those_that_are_not_shown(
    well: Situation, anna: Visitor, beat: PgBeat
) -> None:
    well.plan(args='["secret"]', kwargs='{"key": "secret"}', sensitive=True)

    refused = anna.act(EDIT, new_kwargs="[1]")
    too_large = anna.act(EDIT, new_args=f'["{"x" * 70_000}"]')
    gone_to(anna.act(EDIT, new_args='["covert"]'), SAVED)

    assert (422, True) == (refused.status, "This is JSON, but not an object" in refused.text)
    assert (422, True) == (too_large.status, "args and kwargs have 70021 bytes together" in too_large.text)
    assert (["covert"], {"key": "secret"}) == (beat.get("nightly").args, beat.get("nightly").kwargs)
    gone_to(anna.act(EDIT, new_kwargs="{}"), SAVED)
    assert (["covert"], {}) == (beat.get("nightly").args, beat.get("nightly").kwargs)
    assert "covert" not in anna.open(EDIT).html


def test_only_the_form_of_a_sensitive_task_has_fields_for_new_arguments(well: Situation, anna: Visitor) -> None:
    well.plan(args="[1]")

    form = anna.open(EDIT)
    seen = anna.send(EDIT, {**form.fields, "new_args": "[2]", "step": "do"})

    assert "new_args" not in form.fields
    gone_to(seen, SAVED.replace("edited", "unchanged"))
    assert [1] == well.session.task("nightly")["args"]


@pytest.fixture
def blind(reader_url: str) -> Iterator[Visitor]:
    """A person who may change things, on a dashboard whose user of the database may not read arguments."""
    with Visitor(dashboard(reader_url, may_change=lambda _: "ben")) as made:
        yield made


def test_a_dashboard_that_may_not_read_arguments_leaves_them_as_they_are(situation: Situation, blind: Visitor) -> None:
    situation.plan(args='["secret"]')

    form = blind.open(EDIT)

    assert "secret" not in form.html
    assert {"args", "kwargs", "options"}.isdisjoint(form.fields)
    assert "may not read its arguments, so they cannot be changed here" in form.text


# --- tasks of code


def test_a_task_of_code_is_taken_over_and_can_then_be_edited(well: Situation, anna: Visitor) -> None:
    typed = {"jitter": "10 s", "max_run_time": "20 min", "after_condition": "finish", "args": "[1]", "subject": "books"}
    well.plan(managed_by="code:shop", timezone="UTC", **typed)
    before = well.session.task("nightly")

    address = anna.open("/task?name=nightly").link("/take-over")
    form = anna.open(address)
    gone_to(anna.act(address), "/task?name=nightly&done=taken-over")

    assert "update pgbeat.periodic_task set managed_by = 'code:shop' where name = 'nightly'" in form.text
    after = well.session.task("nightly")
    assert {"managed_by"} == {name for name in (*DECLARED, "next_run_at", "enabled") if before[name] != after[name]}
    gone_to(anna.act(EDIT, queue="reports"), SAVED)
    assert "No code declares it: api manages it" in anna.open(address).text


def test_a_task_that_was_taken_over_is_given_back_by_the_statement_that_the_form_says(
    well: Situation, anna: Visitor
) -> None:
    name = 'it\'s "mine"'
    well.plan(name=name, managed_by="code:o'shop")
    address = anna.open("/task", name=name).link("/take-over")
    statement = anna.open(address).text.partition("in SQL: ")[2].partition(" Take it over")[0]
    anna.act(address)

    well.session.rows(statement)

    assert "code:o'shop" == well.session.task(name)["managed_by"]
