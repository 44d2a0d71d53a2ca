"""Jobs: what was decided, the latest first; and one of them step by step."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from click.testing import CliRunner

from celery_pgbeat.cli import main
from celery_pgbeat.web import dashboard
from tests.harness.situations import JOB, Situation, ago
from tests.harness.visitor import Seen, Visitor


def names(seen: Seen) -> list[str]:
    return [link.rpartition("=")[2] for link in seen.links if link.startswith("/task?name=")]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["a", "b", "c", "d"]),
        ({"state": "failed"}, ["b"]),
        ({"state": "running"}, ["a"]),
        ({"state": "nonsense"}, ["a", "b", "c", "d"]),
        ({"reason": "overlap"}, ["c"]),
        ({"name": "d"}, ["d"]),
        ({"task": "other.task"}, ["d"]),
        ({"queue": "slow"}, ["b"]),
        ({"group": "reports"}, ["c"]),
        ({"group": "reports", "state": "failed"}, []),
        ({"state": "failed", "name": "d"}, []),
    ],
    ids=str,
)
def test_a_filter_finds_just_what_it_says(
    well: Situation, visitor: Visitor, filters: dict[str, str], found: list[str]
) -> None:
    well.job("running", ago(minutes=1), periodic_task="a")
    well.final("failed", ago(minutes=2), periodic_task="b", queue="slow")
    well.final("skipped", ago(minutes=3), periodic_task="c", reason="overlap", group_name="reports")
    well.final("succeeded", ago(minutes=4), periodic_task="d", task="other.task")

    assert found == names(visitor.open("/jobs", **filters))


def test_jobs_of_one_instant_are_each_on_one_page(well: Situation, visitor: Visitor) -> None:
    for number in range(120):
        well.final("succeeded", ago(minutes=1), id=str(UUID(int=number + 10)), periodic_task=f"{number:03}")

    first = visitor.open("/jobs")
    second = visitor.open(first.link("before="))
    third = visitor.open([link for link in second.links if "before=" in link][-1])

    seen = [*names(first), *names(second), *names(third)]
    assert sorted(f"{number:03}" for number in range(120)) == sorted(seen)
    assert not [link for link in third.links if "before=" in link]


def test_a_rare_state_is_looked_for_in_one_day_and_further_back_by_a_link(well: Situation, visitor: Visitor) -> None:
    well.session.rows("select pgbeat.make_days(3)")
    well.final("lost", ago(days=3))

    first = visitor.open("/jobs", state="lost")
    week = visitor.open(first.link("look="))

    assert "Looked back to Sun 28 Feb 12:00" in first.text
    assert "look back further: week" in first.text
    assert ["nightly"] == names(week)


def test_a_job_is_shown_step_by_step(well: Situation, visitor: Visitor) -> None:
    decided = ago(minutes=30)
    well.final(
        "succeeded",
        decided,
        id=str(JOB),
        scheduled_for=decided - timedelta(seconds=2),
        sent_at=decided + timedelta(milliseconds=9),
        started_at=decided + timedelta(milliseconds=40),
        finished_at=decided + timedelta(minutes=4, seconds=12),
        worker="w-7:m:815:start:random",
        beat="b-1:m:4711:start:random",
        sends=1,
    )

    seen = visitor.open("/job", id=str(JOB))

    assert "✓ succeeded For 11:29:58 Decided 11:30:00 2.0 s after it was due, by b-1:4711" in seen.text
    assert "Sent 11:30:00 9 ms later, 1 time" in seen.text
    assert "Started 11:30:00 40 ms after the decision, on w-7:815" in seen.text
    assert "Succeeded 11:34:12 after 4m12s" in seen.text
    assert "(the task was removed)" in seen.text


def test_a_job_is_late_by_when_it_was_due_and_jitter_is_no_lateness(well: Situation, visitor: Visitor) -> None:
    decided = ago(minutes=30)
    due_at = decided - timedelta(seconds=2)
    well.final("succeeded", decided, id=str(JOB), scheduled_for=decided - timedelta(minutes=1), due_at=due_at)

    seen = visitor.open("/job", id=str(JOB))

    assert "For 11:29:00 due 11:29:58 Decided 11:30:00 2.0 s after it was due" in seen.text


def test_a_failed_job_that_waits_for_a_decision_says_how_to_decide(well: Situation, visitor: Visitor) -> None:
    well.job("error", on_error="ask", check_at="infinity", busy_until=ago(minutes=1), error="ValueError: no")

    text = visitor.open("/job", id=str(JOB)).text

    assert "ValueError: no It waits for a decision" in text
    assert f"celery-pgbeat job retry {JOB}" in text
    assert "Failed 11:59:00 Waits for a decision to run it again, or to give it up; nothing else ends it" in text


@pytest.mark.parametrize(
    ("state", "next_step"),
    [
        ("sent", "Sent again, or given up 12:50:00 unless a worker starts it"),
        ("running", "Given up 12:00:25 unless its worker reports"),
        ("buffered", None),
    ],
)
def test_the_page_says_what_ends_a_job_without_reports(
    well: Situation, visitor: Visitor, state: str, next_step: str | None
) -> None:
    well.job(state)

    text = visitor.open("/job", id=str(JOB)).text

    if next_step is None:
        assert "given up" not in text.lower()
    else:
        assert next_step in text


@pytest.mark.parametrize(
    ("sensitive", "shown", "printed"),
    [
        (False, 'Arguments (7, country="at")', '{"args": [7], "kwargs": {"country": "at"}}'),
        (True, "Arguments sensitive: they are not shown", "<sensitive>"),
    ],
)
@pytest.mark.parametrize("ended", [False, True])
def test_the_arguments_of_a_manual_job_are_shown_unless_they_are_sensitive(
    well: Situation, visitor: Visitor, migrated_database: str, sensitive: bool, shown: str, printed: str, ended: bool
) -> None:
    well.plan(kwargs='{"country": "de"}', sensitive=sensitive)
    job = well.session.value("""select pgbeat.trigger('nightly', args => '[7]', kwargs => '{"country": "at"}')""")
    if ended:
        well.session.rows("delete from pgbeat.active_job")
        well.final("failed", id=job, origin="manual", arguments='{"args": [7], "kwargs": {"country": "at"}}')

    assert shown in visitor.open("/job", id=job).text
    told = CliRunner().invoke(main, ["job", "show", job], env={"PGBEAT_URL": migrated_database}).output
    assert printed in " ".join(told.split())
    assert sensitive is not ('"at"' in told)


def test_the_arguments_of_a_final_job_whose_task_was_removed_are_not_shown(well: Situation, visitor: Visitor) -> None:
    well.final("failed", id=str(JOB), origin="manual", arguments='{"args": ["secret"], "kwargs": {}}')

    assert "secret" not in visitor.open("/job", id=str(JOB)).text


def test_a_viewer_who_may_not_read_arguments_sees_the_job_without_them(well: Situation, reader_url: str) -> None:
    well.plan()
    job = well.session.value("select pgbeat.trigger('nightly', args => '[7]')")

    with Visitor(dashboard(reader_url)) as visitor:
        text = visitor.open("/job", id=job).text
    told = CliRunner().invoke(main, ["job", "show", job], env={"PGBEAT_URL": reader_url})

    assert "pending" in text
    assert "Arguments" not in text
    assert (0, False) == (told.exit_code, "arguments" in told.output)


@pytest.mark.parametrize("id", ["", "nonsense", str(UUID(int=99)), "0" * 5000, "' or 1=1 --"])
def test_an_id_that_no_job_has_is_not_there(well: Situation, visitor: Visitor, id: str) -> None:
    seen = visitor.open("/job", id=id)

    assert 404 == seen.status
    assert "There is no job" in seen.text


@pytest.mark.parametrize("before_at", ["yesterday", "9999-12-31T23:59:59+14:00", "0001-01-01T00:00:00-14:00", "", "\0"])
def test_an_invalid_position_shows_the_first_page(well: Situation, visitor: Visitor, before_at: str) -> None:
    well.final("succeeded")

    seen = visitor.open("/jobs", before=str(UUID(int=2**128 - 1)), before_at=before_at)

    assert 200 == seen.status
