"""Groups as queues from Python, from the shell and in files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from celery_pgbeat import PgBeat
from celery_pgbeat.errors import (
    GroupFinished,
    GroupInUse,
    InvalidPeriodicTask,
    JobInTheWay,
    NothingToRetry,
    UnknownGroup,
)
from tests.harness.session import Session
from tests.harness.shell import Run


def failed_in(session: Session, group: str, name: str) -> None:
    """End a job of the group as failed, and have the group paused as a beat does."""
    session.insert(name, group_name=group, schedule=None)
    session.rows("select pgbeat.trigger(%s)", name)
    session.rows("select pgbeat.grant_slots()")
    session.rows(
        "with deleted as (delete from pgbeat.active_job as job where periodic_task = %s returning job) "
        "insert into pgbeat.finished_job select final.* from deleted "
        "cross join lateral pgbeat.archived(job, 'failed') as final",
        name,
    )
    session.rows("update pgbeat.task_group set paused = true where name = %s", group)


def test_python_defines_finishes_and_resumes_a_group(beat: PgBeat) -> None:
    made = beat.define_group("first", ordered=True, pause_on_failure=True)
    assert (True, None, True, None, "active", False) == (
        *(made.ordered, made.waits_for, made.pause_on_failure, made.rate_limit),
        *(made.state, made.paused),
    )
    then = beat.define_group("then", waits_for=["first"], rate_limit="100/m", max_active=3)
    assert (["first"], "100/m", 3) == (then.waits_for, then.rate_limit, then.max_active)

    assert "finished" == beat.finish_group("first").state
    assert "active" == beat.resume_group("first").state
    (first, _) = beat.groups()
    assert (True, "active", 0) == (first.ordered, first.state, first.waiting)
    assert not beat.define_group("first").ordered


WRONG: dict[str, dict[str, Any]] = {
    "max_active is 2, but an ordered group has one job at a time": {"ordered": True, "max_active": 2},
    "max_active is 0, not at least 1": {"max_active": 0},
    "ordered is 'yes'": {"ordered": "yes"},
    "waits_for is 'first', not a list of names of groups": {"waits_for": "first"},
    "waits_for[1]": {"waits_for": ["first", 3]},
    "waits_for names 'nobody', and no group is named so": {"waits_for": ["nobody"]},
    "No group may wait for itself: 'g' waits for 'g'": {"waits_for": ["g"]},
    "rate_limit is 'fast', not a number of jobs per second, minute or hour": {"rate_limit": "fast"},
}


@pytest.mark.parametrize("sentence", WRONG)
def test_python_refuses_what_is_wrong_and_changes_nothing(beat: PgBeat, sentence: str) -> None:
    beat.define_group("first")
    with pytest.raises(InvalidPeriodicTask) as refused:
        beat.define_group("g", **WRONG[sentence])

    assert sentence in str(refused.value)
    assert ["first"] == [group.name for group in beat.groups()]


def test_each_refusal_is_an_error_of_its_own(beat: PgBeat, session: Session) -> None:
    with pytest.raises(UnknownGroup, match="No group is named 'nobody'"):
        beat.finish_group("nobody")
    beat.define_group("g", ordered=True, pause_on_failure=True)
    with pytest.raises(NothingToRetry, match="No failed job has paused the group 'g': there is none to retry"):
        beat.resume_group("g", retry=True)
    session.insert("a", group_name="g", schedule=None)
    beat.finish_group("g")
    with pytest.raises(GroupFinished, match="The group 'g' is finished: it takes no new jobs"):
        beat.trigger("a")
    with pytest.raises(GroupFinished):
        beat.trigger_many(jobs=[{"name": "a"}])
    beat.define_group("h", waits_for=["i"] if beat.define_group("i") else None)
    with pytest.raises(GroupInUse, match="The group 'h' waits for the group 'i'"):
        beat.remove_group("i")


def test_what_failed_is_retried_unless_it_runs_again_already(beat: PgBeat, session: Session) -> None:
    beat.define_group("g", max_active=2, pause_on_failure=True)
    failed_in(session, "g", "a")
    assert "active" == beat.resume_group("g", retry=True).state
    assert [("a", "manual")] == [(job.periodic_task, job.origin) for job in beat.jobs("a") if not job.finished_at]

    session.rows("delete from pgbeat.active_job")
    failed_in(session, "g", "b")
    session.rows("select pgbeat.resume_group('g')")
    session.rows("select pgbeat.trigger('b'), pgbeat.grant_slots()")
    session.rows("update pgbeat.task_group set paused = true")
    session.rows(
        "insert into pgbeat.group_failure (group_name, job, periodic_task, scheduled_for) "
        "select 'g', id, 'b', scheduled_for from pgbeat.finished_job where periodic_task = 'b'"
    )
    with pytest.raises(JobInTheWay, match="A job of 'b' is not final yet"):
        beat.resume_group("g", retry=True)
    assert ["paused"] == [group.state for group in beat.groups()]


def test_the_shell_defines_and_lists_groups(run: Run, session: Session) -> None:
    session.insert("a", group_name="first")
    defined = run("group", "define", "first", "--ordered", "--pause-on-failure")
    then = run("group", "define", "then", "--waits-for", "first", "--rate-limit", "100/m", "--max-active", "3")

    assert "The group 'first': one at a time, in order; paused by a failure.\n" == defined.stdout
    assert "No periodic task names the group 'then' yet" in then.stderr
    assert "The group 'then': at most 3 at once; at most 100/m; when first has nothing to do.\n" == then.stdout
    listed = json.loads(run("group", "list", "--json").stdout)
    assert [("first", "active", True), ("then", "active", False)] == [
        (group["name"], group["state"], group["ordered"]) for group in listed
    ]
    assert "one at a time, in order" in run("group", "list").stdout


def test_the_shell_finishes_a_group_and_opens_it(run: Run, session: Session) -> None:
    session.insert("a", group_name="g")
    finished = run("group", "finish", "g")
    assert "The group 'g' takes no new jobs until you resume it.\n" == finished.stdout
    refused = run("trigger", "a")
    assert (1, True) == (refused.exit_code, "The group 'g' is finished: it takes no new jobs" in refused.stderr)
    assert "its group 'g' is finished: its occurrences are skipped" in run("explain", "a").stdout
    assert "group finished" in run("list").stdout
    assert "Resumed the group 'g'.\n" == run("group", "resume", "g").stdout
    assert 0 == run("trigger", "a").exit_code


def test_the_shell_resumes_with_the_job_that_failed(run: Run, session: Session) -> None:
    session.rows("select pgbeat.define_group('g', ordered => true, pause_on_failure => true)")
    none = run("group", "resume", "g", "--retry")
    assert (1, True) == (none.exit_code, "there is none to retry" in none.stderr)
    failed_in(session, "g", "a")

    assert 0 == run("group", "resume", "g", "--retry").exit_code

    (job,) = session.rows("select origin, state from pgbeat.active_job")
    assert ("manual", "buffered") == tuple(job.values())


def test_a_misspelt_group_is_answered_with_the_one_that_was_meant(run: Run, session: Session) -> None:
    session.insert("a", group_name="reports")
    assert "reports" in run("group", "finish", "raports").stderr


def test_a_file_has_all_that_a_group_is(run: Run, session: Session) -> None:
    session.insert("a", group_name="named by a row", managed_by="api")
    session.rows(
        "select pgbeat.define_group('first', ordered => true, pause_on_failure => true);"
        "select pgbeat.define_group('a then', waits_for => array['first', 'named by a row'], rate_limit => '5/s')"
    )
    lines = run("export").stdout
    assert [
        '{"group": "a then", "waits_for": ["first", "named by a row"], "rate_limit": "5/s"}',
        '{"group": "first", "ordered": true, "pause_on_failure": true}',
    ] == lines.splitlines()[:2]
    before = session.rows("select * from pgbeat.task_group order by name")
    assert "3 equal" in run("import", "-", input=lines).stdout

    session.rows("delete from pgbeat.task_group where name = 'a then'")
    session.rows("delete from pgbeat.task_group")
    session.rows("delete from pgbeat.periodic_task")
    restored = run("import", "-", input=lines)

    assert 0 == restored.exit_code, restored.stderr
    assert before == session.rows("select * from pgbeat.task_group order by name")


def test_a_file_may_turn_an_order_around_and_may_not_close_a_circle(run: Run, session: Session) -> None:
    session.rows("select pgbeat.define_group('a'), pgbeat.define_group('b', waits_for => array['a'])")
    turned = '{"group": "a", "waits_for": ["b"]}\n{"group": "b"}\n'
    circle = '{"group": "a", "waits_for": ["b"]}\n{"group": "b", "waits_for": ["a"]}\n'

    assert 0 == run("import", "-", input=turned).exit_code
    assert [["b"], None] == [row["waits_for"] for row in session.rows("select * from pgbeat.task_group order by name")]
    refused = run("import", "-", input=circle)

    assert (1, True) == (refused.exit_code, "No group may wait for itself" in refused.stderr)
    assert [["b"], None] == [row["waits_for"] for row in session.rows("select * from pgbeat.task_group order by name")]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"group": "g", "rate_limit": "fast"}', "rate_limit is 'fast', not a number of jobs"),
        ('{"group": "g", "ordered": 1}', "ordered is 1"),
        ('{"group": "g", "waits_for": "a"}', "waits_for is 'a', not a list"),
        ('{"group": "g", "order": true}', "the group 'g' has no column 'order'"),
    ],
)
def test_a_wrong_line_of_a_file_is_refused_before_anything_is_written(
    run: Run, session: Session, line: str, sentence: str
) -> None:
    refused = run("import", "-", "--dry-run", input=line + "\n")
    assert (1, True) == (refused.exit_code, sentence in refused.stderr), refused.stderr
    assert [] == session.rows("select * from pgbeat.task_group")
