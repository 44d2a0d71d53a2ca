"""The view status: how each periodic task stands, one row each."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.harness.situations import JOB, NOON, Situation, ago

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
ROWS = 2_000  # periodic tasks of the plan test
ALSO_PLANNED: dict[str, Any] = {"next_run_at": NOON + HOUR}


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        (ALSO_PLANNED, "waiting"),
        ({"next_run_at": NOON}, "due"),
        ({"next_run_at": ago(seconds=32)}, "due"),
        ({"next_run_at": ago(seconds=33)}, "overdue"),
        ({"next_run_at": ago(seconds=33), "mark_lease": "30 s"}, "due"),
        ({}, "to be planned"),
        ({"schedule": None}, "on demand"),
        ({"next_run_at": None}, "finished"),
        ({"problem": "no such zone"}, "problem"),
        ({"enabled": False}, "paused"),
        ({"enabled": False, "paused_until": NOON + HOUR}, "paused until 2100-03-01 13:00:00Z"),
        ({"enabled": False, "problem": "no such zone"}, "paused"),
    ],
)
def test_a_row_without_a_job_says_in_words_what_it_waits_for(
    situation: Situation, columns: dict[str, Any], state: str
) -> None:
    situation.task(**columns)

    assert state == situation.status()["state"]


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({"state": "pending"}, "to be sent"),
        ({"state": "sent"}, "queued"),
        ({"state": "running"}, "running"),
        ({"state": "running", "busy_until": ago(seconds=1)}, "silent"),
        ({"state": "retrying"}, "retrying"),
        ({"state": "buffered"}, "waiting for its turn"),
        ({"state": "buffered", "wait_reason": "slot", "group_name": "g"}, "waiting for a place in its group"),
    ],
)
def test_a_row_with_a_job_says_what_the_job_does(situation: Situation, columns: dict[str, Any], state: str) -> None:
    situation.plan()
    situation.job(**columns)

    assert (state, columns["state"]) == (situation.status()["state"], situation.status()["last_state"])


def test_of_several_jobs_the_one_that_runs_counts(situation: Situation) -> None:
    situation.plan(overlap="buffer_one")
    situation.job("buffered", ago(minutes=20), id="00000000-0000-0000-0000-000000000002")
    situation.job("running", max_run_time="1 hour")

    assert "running" == situation.status()["state"]


def test_a_row_whose_group_is_paused_says_so(situation: Situation) -> None:
    situation.plan(group_name="g")
    situation.session.rows("select pgbeat.pause_group('g')")

    assert ("group paused", None) == (situation.status()["state"], situation.status()["lateness"])


def test_a_row_that_is_paused_while_its_job_runs_says_both(situation: Situation) -> None:
    situation.task(enabled=False)
    situation.job("running")

    assert "running, paused" == situation.status()["state"]


def test_a_run_that_hangs_without_max_run_time_differs_from_one_that_is_just_long(situation: Situation) -> None:
    situation.plan()
    situation.job("running", ago(hours=2))
    assert "running" == situation.status()["state"]

    situation.final("skipped", reason="overlap", blocked_by=str(JOB))

    assert "running past its next run without max_run_time" == situation.status()["state"]
    situation.session.rows("update pgbeat.active_job set max_run_time = '3 hours'")
    assert "running" == situation.status()["state"]


def test_lateness_is_how_long_a_run_has_been_due(situation: Situation) -> None:
    situation.task("late", next_run_at=ago(minutes=2))
    situation.task("waiting", **ALSO_PLANNED)
    situation.task("paused", next_run_at=ago(minutes=2), enabled=False)

    late = {name: situation.status(name)["lateness"] for name in ("late", "waiting", "paused")}

    assert {"late": timedelta(minutes=2), "waiting": None, "paused": None} == late


def test_the_last_job_is_the_latest_whether_active_or_final(situation: Situation) -> None:
    def last() -> tuple[Any, Any]:
        shown = situation.status()
        return shown["last_state"], shown["last_scheduled_for"]

    situation.plan()
    assert (None, None) == last()
    situation.final("succeeded", ago(hours=3))
    assert ("succeeded", ago(hours=3)) == last()
    situation.job("running", ago(hours=2))
    assert ("running", ago(hours=2)) == last()
    situation.final(
        "skipped", ago(hours=1), reason="too_late", occurrences=3, last_scheduled_for=ago(minutes=40), finished_at=NOON
    )
    assert ("skipped", ago(minutes=40)) == last()


def test_failures_are_those_since_the_last_success(situation: Situation) -> None:
    situation.plan()
    assert 0 == situation.status()["failures"]
    for hours, state in ((9, "failed"), (8, "succeeded"), (7, "failed"), (5, "failed")):
        situation.final(state, ago(hours=hours))
    situation.final("skipped", ago(hours=6), reason="overlap")
    assert 2 == situation.status()["failures"]

    situation.final("skipped", ago(hours=4), reason="overlap")
    situation.job("running")
    assert 2 == situation.status()["failures"]

    situation.final("succeeded", ago(hours=2))
    assert 0 == situation.status()["failures"]


def test_a_problem_is_shown(situation: Situation) -> None:
    situation.task(problem="no such zone")

    assert "no such zone" == situation.status()["problem"]


def test_p11_a_page_of_the_status_reads_only_its_own_rows(situation: Situation) -> None:
    situation.session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) select 'row-' || to_char(n, 'FM00000'), "
        f"'app.probe', 'every 1h', pgbeat.now() + interval '1 h' from generate_series(1, {ROWS}) n"
    )
    situation.session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, origin, state, task, scheduled_for, created_at, "
        "finished_at) "
        "select gen_random_uuid(), 'row-' || to_char(n, 'FM00000'), 'schedule', 'failed', 'app.probe', at, at, at "
        f"from generate_series(1, {ROWS}) n cross join generate_series(1, 5) m "
        "cross join lateral (select pgbeat.now() - m * interval '1 h' as at) as instants"
    )
    for table in ("periodic_task", "finished_job", "active_job"):
        situation.session.rows(f"vacuum analyze pgbeat.{table}")

    page = situation.session.rows("explain (analyze, timing off) select * from pgbeat.status order by name limit 100")
    plan = "\n".join(row["QUERY PLAN"] for row in page)

    assert "Seq Scan on periodic_task" not in plan
    assert "Seq Scan on finished_job_default" not in plan
    assert re.search(r"Index Scan using periodic_task_pkey .*[(]actual rows=100(.00)? loops=1[)]", plan)
