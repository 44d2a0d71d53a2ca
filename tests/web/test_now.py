"""Now: one sentence on top says what matters most; below it the figures, the charts and the first of each kind."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta

from click.testing import CliRunner

from celery_pgbeat.cli import main
from tests.harness.situations import NOON, Situation, ago
from tests.harness.visitor import Visitor


def test_where_all_is_well_it_says_so(well: Situation, visitor: Visitor) -> None:
    well.plan()

    seen = visitor.open("/")

    assert 200 == seen.status
    assert "Nothing is late. 1 beat and 1 worker are alive." in seen.text
    assert "Beats alive 1 Workers alive 1 Running 0 Waiting 0 Overdue 0 Cannot be planned 0" in seen.text
    assert "Next nightly 13:00:00" in seen.text


def test_without_any_beat_it_says_how_to_start_one(situation: Situation, visitor: Visitor) -> None:
    situation.plan()

    text = visitor.open("/").text

    assert (
        "No beat is running: none has ever been started. Nothing is sent until one starts: celery -A your_app beat"
        in text
    )


def test_where_all_beats_are_gone_it_says_since_when_and_what_is_overdue(
    situation: Situation, visitor: Visitor
) -> None:
    situation.beat(seen_at=ago(minutes=4))
    situation.plan(ago(minutes=3))

    text = visitor.open("/").text

    assert "No beat has been seen since 11:56:00 . 1 run is overdue. Nothing is sent until one starts" in text


def test_an_overdue_run_is_named_with_the_reason(well: Situation, visitor: Visitor) -> None:
    well.plan(ago(minutes=3))

    text = visitor.open("/").text

    assert "1 run is overdue. The worst by 3m00s." in text
    assert "its run has been due since 11:57:00 ; a beat was seen at 12:00:00 , but none takes it" in text


def test_jobs_that_no_worker_picks_up_are_counted_as_everywhere(
    situation: Situation, visitor: Visitor, migrated_database: str
) -> None:
    situation.beat()
    situation.worker(seen_at=ago(hours=1))
    for number in range(20):
        situation.plan(name=f"row-{number:02}")
        situation.job(
            "sent", ago(minutes=20), id=str(uuid.UUID(int=number)), periodic_task=f"row-{number:02}", resends=1
        )
    shell = {"PGBEAT_URL": migrated_database}

    assert 20 == situation.session.value("select count(*) from pgbeat.overdue")
    text = visitor.open("/").text
    assert "20 runs are overdue. The worst by 20m00s." in text
    assert "Overdue 20 " in text
    assert "Overdue 20 ✗ row-00 20m00s late" in visitor.open("/problems").text
    assert "row-19" in visitor.open("/tasks", state="overdue").text
    top = CliRunner().invoke(main, ["top", "--once"], env=shell)
    assert "20 overdue, the first for 20 min" in top.output
    assert 20 == json.loads(CliRunner().invoke(main, ["top", "--json"], env=shell).output)["late"]


def test_a_worker_without_our_tracker_is_reported(situation: Situation, visitor: Visitor) -> None:
    situation.beat()
    situation.worker(tracking=False)

    assert "No worker reports what becomes of the jobs. Add celery_pgbeat.worker to imports" in visitor.open("/").text


def test_without_a_worker_it_says_that_jobs_wait(situation: Situation, visitor: Visitor) -> None:
    situation.beat()

    assert "No worker is running. Jobs wait at the broker until one is." in visitor.open("/").text


def test_a_row_that_cannot_be_planned_comes_with_its_problem(well: Situation, visitor: Visitor) -> None:
    well.task(problem="the zone Mars/Olympus_Mons is unknown")

    text = visitor.open("/").text

    assert "1 task cannot be planned." in text
    assert "Cannot be planned ✗ nightly the zone Mars/Olympus_Mons is unknown" in text


def test_a_job_that_waits_for_a_decision_is_counted(well: Situation, visitor: Visitor) -> None:
    well.plan(on_error="ask")
    well.job("error", on_error="ask", busy_until=NOON, error="ValueError: no", check_at="infinity")

    assert "1 failed job waits for a decision." in visitor.open("/").text


def test_what_runs_longest_and_what_ended_last_are_links_to_their_jobs(well: Situation, visitor: Visitor) -> None:
    well.plan()
    well.job("running", since=ago(minutes=10))
    started = ago(minutes=2)
    well.final("failed", ago(minutes=2), started_at=started, error="TimeoutError: no answer")

    seen = visitor.open("/")

    assert "Running longest ▮ nightly 10m00s since 11:50:00 on web-2:815" in seen.text
    assert "✗ nightly failed after 0 ms TimeoutError: no answer" in seen.text
    assert 200 == visitor.open(seen.link("job?id=")).status


def test_the_last_hour_is_drawn_and_also_written_in_words(well: Situation, visitor: Visitor) -> None:
    for second in range(3):
        well.final("succeeded", ago(minutes=1, seconds=-second), started_at=ago(minutes=1, seconds=-second - 2))
    well.final("skipped", ago(minutes=5), reason="overlap")

    seen = visitor.open("/")

    titles = [given["aria-label"] for tag, given in seen.tags if tag == "svg"]
    assert [
        "Jobs a minute in the last hour: 3 in the last minute, at most 3 at 2100-03-01 11:59:00 UTC",
        "From the decision to the start, 95 % of the jobs: 2.0 s at last, at most 2.0 s in the hour",
        "0 failed and 1 skipped in the last hour",
    ] == titles
    assert "11:59:00 3 0 0 2.0 s 2.0 s" in seen.text


def test_a_busy_minute_is_estimated_from_its_first_jobs(well: Situation, visitor: Visitor) -> None:
    well.session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) select gen_random_uuid(), 'nightly', at, 'schedule', 'succeeded', 'app.probe', at, at "
        "from generate_series(0, 1199) n, lateral (select %s + n * interval '50 ms' as at) as due",
        NOON - timedelta(minutes=1),
    )

    (made,) = [given["aria-label"] for tag, given in visitor.open("/").tags if tag == "svg"][:1]

    assert "Jobs a minute in the last hour: 1,204 in the last minute, at most 1,204 at 2100-03-01 11:59:00 UTC" == made


def test_where_there_is_no_task_it_says_how_to_add_one(well: Situation, visitor: Visitor) -> None:
    text = visitor.open("/").text

    assert "No periodic tasks yet" in text
    assert "insert into pgbeat.periodic_task (name, task, schedule)" in text


def test_what_people_have_picked_up_does_not_count_as_running(well: Situation, visitor: Visitor) -> None:
    well.task(kind="human", schedule=None, task=None)
    well.job("running", kind="human", task=None, worker=None, owner="anna")

    text = visitor.open("/").text

    assert "Running 0 Waiting 0 For people 1" in text
    assert "Running longest No job is running at this moment." in text


def test_a_silent_beat_is_reported_for_an_hour(well: Situation, visitor: Visitor) -> None:
    well.beat(seen_at=ago(minutes=4), node="web-3:m:4711:start:random")
    well.beat(seen_at=ago(minutes=61), node="web-4:m:4711:start:random")

    assert "1 beat has fallen silent. The others do its work. 1 beat and 1 worker are alive." in visitor.open("/").text
    problems = visitor.open("/problems").text
    assert "Silent beats 2" in problems
    assert "✗ web-3:4711 last seen 11:56:00" in problems


def test_several_beats_that_fell_silent_are_counted(well: Situation, visitor: Visitor) -> None:
    for name in ("web-3", "web-4"):
        well.beat(seen_at=ago(minutes=4), node=f"{name}:m:4711:start:random")

    assert "2 beats have fallen silent. The others do their work." in visitor.open("/").text


def test_no_other_beat_does_the_work_of_silent_ones_where_none_is_alive(situation: Situation, visitor: Visitor) -> None:
    situation.beat(seen_at=ago(minutes=4))

    problems = visitor.open("/problems").text

    assert "No beat has been seen since 11:56:00 ." in problems
    assert "Silent beats 1 They did not stop cleanly: killed, frozen, or cut off from the database. ✗" in problems
