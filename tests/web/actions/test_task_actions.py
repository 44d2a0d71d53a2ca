"""Actions on a periodic task by their forms, as a browser without script sends them."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from celery_pgbeat.api import PgBeat
from tests.harness.situations import JOB, NOON, Situation
from tests.harness.visitor import Visitor, gone_to

TASK = "/task?name=nightly"


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
def test_a_refusal_is_shown_beside_the_form_which_keeps_its_input(
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
    assert "The task itself is not paused." in anna.open("/resume?name=nightly").text


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


def test_a_backfill_that_was_not_shown_first_does_not_begin(well: Situation, anna: Visitor) -> None:
    well.plan(schedule="0 3 * * *", timezone="UTC")
    typed = {"since": "2100-02-01", "until": "2100-02-10"}
    look = anna.act("/backfill?name=nightly", step="look", **typed)

    unseen = anna.act("/backfill?name=nightly", **typed)
    other = anna.send("/backfill?name=nightly", {**look.fields, "mode": "all", "step": "do"})

    assert [422, 422] == [unseen.status, other.status]
    assert "First show what would be sent" in unseen.text
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
