"""Actions on jobs, work for people and groups by their forms, as a browser without script sends them."""

from __future__ import annotations

import pytest

from celery_pgbeat.api import PgBeat
from tests.harness.session import Session
from tests.harness.situations import JOB, NOON, Situation
from tests.harness.visitor import Visitor, gone_to

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


def test_a_job_whose_message_is_lost_is_sent_again_or_cancelled(well: Situation, anna: Visitor) -> None:
    well.plan()
    well.job("sent")
    page = anna.open(f"/job?id={JOB}")

    gone_to(anna.act(page.link("/resend-job")), f"/job?id={JOB}&done=resent")
    state = well.session.value("select state from pgbeat.active_job")
    who = well.session.row("select who, action from pgbeat.change where job = %s", str(JOB))
    refused = anna.act(f"/resend-job?id={JOB}")
    gone_to(anna.act(page.link("/cancel-job"), reason="purged"), f"/job?id={JOB}&done=cancelled")

    assert ("pending", {"who": "anna", "action": "resent"}) == (state, dict(who))
    assert (422, True) == (refused.status, "is to be sent: a beat sends it" in refused.text)


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


@pytest.mark.parametrize(
    "action", ["cancel-job", "resend-job", "retry-job", "fail-job", "pick-up", "finish", "release"]
)
@pytest.mark.parametrize("id", ["00000000-0000-0000-0000-000000000009", "x", ""])
def test_an_unknown_job_is_reported_as_unknown(well: Situation, anna: Visitor, action: str, id: str) -> None:
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


def test_a_person_without_a_name_says_who_it_is_for(well: Situation, nameless: Visitor, beat: PgBeat) -> None:
    id = human_job(beat, well)

    assert (422, True) == ((seen := nameless.act(f"/pick-up?id={id}")).status, "This is needed." in seen.text)
    assert 303 == nameless.act(f"/pick-up?id={id}", owner="ben").status

    assert ("ben", "running") == owner_and_state(well.session, id)


def test_work_that_another_person_has_is_refused_with_the_name(well: Situation, anna: Visitor, beat: PgBeat) -> None:
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


def test_a_form_without_the_limit_leaves_it(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    beat.limit_group("reports", 3)
    fields = anna.open("/limit-group?name=reports").fields

    seen = anna.send("/limit-group?name=reports", {"token": fields["token"], "step": "do"})

    assert 422 == seen.status
    assert [3] == [group.max_active for group in beat.groups()]


@pytest.mark.parametrize("limit", ["0", "-1", "many", "1" * 30, "٣"])
def test_a_wrong_limit_is_refused(well: Situation, anna: Visitor, limit: str) -> None:
    well.task(group_name="reports")

    seen = anna.act("/limit-group?name=reports", max_active=limit)

    assert (422, limit) == (seen.status, seen.fields["max_active"])


def test_a_group_that_no_failed_job_has_paused_cannot_be_retried(well: Situation, anna: Visitor, beat: PgBeat) -> None:
    well.task(group_name="reports")
    beat.pause_group("reports")

    seen = anna.act("/resume-group?name=reports", retry="on")

    assert 422 == seen.status
    assert beat.groups()[0].paused
