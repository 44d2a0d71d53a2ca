"""The admin of periodic tasks: list, form, actions."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from celery_pgbeat.columns import DECLARED
from tests.django.visitor import TASKS, Visitor, person
from tests.harness.session import Session
from tests.harness.situations import JOB, NOON, Situation
from tests.harness.transactions import Transaction

CHANGE = f"{TASKS}nightly/change/"


def act_page(word: str, key: str = "nightly") -> str:
    return f"{TASKS}@act/{word}/?key={key}"


MADE = ("created", "next_run_set")  # by the harness


def changes(session: Session) -> list[tuple[str, str, str]]:
    rows = session.rows("select who, action, name from pgbeat.change order by id")
    return [(row["who"], row["action"], row["name"]) for row in rows if row["action"] not in MADE]


def log_entries() -> list[tuple[str, int, str]]:
    from django.contrib.admin.models import LogEntry

    return [(one.object_id, one.action_flag, one.user.get_username()) for one in LogEntry.objects.order_by("pk")]


# --- the list


def test_the_list_says_when_a_task_runs_what_it_does_and_what_became_of_it(well: Situation, anna: Visitor) -> None:
    well.plan(timezone="UTC", group_name="reports")
    well.final("failed", error="boom")
    well.task("broken", problem="no such zone")

    seen = anna.open(TASKS)

    assert 200 == seen.status
    for words in ("every hour", "waiting", "March 1, 2100", "failed", "reports", "sql"):
        assert words in seen.text, words
    assert "problem: no such zone" in seen.text


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({"state": "paused"}, {"paused"}),
        ({"state": "problem"}, {"broken"}),
        ({"state": "overdue"}, {"late"}),
        ({"group": "reports"}, {"grouped"}),
        ({"manager": "code:shop"}, {"coded"}),
        ({"task": "shop.other"}, {"other"}),
        ({"q": "ROUP"}, {"grouped"}),
        ({"q": "ROUP", "state": "paused"}, set()),
    ],
)
def test_search_and_filters_find(well: Situation, anna: Visitor, parameters: dict[str, str], names: set[str]) -> None:
    well.plan(name="paused", enabled=False)
    well.plan(name="broken", problem="no such zone")
    well.plan(name="late", next_run_at=NOON - timedelta(hours=1))
    well.plan(name="grouped", group_name="reports")
    well.plan(name="coded", managed_by="code:shop")
    well.plan(name="other", task="shop.other")

    seen = anna.open(TASKS, **parameters)

    assert names == {given["value"] for tag, given in seen.tags if given.get("name") == "_selected_action"}
    assert {"group", "manager", "task"} <= {str(given.get("name")) for tag, given in seen.tags if tag == "input"}


def test_pages_follow_the_names_and_keep_the_filters(well: Situation, anna: Visitor) -> None:
    for number in range(120):
        well.session.insert(f"row-{number:03}", group_name="odd" if number % 2 else None)
    found: list[str] = []
    address = f"{TASKS}?group=odd"

    while address:
        seen = anna.open(address)
        found += [str(given["value"]) for tag, given in seen.tags if given.get("name") == "_selected_action"]
        more = [str(given["href"]) for tag, given in seen.tags if given.get("rel") == "next"]
        address = f"{TASKS}{more[0]}" if more else ""

    assert [f"row-{number:03}" for number in range(120) if number % 2] == found


def test_the_list_counts_nothing_and_its_number_of_statements_does_not_depend_on_the_rows(
    well: Situation, anna: Visitor
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    asked = []
    for more in range(1, 122, 60):
        for number in range(more):
            well.session.insert(f"row-{more}-{number}")
        with CaptureQueriesContext(connection) as queries:
            anna.open(TASKS)
        asked.append([query["sql"] for query in queries])

    assert len(asked[0]) == len(asked[1]) == len(asked[2])
    assert [] == [sql for sql in asked[1] if "count(*)" in sql.lower() and "pgbeat" in sql]


# --- the form


def test_only_what_was_changed_is_written_by_the_name_of_the_user(well: Situation, anna: Visitor) -> None:
    well.plan(timezone="UTC", max_run_time=timedelta(minutes=30), kwargs='{"a": 1}', blackout=["cron: 0 0 2 3 * P1D"])
    before = well.session.task("nightly")

    seen = anna.act(CHANGE, queue="reports")

    assert (302, TASKS) == (seen.status, seen.headers["location"])
    after = well.session.task("nightly")
    assert {"queue", "revision", "planned_revision", "updated_at"} >= {
        name for name in before if before[name] != after[name]
    }
    assert "reports" == after["queue"]
    assert ("anna", "changed", "nightly") == changes(well.session)[-1]
    assert ["queue"] == well.session.value("select columns from pgbeat.change order by id desc limit 1")
    assert [("nightly", 2, "anna")] == log_entries()


def test_saving_without_a_change_writes_nothing(well: Situation, anna: Visitor) -> None:
    well.plan(
        timezone="UTC",
        start_at=NOON.replace(microsecond=123_456),
        jitter=timedelta(seconds=1.5),
        target=["ann", "ben"],
        kind="human",
    )
    well.plan(name="call", args='[1, null, {"b": 1, "a": 2}]', kwargs='{"x": "y"}', options='{"expires": 60}')
    before = [well.session.task(name) for name in ("nightly", "call")]

    assert [302, 302] == [anna.act(f"{TASKS}{name}/change/").status for name in ("nightly", "call")]

    assert before == [well.session.task(name) for name in ("nightly", "call")]


VALUES: dict[str, Any] = {
    "name": "fresh",
    "task": "shop.report",
    "args": "[1]",
    "kwargs": '{"a": {"b": null}}',
    "queue": "reports",
    "priority": "7",
    "options": '{"expires": 60}',
    "sensitive": "on",
    "schedule": "0 4 * * 1-5",
    "timezone": "Europe/Berlin",
    "dst": "once",
    "start_at_0": "2100-03-02",
    "start_at_1": "08:00:00",
    "end_at_0": "2101-03-02",
    "end_at_1": "08:00:00",
    "max_runs": "9",
    "jitter": "30s",
    "overlap": "buffer_one",
    "catchup": "all",
    "catchup_window": "1h",
    "catchup_limit": "5",
    "min_gap": "55s",
    "max_run_time": "30m",
    "blackout": "cron: 0 0 * * sat P2D\ncron: 0 0 1 1 * P1D",
    "blackout_action": "skip",
    "group_name": "reports",
    "submitter": "ann",
    "subject": "the <month>",
    "pause_after_failures": "3",
    "on_lost": "rerun",
    "on_error": "ask",
    "after_condition": "finish",
}


def test_a_new_task_is_made_with_all_that_was_typed(well: Situation, anna: Visitor) -> None:
    seen = anna.act(f"{TASKS}add/", **VALUES)

    assert 302 == seen.status, seen.text
    row = well.session.task("fresh")
    assert ("api", "0 4 * * 1-5", 7, True) == (row["managed_by"], row["schedule"], row["priority"], row["sensitive"])
    assert {"a": {"b": None}} == row["kwargs"]
    assert NOON.replace(day=2, hour=7) == row["start_at"]  # TIME_ZONE is Berlin
    assert (timedelta(minutes=30), timedelta(seconds=30)) == (row["max_run_time"], row["jitter"])
    assert ["cron: 0 0 * * sat P2D", "cron: 0 0 1 1 * P1D"] == row["blackout"]
    typed = {name.removesuffix("_0").removesuffix("_1") for name in VALUES}
    left = {"anchor", "tracking", "kind", "target", "due_in", "after", "managed_by"}
    assert set(DECLARED) == typed | left
    assert [("fresh", 1, "anna")] == log_entries()
    assert "anna" == well.session.value("select who from pgbeat.change where name = 'fresh'")


@pytest.mark.parametrize(
    ("typed", "field", "says"),
    [
        ({"schedule": "0 25 * * *"}, "schedule", "hour 25 is not in 0-23"),
        ({"schedule": "* * * * * *", "timezone": "Mars/Olympus"}, "timezone", "Mars/Olympus"),
        ({"max_run_time": "soon"}, "max_run_time", "soon"),
        ({"blackout": "cron: 0 0 * * * P40000D"}, None, "P40000D"),
        ({"args": "{"}, "args", "This is not JSON."),
        ({"kwargs": "[1]"}, "kwargs", "This is not an object."),
        ({"priority": "300"}, "priority", "300 is not in 0-255"),
        ({"options": '{"task_id": "x"}'}, "options", "task_id"),
        ({"dst": "never"}, "dst", "not one of the available choices"),
        ({"subject": "x" * 1001}, "subject", "1,000"),
        ({"after": "missing"}, None, "missing"),
        ({"task": ""}, "task", "task"),
        ({"queue": "a\0b"}, "queue", "Null characters are not allowed"),
    ],
)
def test_a_refused_value_is_shown_at_its_field_and_nothing_is_written(
    well: Situation, anna: Visitor, typed: dict[str, str], field: str | None, says: str
) -> None:
    well.plan(timezone="UTC")
    before = well.session.task("nightly")

    seen = anna.act(CHANGE, **typed)

    assert 200 == seen.status
    assert says in seen.text
    if field is not None:
        assert f'id="id_{field}_error"' in seen.html or f"field-{field}" in _rows_with_errors(seen.html)
    assert before == well.session.task("nightly")
    assert [] == log_entries()


def _rows_with_errors(html: str) -> str:
    return " ".join(part.split('"')[0] for part in html.split('class="form-row errors ')[1:])


def test_a_new_task_does_not_replace_one_of_the_same_name(
    well: Situation, anna: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from celery_pgbeat.django.admin.definition_form import _DefinitionForm

    well.plan(name="fresh", timezone="UTC")
    before = well.session.task("fresh")
    typed = {"name": "fresh", "task": "shop.other", "schedule": "@daily"}

    seen = anna.act(f"{TASKS}add/", **typed)
    monkeypatch.setattr(_DefinitionForm, "_refuse_known_name", lambda _: None)  # it is made after that was asked
    late = anna.act(f"{TASKS}add/", **typed)

    for refused in (seen, late):
        assert 200 == refused.status
        assert "name is that of a periodic task that exists already" in refused.text
    assert before == well.session.task("fresh")


def test_a_change_by_another_person_in_between_is_not_overwritten_unseen(well: Situation, anna: Visitor) -> None:
    well.plan(timezone="UTC")
    form = anna.open(CHANGE)
    well.session.rows("update pgbeat.periodic_task set queue = 'theirs' where name = 'nightly'")

    refused = anna.send(CHANGE, {**form.fields, "queue": "mine"})

    assert 200 == refused.status
    assert 'Another person has changed this task. Saving again would replace queue (now "theirs")' in refused.text
    assert "theirs" == well.session.task("nightly")["queue"]
    assert 302 == anna.send(CHANGE, refused.fields).status
    assert "mine" == well.session.task("nightly")["queue"]


def test_what_beats_write_meanwhile_does_not_disturb_a_form(well: Situation, anna: Visitor) -> None:
    well.plan(timezone="UTC")
    form = anna.open(CHANGE)
    later = NOON + timedelta(hours=2)
    well.session.rows(
        "update pgbeat.periodic_task set next_run_at = %s, planned_for = %s, last_run_at = %s, run_count = 7 "
        "where name = 'nightly'",
        later,
        later,
        NOON,
    )

    assert 302 == anna.send(CHANGE, {**form.fields, "subject": "stock"}).status

    row = well.session.task("nightly")
    assert (later, 7, "stock") == (row["next_run_at"], row["run_count"], row["subject"])


def test_an_action_does_not_wait_long_for_a_locked_row(well: Situation, anna: Visitor, project_database: str) -> None:
    well.plan(timezone="UTC")
    form = anna.open(CHANGE)
    with closing(Transaction(project_database)) as other:
        other.execute("update pgbeat.periodic_task set queue = 'x' where name = 'nightly'")
        seen = anna.send(CHANGE, {**form.fields, "subject": "stock"})

    assert 200 == seen.status
    assert "Another transaction has locked what you want to change." in seen.text


def test_a_task_that_code_declares_is_shown_and_not_edited_and_the_page_says_why(
    well: Situation, anna: Visitor
) -> None:
    well.plan(managed_by="code:shop")
    other = well.session.insert("other")
    fields = anna.open(f"{TASKS}{other['name']}/change/").fields

    seen = anna.open(CHANGE)

    assert "Code declares this task (code:shop): change it there." in seen.text
    assert "_save" not in str(seen.tags)
    assert 403 == anna.send(CHANGE, {**fields, "queue": "x"}).status
    assert 403 == anna.send(f"{TASKS}nightly/delete/", {**fields, "post": "yes"}).status
    assert well.session.task("nightly")["queue"] is None
    assert 302 == anna.act(act_page("pause"), reason="stop").status
    assert not well.session.task("nightly")["enabled"]


def test_arguments_of_a_sensitive_task_are_neither_shown_nor_uncovered(well: Situation, anna: Visitor) -> None:
    well.plan(args='["hush-1"]', kwargs='{"token": "hush-hush"}', sensitive=True, timezone="UTC")

    seen = anna.open(CHANGE)
    sent = {**seen.fields, "sensitive": "", "args": '["mine"]', "kwargs": "{}", "subject": "x"}

    assert "hush-" not in seen.html
    assert {"args", "kwargs", "sensitive"}.isdisjoint(seen.fields)
    assert 302 == anna.send(CHANGE, sent).status
    row = well.session.task("nightly")
    assert (True, ["hush-1"], {"token": "hush-hush"}) == (row["sensitive"], row["args"], row["kwargs"])
    assert "x" == row["subject"]


def test_saving_the_page_of_a_sensitive_task_leaves_its_arguments(well: Situation, anna: Visitor) -> None:
    well.plan(args='["hush-1"]', kwargs='{"token": "hush-hush"}', sensitive=True, timezone="UTC")

    seen = anna.act(CHANGE, subject="x")

    assert 302 == seen.status
    row = well.session.task("nightly")
    assert (["hush-1"], {"token": "hush-hush"}, "x") == (row["args"], row["kwargs"], row["subject"])
    assert ["subject"] == well.session.value("select columns from pgbeat.change order by id desc limit 1")


def test_new_arguments_of_a_sensitive_task_replace_those_that_are_not_shown(well: Situation, anna: Visitor) -> None:
    well.plan(args='["hush-1"]', kwargs='{"token": "hush-hush"}', sensitive=True, timezone="UTC")

    refused = anna.act(CHANGE, new_kwargs='{"token')
    done = anna.act(CHANGE, new_args='["hush-2"]')
    emptied = anna.act(CHANGE, new_kwargs="{}")

    assert (200, True) == (refused.status, "This is not JSON." in refused.text)
    assert (302, 302) == (done.status, emptied.status)
    row = well.session.task("nightly")
    assert (["hush-2"], {}, True) == (row["args"], row["kwargs"], row["sensitive"])
    assert "hush-" not in anna.open(CHANGE).html
    assert "new_args" not in anna.open(f"{TASKS}add/").fields


def test_fields_that_are_not_sent_change_nothing(well: Situation, anna: Visitor) -> None:
    assert 302 == anna.act(f"{TASKS}add/", **{**VALUES, "sensitive": ""}).status
    page = f"{TASKS}fresh/change/"
    before = well.session.task("fresh")
    fields = anna.open(page).fields
    kept = {"csrfmiddlewaretoken", "revision", *(name for name, column in DECLARED.items() if column.choices)}

    assert 302 == anna.send(page, {name: value for name, value in fields.items() if name in kept}).status

    assert before == well.session.task("fresh")


def test_what_the_page_of_a_project_does_not_show_is_left_as_it_is(
    well: Situation, anna: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.contrib import admin

    from celery_pgbeat.django.models import PeriodicTask

    well.plan(timezone="UTC", queue="theirs", args="[1]")
    shown = ((None, {"fields": ("name", "task", "schedule", "timezone", "subject", "revision")}),)
    monkeypatch.setattr(admin.site._registry[PeriodicTask], "get_fieldsets", lambda *_: shown)

    assert 302 == anna.act(CHANGE, subject="x").status
    assert 302 == anna.send(CHANGE, {**anna.open(CHANGE).fields, "queue": "mine", "args": "[2]"}).status

    row = well.session.task("nightly")
    assert ("x", "theirs", [1]) == (row["subject"], row["queue"], row["args"])


def test_the_page_of_a_task_says_why_it_runs_or_not_and_refers_to_the_dashboard(well: Situation, anna: Visitor) -> None:
    well.plan(timezone="UTC")
    dora = person("dora", "change_periodictask")

    seen = anna.open(CHANGE)

    assert "'nightly' is not running" in seen.text
    assert "/ops/pgbeat/task?name=nightly" in seen.links
    assert "/ops/pgbeat/" in anna.open(TASKS).links
    for page in (CHANGE, TASKS):
        assert not [link for link in dora.open(page).links if "/ops/" in link]


def test_a_schedule_is_checked_while_it_is_typed(well: Situation, anna: Visitor, carl: Visitor) -> None:
    right = anna.open(f"{TASKS}@check/", schedule="0 4 * * *", timezone="Europe/Berlin", name="x")
    wrong = anna.open(f"{TASKS}@check/", schedule="0 25 * * <b>", timezone="Europe/Berlin")

    assert (200, 5) == (right.status, right.html.count("<li>"))
    assert "hour 25 is not in 0-23" in wrong.html
    assert "text/plain" in wrong.headers["content-type"]
    assert 403 == carl.open(f"{TASKS}@check/", schedule="0 4 * * *").status


def test_a_task_is_removed_unless_another_one_runs_after_it(well: Situation, anna: Visitor) -> None:
    well.plan()
    well.session.insert("later", schedule=None, after=["nightly"])

    refused = anna.act(f"{TASKS}nightly/delete/")
    told = anna.open(refused.headers["location"])
    done = anna.act(f"{TASKS}later/delete/")

    assert "later" in told.text
    assert "nightly" == well.session.task("nightly")["name"]
    assert 302 == done.status
    assert 1 == well.session.value("select count(*) from pgbeat.periodic_task")
    assert [("later", 3, "anna")] == log_entries()
    assert ("anna", "removed", "later") == changes(well.session)[-1]


def test_those_that_are_ticked_are_removed(well: Situation, anna: Visitor) -> None:
    for name in ("one", "two", "three"):
        well.session.insert(name)

    seen = anna.tick(TASKS, "delete_selected", "one", "two", post="yes")

    assert 302 == seen.status
    assert ["three"] == [row["name"] for row in well.session.rows("select name from pgbeat.periodic_task")]


# --- actions


def test_a_task_is_paused_with_a_reason_and_an_end_and_resumed(well: Situation, anna: Visitor) -> None:
    well.plan()

    paused = anna.act(act_page("pause"), reason="stocktaking", until="2100-03-05 09:00")

    assert (302, TASKS) == (paused.status, paused.headers["location"])
    row = well.session.task("nightly")
    assert (False, "stocktaking", "anna") == (row["enabled"], row["pause_reason"], row["paused_by"])
    assert NOON.replace(day=5, hour=8) == row["paused_until"]  # TIME_ZONE is Berlin
    assert "'nightly': It is paused." in anna.open(TASKS).text
    assert "It is paused by anna: stocktaking" in anna.open(act_page("resume")).text
    anna.act(act_page("resume"))
    assert well.session.task("nightly")["enabled"]
    assert [("anna", "paused", "nightly"), ("anna", "resumed", "nightly")] == changes(well.session)
    assert [("nightly", 2, "anna")] * 2 == log_entries()


def test_a_task_is_triggered_with_arguments_of_its_own(well: Situation, anna: Visitor) -> None:
    well.plan()

    anna.act(act_page("trigger"), kwargs='{"month": "2026-11"}')

    job = well.session.row("select message, origin from pgbeat.active_job")
    assert ("manual", {"month": "2026-11"}) == (job["origin"], job["message"]["kwargs"])
    assert ("anna", "triggered", "nightly") == changes(well.session)[-1]


def test_a_task_of_code_is_taken_over_and_can_then_be_edited(well: Situation, anna: Visitor) -> None:
    well.plan(managed_by="code:shop", jitter="10 s")
    before = well.session.task("nightly")

    seen = anna.open(CHANGE)
    anna.act(act_page("take-over"))

    assert "Take over…" in seen.text
    row = well.session.task("nightly")
    changed = {name for name in before if before[name] != row[name]}
    assert {"managed_by"} == changed - {"updated_at", "revision", "declared_timezone", "planned_revision"}
    assert "Take over…" not in anna.open(CHANGE).text
    assert "manages it, so it can be edited" in anna.open(act_page("take-over")).text


def test_an_error_is_shown_at_its_field_and_the_input_stays(well: Situation, anna: Visitor) -> None:
    well.plan()

    seen = anna.act(act_page("pause"), reason="stock<taking>", until="next year")

    assert 422 == seen.status
    assert "'next year' is not an instant" in seen.text
    assert "stock<taking>" == seen.fields["reason"]
    assert well.session.task("nightly")["enabled"]


def test_ticked_rows_are_changed_one_by_one_and_one_refusal_stops_no_other(well: Situation, anna: Visitor) -> None:
    for name in ("nightly", "second", "third"):
        well.plan(name=name)
    well.job("running")

    form = anna.tick(TASKS, "trigger", "nightly", "second", "third")
    assert ["nightly", "second", "third"] == [
        given["value"] for tag, given in form.tags if tag == "input" and given.get("name") == "key"
    ]
    fields = {**form.fields, "key": ["nightly", "second", "third"]}
    seen = anna.send(f"{TASKS}@act/trigger/", fields)
    told = anna.open(seen.headers["location"]).text

    assert str(JOB) in told
    assert "'second': A job was made." in told
    made = well.session.rows("select periodic_task from pgbeat.active_job where origin = 'manual' order by 1")
    assert ["second", "third"] == [row["periodic_task"] for row in made]


def test_no_form_acts_on_all_rows_that_match_a_filter(well: Situation, anna: Visitor) -> None:
    well.plan()

    seen = anna.tick(TASKS, "pause", "nightly", select_across="1")

    assert "Choose the rows on the page: nothing was done." in anna.open(seen.headers["location"]).text
    assert well.session.task("nightly")["enabled"]
    token = anna.open(act_page("pause")).fields["csrfmiddlewaretoken"]
    for keys in ([], [f"row-{number}" for number in range(201)]):
        assert 400 == anna.send(f"{TASKS}@act/pause/", {"csrfmiddlewaretoken": token, "key": keys}).status


def test_an_unknown_task_is_reported_as_unknown(well: Situation, anna: Visitor) -> None:
    assert "No periodic task is named 'missing'" in anna.open(act_page("pause", "missing")).text
    assert 404 == anna.open(f"{TASKS}@act/explode/?key=nightly").status


# --- rights


@pytest.mark.parametrize("word", ["pause", "resume", "trigger"])
def test_a_user_with_read_access_cannot_change_anything(
    well: Situation, anna: Visitor, ben: Visitor, word: str
) -> None:
    well.plan(timezone="UTC", enabled=word != "resume")
    before = well.session.task("nightly")
    token = anna.open(act_page(word)).fields

    seen = ben.open(CHANGE)

    assert (200, True) == (seen.status, "'nightly' is not running" in seen.text)
    assert not [link for link in seen.links if "@act" in link]
    assert 403 == ben.open(act_page(word)).status
    ben_token = ben.client.cookies["csrftoken"].value if "csrftoken" in ben.client.cookies else ""
    sent = {**token, "csrfmiddlewaretoken": ben_token, "key": "nightly"}
    assert 403 == ben.send(f"{TASKS}@act/{word}/", sent).status
    assert 403 == ben.send(CHANGE, {**sent, "queue": "x"}).status
    assert 403 == ben.send(f"{TASKS}add/", {**sent, "name": "x"}).status
    assert before == well.session.task("nightly")


def test_a_user_without_permission_sees_nothing(well: Situation, carl: Visitor) -> None:
    well.plan()

    assert [403] * 3 == [carl.open(path).status for path in (TASKS, CHANGE, act_page("pause"))]
    assert 302 == Visitor().open(TASKS).status


def test_the_right_to_change_is_neither_that_to_add_nor_that_to_delete(well: Situation) -> None:
    dora = person("dora", "view_periodictask", "change_periodictask")
    well.plan(timezone="UTC")

    assert 302 == dora.act(CHANGE, queue="x").status
    assert [403, 403] == [dora.open(f"{TASKS}{path}").status for path in ("add/", "nightly/delete/")]


@pytest.fixture
def of_shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A project's own class, whose users change only the rows of the group shop."""
    from django.contrib import admin

    from celery_pgbeat.django.admin import PeriodicTaskAdmin
    from celery_pgbeat.django.models import PeriodicTask

    class OfShop(PeriodicTaskAdmin):
        def has_change_permission(self, request: Any, obj: Any = None) -> bool:
            return super().has_change_permission(request, obj) and (obj is None or obj.group_name == "shop")

    monkeypatch.setattr(admin.site._registry[PeriodicTask], "__class__", OfShop)  # the addresses name the object


@pytest.mark.usefixtures("of_shop")
@pytest.mark.parametrize("word", ["pause", "trigger", "take-over"])
def test_the_right_to_act_is_asked_for_each_row(well: Situation, anna: Visitor, word: str) -> None:
    well.plan(name="theirs", timezone="UTC")
    well.plan(name="ours", timezone="UTC", group_name="shop")
    fields = anna.open(act_page(word, "ours")).fields

    assert 403 == anna.open(act_page(word, "theirs")).status
    assert 403 == anna.send(f"{TASKS}@act/{word}/", {**fields, "key": "theirs"}).status
    assert 200 == anna.open(act_page(word, "ours")).status
    assert not [link for link in anna.open(f"{TASKS}theirs/change/").links if "@act" in link]


@pytest.mark.usefixtures("of_shop")
def test_of_the_rows_that_are_ticked_those_that_the_user_may_not_change_stay(well: Situation, anna: Visitor) -> None:
    well.plan(name="theirs")
    well.plan(name="ours", group_name="shop", managed_by="code:shop")

    form = anna.tick(TASKS, "pause", "theirs", "ours")
    done = anna.send(f"{TASKS}@act/pause/", {**form.fields, "key": ["theirs", "ours"]})

    assert 302 == done.status
    assert (True, False) == (well.session.task("theirs")["enabled"], well.session.task("ours")["enabled"])
    assert "'theirs': You may not change it." in anna.open(TASKS).text
    assert 403 == anna.tick(TASKS, "pause", "theirs").status


def test_a_row_that_a_project_does_not_show_a_user_is_not_acted_on(
    well: Situation, anna: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.contrib import admin

    from celery_pgbeat.django.models import PeriodicTask

    well.plan()
    theirs = PeriodicTask.objects.filter(group_name="shop")
    monkeypatch.setattr(admin.site._registry[PeriodicTask], "get_queryset", lambda _: theirs)

    assert 403 == anna.open(act_page("pause")).status
    assert "No periodic task is named 'missing'" in anna.open(act_page("pause", "missing")).text
