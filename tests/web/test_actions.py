"""Each action by its form, as a browser without script sends it, and what it has done in Postgres."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy.engine import make_url

from celery_pgbeat.api import PgBeat
from celery_pgbeat.web import dashboard
from tests.harness.session import Session
from tests.harness.situations import JOB, NOON, Situation
from tests.harness.transactions import Transaction
from tests.web.visitor import Seen, Visitor

TASK = "/task?name=nightly"


@pytest.fixture
def well(empty_stage: Situation) -> Situation:
    """A beat and a worker live, and there is nothing else."""
    return empty_stage


@pytest.fixture
def beat(shared_database: str) -> Iterator[PgBeat]:
    made = PgBeat(url=shared_database)
    yield made
    made.close()


@pytest.fixture
def visitor(shared_database: str) -> Iterator[Visitor]:
    """Somebody who may look and not change."""
    with Visitor(dashboard(shared_database)) as made:
        yield made


@pytest.fixture
def anna(shared_database: str) -> Iterator[Visitor]:
    """Somebody who may change things, by her name."""
    with Visitor(dashboard(shared_database, may_change=lambda _: "anna")) as made:
        yield made


@pytest.fixture
def somebody(shared_database: str) -> Iterator[Visitor]:
    """Somebody who may change things, and whose name is not known."""
    with Visitor(dashboard(shared_database, may_change=lambda _: True)) as made:
        yield made


def gone_to(seen: Seen, address: str) -> None:
    assert (303, address) == (seen.status, seen.headers.get("location")), seen.text


# --- periodic tasks


def test_a_task_is_paused_with_a_reason_and_an_end(
    well: Situation, anna: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    well.plan()
    caplog.set_level("INFO", "celery_pgbeat.web")

    seen = anna.act("/pause?name=nightly", reason="stocktaking", until="2100-03-05 09:00", zone="Europe/Berlin")

    gone_to(seen, "/task?name=nightly&done=paused")
    row = well.session.task("nightly")
    assert (False, "stocktaking") == (row["enabled"], row["pause_reason"])
    assert NOON.replace(day=5, hour=8) == row["paused_until"]
    assert "It is paused." in anna.open(seen.headers["location"]).text
    assert "Pause 'nightly', by anna" in caplog.text


@pytest.mark.parametrize(
    ("until", "end"), [("2d", NOON + timedelta(days=2)), ("tomorrow", NOON.replace(day=2, hour=0)), ("", None)]
)
def test_the_end_of_a_pause_counts_by_the_clock_of_the_database(
    well: Situation, anna: Visitor, until: str, end: object
) -> None:
    well.plan()

    anna.act("/pause?name=nightly", until=until)

    assert end == well.session.task("nightly")["paused_until"]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"until": "next year"}, "'next year' is not an instant: write ISO 8601"),
        ({"until": "2100-03-02", "zone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"until": "2099-01-01"}, "past"),
        ({"reason": "x" * 1001}, "1000"),
        ({"reason": "a\0b"}, "NUL"),
    ],
)
def test_what_is_refused_stands_beside_the_form_which_keeps_what_was_typed(
    well: Situation, anna: Visitor, typed: dict[str, str], says: str
) -> None:
    well.plan()
    typed = {"reason": 'stock\u00e4"<taking>', **typed}

    seen = anna.act("/pause?name=nightly", **typed)

    assert 422 == seen.status
    assert says in seen.text
    assert {name: value.replace("\0", "\ufffd") for name, value in typed.items() if name != "zone"}.items() <= {
        name: value.replace("\0", "\ufffd") for name, value in seen.fields.items()
    }.items()
    assert well.session.task("nightly")["enabled"]
    assert 303 == anna.send("/pause?name=nightly", {**seen.fields, "until": "", "reason": "ok", "step": "do"}).status


def test_a_paused_task_is_resumed_after_a_look_at_who_paused_it_and_why(
    well: Situation, anna: Visitor, beat: PgBeat
) -> None:
    well.plan()
    beat.pause("nightly", "stocktaking")

    assert "It is paused by postgres: stocktaking" in anna.open("/resume?name=nightly").text
    gone_to(anna.act("/resume?name=nightly"), "/task?name=nightly&done=resumed")

    assert well.session.task("nightly")["enabled"]
    assert "It is not paused by name." in anna.open("/resume?name=nightly").text


def test_a_task_is_triggered_with_its_own_arguments_or_with_others(well: Situation, anna: Visitor) -> None:
    well.plan(args="[1]")

    first = anna.act("/trigger?name=nightly", kwargs="")
    second = anna.act("/trigger?name=nightly", args='[7, \n"ä"]', kwargs='{"month": "2026-11"}', force="on")

    jobs = well.session.rows("select id, message, origin from pgbeat.active_job order by created_at, id")
    assert {f"/job?id={job['id']}&done=triggered" for job in jobs} == {
        first.headers["location"],
        second.headers["location"],
    }
    assert {"manual"} == {job["origin"] for job in jobs}
    told = sorted(json.dumps([job["message"].get("args"), job["message"].get("kwargs")]) for job in jobs)
    assert ["[[1], {}]", '[[7, "\\u00e4"], {"month": "2026-11"}]'] == told


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"args": "[1"}, "This is not JSON: Expecting ',' delimiter, at line 1, column 3."),
        ({"args": '{"a": 1}'}, "This is JSON, but not an array"),
        ({"kwargs": "[]"}, "This is JSON, but not an object"),
        ({"args": "[NaN]"}, "JSON"),
        ({"args": "[" * 20_000}, "nested too deeply"),
        ({"args": json.dumps(["x" * 70_000])}, "70006 bytes together, more than 65536"),
    ],
)
def test_arguments_that_are_no_json_are_refused_and_kept(
    well: Situation, anna: Visitor, typed: dict[str, str], says: str
) -> None:
    well.plan()

    seen = anna.act("/trigger?name=nightly", **typed)

    assert 422 == seen.status
    assert says in seen.text
    assert typed.items() <= seen.fields.items()
    assert 0 == well.session.value("select count(*) from pgbeat.active_job")


def test_a_job_in_the_way_is_named_and_can_be_overruled(well: Situation, anna: Visitor) -> None:
    well.plan()
    well.job("running")

    refused = anna.act("/trigger?name=nightly")

    assert 422 == refused.status
    assert str(JOB) in refused.text
    assert 303 == anna.send("/trigger?name=nightly", {**refused.fields, "force": "on", "step": "do"}).status
    assert 2 == well.session.value("select count(*) from pgbeat.active_job")


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
    assert "" == anna.open("/check-schedule", name="nightly", schedule=" ").text
    assert "No periodic task is named 'unknown'" in anna.open("/check-schedule", name="unknown", schedule="@daily").text
    assert "0 * * * *" == well.session.task("nightly")["schedule"]


def test_a_change_by_somebody_else_in_between_is_not_overwritten_unseen(
    well: Situation, anna: Visitor, beat: PgBeat
) -> None:
    well.plan()
    form = anna.open("/edit?name=nightly")
    beat.update("nightly", schedule="0 7 * * *")

    seen = anna.send("/edit?name=nightly", {**form.fields, "schedule": "0 8 * * *", "step": "do"})

    assert 422 == seen.status
    assert "Another person has changed this task: its schedule is now '0 7 * * *'." in seen.text
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

    assert "Code declares this task (code:shop): change its schedule there." in seen.text
    assert {} == seen.fields
    assert 422 == sent.status
    assert "0 * * * *" == well.session.task("nightly")["schedule"]


# --- backfills


def test_a_backfill_is_shown_first_and_then_started_as_it_was_shown(well: Situation, anna: Visitor) -> None:
    well.plan(schedule="0 3 * * *", timezone="UTC")
    typed = {"since": "2100-02-01", "until": "2100-02-10", "max_active": "2"}

    form = anna.open("/backfill?name=nightly")
    look = anna.act("/backfill?name=nightly", step="look", **typed)

    assert "Start the backfill" not in form.text
    assert "10 jobs would be sent of 10 occurrences" in look.text
    assert 0 == well.session.value("select count(*) from pgbeat.backfill")
    gone_to(anna.send("/backfill?name=nightly", {**look.fields, "step": "do"}), "/task?name=nightly&done=backfilled")
    row = well.session.row("select * from pgbeat.backfill")
    assert ("nightly", "missing", 2, "running") == (row["periodic_task"], row["mode"], row["max_active"], row["state"])
    assert row["since"] == NOON.replace(month=2, day=1, hour=0)


def test_a_backfill_that_nobody_has_looked_at_does_not_begin(well: Situation, anna: Visitor) -> None:
    well.plan(schedule="0 3 * * *", timezone="UTC")
    typed = {"since": "2100-02-01", "until": "2100-02-10"}
    look = anna.act("/backfill?name=nightly", step="look", **typed)

    unseen = anna.act("/backfill?name=nightly", **typed)
    other = anna.send("/backfill?name=nightly", {**look.fields, "mode": "all", "step": "do"})

    assert [422, 422] == [unseen.status, other.status]
    assert "Look first at what would be sent" in unseen.text
    assert 0 == well.session.value("select count(*) from pgbeat.backfill")


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"since": "", "until": "2100-02-10"}, "This is needed."),
        ({"since": "soon", "until": "2100-02-10"}, "'soon' is neither a day nor an instant"),
        ({"since": "2100-02-01", "until": "2100-04-01"}, "still to come"),
        ({"since": "2100-02-10", "until": "2100-02-01"}, "later than until"),
        ({"since": "2100-02-01", "until": "2100-02-10", "mode": "some"}, "some"),
        ({"since": "2100-02-01", "until": "2100-02-10", "max_active": "2000"}, "1000"),
        ({"since": "2100-02-01", "until": "2100-02-10", "max_active": "-1"}, "not a whole number"),
    ],
)
def test_wrong_terms_of_a_backfill_are_refused(
    well: Situation, anna: Visitor, typed: dict[str, str], says: str
) -> None:
    well.plan(schedule="0 3 * * *", timezone="UTC")

    seen = anna.act("/backfill?name=nightly", step="look", **typed)

    assert (422, True) == (seen.status, says in seen.text), seen.text


def test_a_backfill_is_seen_on_the_page_of_its_task_and_cancelled_there(
    well: Situation, anna: Visitor, beat: PgBeat
) -> None:
    well.plan(schedule="0 3 * * *", timezone="UTC")
    made = beat.backfill("nightly", NOON.date() - timedelta(days=9), NOON.date() - timedelta(days=1))

    address = anna.open(TASK).link("/cancel-backfill")
    gone_to(anna.act(address), "/task?name=nightly&done=backfill-cancelled")

    assert "cancelled" == beat.backfills(id=made.id)[0].state
    assert "It is cancelled already." in anna.open(address).text


# --- jobs


def test_a_job_that_waits_is_cancelled_and_one_that_runs_is_refused(well: Situation, anna: Visitor) -> None:
    well.plan()
    well.job("pending")

    address = anna.open(f"/job?id={JOB}").link("/cancel-job")
    gone_to(anna.act(address, reason="not today"), f"/job?id={JOB}&done=cancelled")
    well.job("running", id="00000000-0000-0000-0000-000000000009")
    refused = anna.act("/cancel-job?id=00000000-0000-0000-0000-000000000009")

    row = well.session.row("select state, error from pgbeat.job where id = %s", str(JOB))
    assert ("revoked", "cancelled by anna: not today") == (row["state"], row["error"])
    assert 422 == refused.status
    assert "revoke" in refused.text


def test_a_failed_job_that_waits_for_a_decision_is_run_again_or_given_up(well: Situation, anna: Visitor) -> None:
    well.plan()
    other = "00000000-0000-0000-0000-000000000009"
    for id in (str(JOB), other):
        well.job("error", id=id, exclusive=False, on_error="ask", error="no such file", busy_until=NOON)

    seen = anna.open(f"/job?id={JOB}")
    gone_to(anna.act(seen.link("/retry-job"), force="on"), f"/job?id={JOB}&done=retried")
    gone_to(anna.act(f"/fail-job?id={other}", reason="gone for good"), f"/job?id={other}&done=failed")

    states = {str(row["id"]): row for row in well.session.rows("select id, state, error from pgbeat.job")}
    assert "pending" == states[str(JOB)]["state"]
    assert ("failed", True) == (states[other]["state"], "gone for good" in states[other]["error"])


def test_a_job_that_has_failed_is_submitted_again_as_a_new_one(well: Situation, anna: Visitor) -> None:
    well.plan()
    well.final("failed", id=str(JOB))

    seen = anna.act(anna.open(f"/job?id={JOB}").link("/retry-job"))

    made = well.session.row("select id, origin from pgbeat.active_job")
    gone_to(seen, f"/job?id={made['id']}&done=retried")


@pytest.mark.parametrize("action", ["cancel-job", "retry-job", "fail-job", "pick-up", "finish", "release"])
@pytest.mark.parametrize("id", ["00000000-0000-0000-0000-000000000009", "x", ""])
def test_a_job_that_is_not_there_is_said_to_be_so(well: Situation, anna: Visitor, action: str, id: str) -> None:
    assert 404 == anna.open(f"/{action}?id={id}").status


# --- work for people


def human_job(beat: PgBeat, well: Situation, target: list[str] | None = None) -> str:
    well.task("sign", schedule=None, kind="human", task=None, target=target)
    return str(beat.trigger("sign"))


def owner_and_state(session: Session, id: str) -> tuple[str | None, str]:
    row = session.row("select owner, state from pgbeat.job where id = %s", id)
    return row["owner"], row["state"]


def test_work_is_picked_up_given_back_and_finished_in_the_name_of_the_person(
    well: Situation, anna: Visitor, beat: PgBeat
) -> None:
    id = human_job(beat, well, ["finance"])

    assert "It is for finance." in anna.open(f"/pick-up?id={id}").text
    assert "owner" not in anna.open(f"/pick-up?id={id}").fields
    gone_to(anna.act(anna.open("/work").link("/pick-up"), owner="ben"), "/work?done=picked-up")
    assert ("anna", "running") == owner_and_state(well.session, id)

    gone_to(anna.act(anna.open("/work").link("/release")), "/work?done=released")
    assert (None, "created") == owner_and_state(well.session, id)

    anna.act(f"/pick-up?id={id}")
    gone_to(anna.act(f"/finish?id={id}", outcome="failed", note="line 1\nline 2"), "/work?done=finished")
    row = well.session.row("select owner, state, note from pgbeat.job where id = %s", id)
    assert ("anna", "failed", "line 1\nline 2") == (row["owner"], row["state"], row["note"])


def test_somebody_without_a_name_says_who_it_is_for(well: Situation, somebody: Visitor, beat: PgBeat) -> None:
    id = human_job(beat, well)

    assert (422, True) == ((seen := somebody.act(f"/pick-up?id={id}")).status, "This is needed." in seen.text)
    assert 303 == somebody.act(f"/pick-up?id={id}", owner="ben").status

    assert ("ben", "running") == owner_and_state(well.session, id)


def test_work_that_somebody_else_has_is_refused_with_the_name(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    id = human_job(beat, well)
    beat.pick_up(id, "ben")

    seen = anna.act(f"/pick-up?id={id}")

    assert (422, True) == (seen.status, "ben" in seen.text)


# --- groups


def test_a_group_is_limited_paused_and_resumed(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    well.task(group_name="re ports/ä")
    page = anna.open("/groups")

    gone_to(anna.act(page.link("/limit-group"), max_active="3"), "/groups?q=re+ports%2F%C3%A4&done=limited")
    anna.act(page.link("/pause-group"), reason="stocktaking")
    (paused,) = beat.groups()
    assert "stocktaking" in anna.open(anna.open("/groups").link("/resume-group")).text
    anna.act(anna.open("/groups").link("/resume-group"))
    anna.act(page.link("/limit-group"), max_active="")
    (resumed,) = beat.groups()

    assert (3, True, "stocktaking") == (paused.max_active, paused.paused, paused.pause_reason)
    assert (None, False) == (resumed.max_active, resumed.paused)


@pytest.mark.parametrize("limit", ["0", "-1", "many", "1" * 30, "٣"])
def test_a_wrong_limit_is_refused(well: Situation, anna: Visitor, limit: str) -> None:
    well.task(group_name="reports")

    seen = anna.act("/limit-group?name=reports", max_active=limit)

    assert (422, limit) == (seen.status, seen.fields["max_active"])


def test_what_no_failed_job_has_paused_cannot_be_retried(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    well.task(group_name="reports")
    beat.pause_group("reports")

    seen = anna.act("/resume-group?name=reports", retry="on")

    assert 422 == seen.status
    assert beat.groups()[0].paused


# --- who, and when it cannot be done


def test_postgres_is_told_who_changes_something_until_the_transaction_ends(
    well: Situation, anna: Visitor, somebody: Visitor
) -> None:
    well.plan()
    well.session.rows("create table public.said (who text, patience text)")
    well.session.rows(
        "create function public.say() returns trigger language plpgsql as $$ begin "
        "insert into public.said values (current_setting('pgbeat.who', true), current_setting('lock_timeout')); "
        "return null; end $$"
    )
    well.session.rows(
        "create trigger say after update on pgbeat.periodic_task for each row "
        "when (old.enabled <> new.enabled) execute function public.say()"
    )

    anna.act("/pause?name=nightly")
    somebody.act("/resume?name=nightly")
    well.session.rows("update pgbeat.periodic_task set enabled = false")

    said = well.session.rows("select * from public.said")
    well.session.rows("drop trigger say on pgbeat.periodic_task")
    well.session.rows("drop table public.said")
    assert ["anna", "", None] == [row["who"] for row in said]
    assert ["3s", "3s", "0"] == [row["patience"] for row in said]


def test_a_row_that_a_transaction_holds_is_left_alone_after_three_seconds(
    well: Situation, anna: Visitor, shared_database: str
) -> None:
    well.plan()
    other = Transaction(shared_database)
    other.execute("select 1 from pgbeat.periodic_task for update")
    seen = anna.act("/pause?name=nightly", reason="stocktaking")
    other.rollback()

    assert (503, "stocktaking") == (seen.status, seen.fields["reason"])
    assert "Another transaction holds what you want to change. Nothing was changed: send again." in seen.text
    assert 303 == anna.send("/pause?name=nightly", {**seen.fields, "step": "do"}).status


def test_while_the_database_is_away_the_form_keeps_what_was_typed(well: Situation, shared_database: str) -> None:
    well.plan()
    app = dashboard(shared_database, may_change=lambda _: "anna")
    visitor = Visitor(app)
    form = visitor.open("/pause?name=nightly")
    away = make_url(shared_database).set(port=1)
    for database in (app._site._reader.database, app._site._writer.beat.database):
        database.engine.dispose()
        database.engine = type(database)(away.render_as_string(hide_password=False), "pgbeat").engine

    seen = visitor.send("/pause?name=nightly", {**form.fields, "reason": "stocktaking", "step": "do"})

    assert (503, "stocktaking") == (seen.status, seen.fields["reason"])
    assert "The database does not answer." in seen.text


def test_the_name_of_the_person_is_in_every_page_and_what_may_be_done_has_a_link(
    well: Situation, anna: Visitor, visitor: Visitor
) -> None:
    well.plan()

    assert "you may change things, as anna" in anna.open("/tasks").text
    assert {"Trigger…", "Pause…", "Backfill…"} <= set(anna.open(TASK).text.split())
    assert "read-only" in visitor.open(TASK).text
    assert "Pause…" not in visitor.open(TASK).text


async def _of_session(request) -> str | bool:  # type: ignore[no-untyped-def]
    return str(request.headers.get("x-user", "")) or False


def test_the_function_may_be_asynchronous(well: Situation, shared_database: str) -> None:
    well.plan()
    visitor = Visitor(dashboard(shared_database, may_change=_of_session))

    assert 403 == visitor.open("/pause?name=nightly").status
    visitor.client.headers["X-User"] = "ben"
    assert 303 == visitor.act("/pause?name=nightly").status
