"""The admin of jobs, groups and changes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.django.visitor import Visitor, person
from tests.harness.situations import JOB, NOON, Situation

JOBS, GROUPS, CHANGES = (f"/admin/pgbeat/{name}/" for name in ("job", "taskgroup", "change"))


def test_jobs_are_listed_the_latest_first_with_their_reasons(well: Situation, ben: Visitor) -> None:
    well.plan()
    well.job("running")
    well.final("skipped", reason="overlap", at=NOON - timedelta(hours=2), group_name="reports")
    well.final("failed", error="boom <b>", at=NOON - timedelta(hours=3))

    seen = ben.open(JOBS)

    assert seen.text.index("running") < seen.text.index("overlap") < seen.text.index("boom <b>")
    assert "boom <b>" not in ben.open(JOBS, state="running").text
    assert "overlap" in ben.open(JOBS, reason="overlap").text
    assert "boom <b>" not in ben.open(JOBS, group="reports").text
    assert "0 shown." in ben.open(JOBS, name="another").text


def test_a_page_of_jobs_names_the_last_one(well: Situation, ben: Visitor) -> None:
    for number in range(120):
        well.final("succeeded", at=NOON - timedelta(minutes=number))
    shown, address = [], JOBS

    while address:
        seen = ben.open(address)
        shown.append(seen.text.count("succeeded"))
        address = next((JOBS + str(given["href"]) for _, given in seen.tags if given.get("rel") == "next"), "")

    assert 3 == len(shown)
    assert shown[0] == shown[1] > shown[2]


def test_a_job_is_shown_and_not_edited(well: Situation, anna: Visitor) -> None:
    well.plan()
    well.job("running")

    seen = anna.open(f"{JOBS}{JOB}/change/")

    assert 200 == seen.status
    assert "_save" not in seen.fields
    assert 403 == anna.open(f"{JOBS}add/").status
    assert 403 == anna.open(f"{JOBS}{JOB}/delete/").status


def test_a_failed_job_is_run_again_and_one_that_was_not_sent_is_cancelled(well: Situation, anna: Visitor) -> None:
    well.plan()
    well.job("pending")
    failed = "00000000-0000-0000-0000-000000000009"
    well.final("failed", id=failed, periodic_task="other")
    well.session.insert("other")

    cancelled = anna.act(f"{JOBS}@act/cancel-job/?key={JOB}", reason="not today")
    told = anna.open(cancelled.headers["location"]).text
    again = anna.act(f"{JOBS}@act/retry-job/?key={failed}")

    assert f"'{JOB}': It is cancelled." in told
    assert f"'{failed}': It runs again." in anna.open(again.headers["location"]).text
    who = well.session.rows("select who from pgbeat.change where action in ('cancelled', 'retried')")
    assert [{"who": "anna"}] * 2 == who


def test_a_job_whose_message_is_lost_is_sent_again(well: Situation, anna: Visitor) -> None:
    well.plan()
    well.job("sent")

    sent = anna.act(f"{JOBS}@act/resend-job/?key={JOB}")

    assert f"'{JOB}': A beat sends it again." in anna.open(sent.headers["location"]).text
    assert "pending" == well.session.value("select state from pgbeat.active_job")


def test_a_group_is_limited_paused_and_resumed(well: Situation, anna: Visitor) -> None:
    well.plan(group_name="reports")

    anna.act(f"{GROUPS}@act/limit-group/?key=reports", max_active="2")
    anna.act(f"{GROUPS}@act/pause-group/?key=reports", reason="stocktaking")

    row = well.session.row("select * from pgbeat.task_group")
    assert (2, True, "stocktaking") == (row["max_active"], row["paused"], row["pause_reason"])
    seen = anna.open(GROUPS)
    assert "stocktaking" in seen.text
    token = anna.open(f"{GROUPS}@act/limit-group/?key=reports").fields["csrfmiddlewaretoken"]
    unsent = anna.send(f"{GROUPS}@act/limit-group/", {"csrfmiddlewaretoken": token, "key": "reports"})
    assert (422, 2) == (unsent.status, well.session.value("select max_active from pgbeat.task_group"))
    anna.act(f"{GROUPS}@act/resume-group/?key=reports")
    assert not well.session.value("select paused from pgbeat.task_group")
    assert 422 == anna.act(f"{GROUPS}@act/limit-group/?key=reports", max_active="many").status


def test_changes_are_listed(well: Situation, ben: Visitor) -> None:
    well.plan()
    well.session.rows("select pgbeat.pause('nightly', 'stocktaking')")

    seen = ben.open(CHANGES)
    assert "paused" in seen.text
    assert "stocktaking" in seen.text
    assert "0 shown." in ben.open(CHANGES, name="another").text
    assert "0 shown." in ben.open(CHANGES, before="1").text
    assert 200 == ben.open(CHANGES, before="x" * 300).status


def test_arguments_of_a_task_that_became_sensitive_are_in_no_list_of_changes(
    well: Situation, anna: Visitor, ben: Visitor
) -> None:
    well.plan(args='["patient 4711"]', timezone="UTC")
    well.session.rows("""update pgbeat.periodic_task set args = '["patient 4712"]'""")
    assert "patient 471" in ben.open(CHANGES).text

    anna.act("/admin/pgbeat/periodictask/nightly/change/", sensitive="on")
    well.session.rows("select pgbeat.revert('nightly', 2)")

    assert well.session.task("nightly")["sensitive"]
    for page in (CHANGES, "/admin/pgbeat/periodictask/nightly/change/"):
        assert "patient 471" not in ben.open(page).html


def test_the_admin_names_the_section_after_the_package(well: Situation, anna: Visitor) -> None:
    shown = anna.open("/admin/").text

    assert ("celery-pgbeat" in shown, 1) == (True, shown.count("Periodic tasks"))  # as a section: django-celery-beat's


@pytest.mark.parametrize("path", [JOBS, GROUPS, CHANGES])
def test_each_list_has_a_right_of_its_own(well: Situation, path: str) -> None:
    dora = person("dora", "view_periodictask", "change_periodictask")

    assert 403 == dora.open(path).status


@pytest.mark.parametrize("path", [f"{JOBS}@act/cancel-job/?key={JOB}", f"{GROUPS}@act/pause-group/?key=reports"])
def test_the_right_to_look_is_not_the_right_to_act(well: Situation, ben: Visitor, path: str) -> None:
    assert 403 == ben.open(path).status
