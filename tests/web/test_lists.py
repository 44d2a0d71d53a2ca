"""Groups, work for people, nodes and problems: what each shows, and what it says when there is nothing."""

from __future__ import annotations

import pytest

from celery_pgbeat.api import PgBeat
from tests.harness.situations import BEAT, JOB, NOON, Situation, ago
from tests.harness.visitor import Visitor


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/groups", "No groups Tasks with the same group_name are paused and limited together"),
        ("/work", "Nothing to do A periodic task with kind = 'human' waits here until a person picks it up."),
        ("/problems", "Nothing needs you"),
        ("/jobs", "No job Beats write one for each occurrence that they decide."),
        ("/tasks", "No periodic tasks yet"),
    ],
)
def test_an_empty_page_helps(well: Situation, visitor: Visitor, path: str, says: str) -> None:
    assert says in visitor.open(path).text


def test_a_group_comes_with_its_rules_its_jobs_and_why_it_is_paused(
    well: Situation, visitor: Visitor, beat: PgBeat
) -> None:
    well.task(group_name="reports")
    beat.define_group("reports", max_active=2, rate_limit="100/m", pause_on_failure=True)
    beat.define_group("invoices", ordered=True)
    beat.pause_group("reports", "stocktaking until Monday")
    well.job("running", group_name="reports", slot=1)

    seen = visitor.open("/groups")

    assert (
        "reports ‖ paused stocktaking until Monday 2 jobs at a time 100/m a failure pauses it 1 1 of 2 0" in seen.text
    )
    assert "invoices ✓ active in order, one at a time 0 0 0" in seen.text
    assert "/tasks?group=reports" in seen.links
    assert "invoices" not in visitor.open("/groups", q="rep").text
    assert "No group matches" in visitor.open("/groups", q="xyz").text


def test_work_is_listed_with_its_owner_and_when_it_is_due(well: Situation, visitor: Visitor, beat: PgBeat) -> None:
    for name, target in (("sign", ["finance", "boss"]), ("call", None)):
        beat.schedule(name, kind="human", subject=f"{name} it", target=target, due_in="4h")
        beat.trigger(name)
    well.session.rows("select pgbeat.pick_up(id, 'ben') from pgbeat.active_job where periodic_task = 'call'")

    seen = visitor.open("/work")

    assert "16:00:00 sign sign it finance, boss not taken 12:00:00" in seen.text
    assert "16:00:00 call call it anybody ben 12:00:00" in seen.text
    assert "call it" not in visitor.open("/work", which="free").text
    assert "sign it" not in visitor.open("/work", which="taken").text
    assert "None of that kind" in visitor.open("/work", which="overdue").text
    well.clock.stand_at(NOON.replace(hour=17))
    assert "✗ 16:00:00 1h00m ago" in visitor.open("/work", which="overdue").text


def test_nodes_are_alive_or_silent_and_what_is_odd_is_said(situation: Situation, visitor: Visitor) -> None:
    situation.beat(seen_at=ago(hours=3))
    situation.worker(tracking=False)

    text = visitor.open("/nodes").text

    assert "No beat has been seen since 09:00:00 . Nothing is sent until one starts: celery -A your_app beat" in text
    assert "1 worker without our tracker. No worker reports what becomes of their jobs." in text
    assert "beat web:1 ✗ silent 3h00m ago" in text
    assert "worker web:1 ✓ alive 0 ms ago" in text


def test_in_shadow_no_page_says_that_jobs_wait_for_workers(situation: Situation, visitor: Visitor) -> None:
    situation.beat()
    situation.session.rows("update pgbeat.node set mode = 'shadow'")

    front, nodes = visitor.open("/").text, visitor.open("/nodes").text

    assert "In shadow: nothing is sent. The beats record what they would send. 1 beat and 0 workers is alive." in front
    assert "In shadow: nothing is sent. The beats record what they would send." in nodes
    assert "No worker is running" not in front + nodes


def test_the_reason_of_a_paused_group_names_times_and_jobs_as_the_other_sentences(
    well: Situation, visitor: Visitor
) -> None:
    reason = f"job {JOB} of 'nightly' failed at 2100-03-01 11:30:00Z"
    well.plan(group_name="reports")
    well.session.rows("select pgbeat.pause_group('reports', reason => %s)", reason)

    for page in ("/groups", "/problems"):
        seen = visitor.open(page)
        assert "job 00000000 of 'nightly' failed at 11:30:00" in seen.text
        assert f"/job?id={JOB}" in seen.links


def test_mixed_versions_are_reported(well: Situation, visitor: Visitor) -> None:
    well.session.rows("update pgbeat.node set version = '2' where id = %s", BEAT)

    assert "Mixed versions: 1, 2." in visitor.open("/nodes").text


def test_problems_list_what_needs_a_person_the_most_serious_first(
    well: Situation, visitor: Visitor, beat: PgBeat
) -> None:
    well.plan(ago(minutes=10))
    well.task("report", problem="the zone Mars/Olympus_Mons is unknown")
    well.job(
        "error", periodic_task="asks", on_error="ask", busy_until=NOON, check_at="infinity", error="ValueError: no"
    )
    well.session.rows(
        "insert into pgbeat.alert (kind, name, due_at, reason, raised_at, raised_by) "
        "values ('dead_beat', %s, pgbeat.now(), 'no heartbeat', pgbeat.now(), 'x')",
        BEAT,
    )
    well.session.rows(
        "insert into pgbeat.refused_declaration (name, app, hash, reason, seen_at) "
        "values ('wrong', 'code:shop', 'x', 'hour 25 is not in 0-23', pgbeat.now())"
    )
    beat.limit_group("reports", 2)
    beat.pause_group("reports", "stocktaking")

    text = visitor.open("/problems").text

    parts = [
        "Overdue 1 ✗ nightly 10m00s late due 11:50:00",
        "Failed, and waiting for a decision 1 ? asks look ValueError: no",
        "Cannot be planned 1",
        "report the zone Mars/Olympus_Mons is unknown",
        "Refused declarations in code 1 ✗ wrong code:shop, 12:00:00 hour 25 is not in 0-23",
        "Alerts 1 ✗ web-1:4711 dead_beat",
        "Paused groups 1 ‖ reports 0 tasks stocktaking",
    ]
    places = [text.find(part) for part in parts]
    assert sorted(places) == places, text
    assert -1 not in places, [part for part in parts if part not in text]


def test_of_very_many_overdue_runs_the_first_are_shown_without_reasons(well: Situation, visitor: Visitor) -> None:
    well.session.rows("set session_replication_role = replica")
    well.session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at, planned_revision, revision) "
        "select 'row-' || n, 'app.probe', '@hourly', pgbeat.now() - interval '1 hour' - n * interval '1 s', 1, 1 "
        "from generate_series(1, 1200) n"
    )

    assert "Overdue 1,000+ ✗ row-1200 1h20m late" in visitor.open("/problems").text
    front = visitor.open("/").text
    assert "1,000 or more runs are overdue. The worst by 1h20m." in front
    assert "too many runs are overdue to show the reason of each" in front


def test_long_lists_end_and_say_so(well: Situation, visitor: Visitor) -> None:
    for number in range(60):
        well.task(f"row-{number:02}", problem="no zone")

    seen = visitor.open("/problems")

    assert "Cannot be planned 50+" in seen.text
    assert "row-50" not in seen.text
