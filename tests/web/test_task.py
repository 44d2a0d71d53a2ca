"""One task: why it does or does not run, when next, what became of its jobs, and what is around it."""

from __future__ import annotations

import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.postgres.engine import normalise_url
from celery_pgbeat.web import dashboard
from tests.harness.situations import JOB, NOON, Situation, ago
from tests.harness.visitor import Visitor

PAGES = ("/", "/tasks", "/task?name=nightly", "/jobs", f"/job?id={JOB}", "/groups", "/work", "/nodes", "/problems")


def test_it_begins_with_the_reason(well: Situation, visitor: Visitor) -> None:
    well.plan()
    well.job("running")

    seen = visitor.open("/task", name="nightly")

    assert "nightly ▮ 'nightly' is running: job" in seen.text
    assert "has been running since 11:50:00 on web-2 (process 815)" in seen.text
    assert f"/job?id={JOB}" in seen.links


def test_the_definition_is_in_words_with_what_differs_from_the_default(well: Situation, visitor: Visitor) -> None:
    well.task(
        schedule="30 2 * * *",
        timezone="Europe/Berlin",
        args="[7]",
        kwargs='{"month": "2026-11"}',
        overlap="buffer_one",
        max_run_time="30 min",
        group_name="reports",
    )

    text = visitor.open("/task", name="nightly").text

    assert "at 02:30" in text
    assert "30 2 * * * Europe/Berlin" in text
    assert 'Arguments (7, month="2026-11")' in text
    assert "overlap buffer_one one waits for its turn" in text
    assert "max_run_time 30m" in text
    assert "catchup" not in text


def test_the_next_ten_runs_are_listed_with_what_a_change_of_the_clocks_does(well: Situation, visitor: Visitor) -> None:
    well.clock.stand_at(NOON.replace(year=2099, month=3, day=25))
    well.plan(
        NOON.replace(year=2099, month=3, day=26, hour=1, minute=30),
        schedule="30 2 * * *",
        timezone="Europe/Berlin",
        planned_for=NOON.replace(year=2099, month=3, day=26, hour=1, minute=30),
    )

    seen = visitor.open("/task", name="nightly")

    assert 10 == seen.html.split('id="next"')[1].split("</ol>")[0].count("<li>")
    assert "02:30 does not exist" in seen.text or "2:30" in seen.text


def test_arguments_of_a_sensitive_row_are_not_shown(well: Situation, visitor: Visitor) -> None:
    well.task(args='["patient 4711"]', kwargs='{"key": "hush"}', sensitive=True)

    seen = visitor.open("/task", name="nightly")

    assert "sensitive: they are not shown" in seen.text
    assert not {"4711", "hush"} & set(seen.html.split('"'))
    assert "patient 4711" not in seen.html
    assert "hush" not in seen.html


def test_its_jobs_come_with_reasons_and_the_job_in_the_way_is_a_link(well: Situation, visitor: Visitor) -> None:
    well.plan()
    well.final("skipped", ago(minutes=30), reason="overlap", blocked_by=str(JOB))
    well.final(
        "failed", ago(minutes=20), started_at=ago(minutes=19), finished_at=ago(minutes=15), error="ValueError: x"
    )

    seen = visitor.open("/task", name="nightly")

    assert "11:40:00 ✗ failed ValueError: x +0 ms 1m00s 4m00s" in seen.text
    assert "11:30:00 ◌ skipped: overlap job 00000000 blocked it" in seen.text
    assert f"/job?id={JOB}" in seen.links
    assert "The latest 2 jobs: the middle one took 4m00s, the longest 4m00s" in [
        given.get("aria-label") for tag, given in seen.tags if tag == "svg"
    ]


def test_older_jobs_are_on_further_pages(well: Situation, visitor: Visitor) -> None:
    well.plan()
    for minute in range(70):
        well.final("succeeded", ago(minutes=minute + 1))

    older = visitor.open(visitor.open("/task", name="nightly").link("before="))

    assert 10 == older.text.count("✓ succeeded")
    assert "10:59:00" in older.text
    assert "10:50:00" in older.text


def test_what_it_waits_for_and_what_waits_for_it_are_links(well: Situation, visitor: Visitor, beat: PgBeat) -> None:
    beat.schedule("load", task="app.probe", schedule="every 1h")
    beat.schedule("clean", task="app.probe", after=["load"])
    beat.schedule("report", task="app.probe", after=["clean"])

    seen = visitor.open("/task", name="clean")

    assert "Waits for ○ load" in seen.text
    assert "Waited for by ○ report" in seen.text
    assert {"/task?name=load", "/task?name=report"} <= set(seen.links)


def test_an_unknown_name_gets_a_suggestion(well: Situation, visitor: Visitor) -> None:
    well.task()

    seen = visitor.open("/task", name="nigthly")

    assert 404 == seen.status
    assert "No periodic task is named 'nigthly'. Did you mean 'nightly'?" in seen.text


@pytest.mark.parametrize("name", ["", "x" * 20_000, "\0", "a\0b", "\udcff", "../../etc/passwd"])
def test_a_name_that_no_row_can_have_is_not_there(well: Situation, visitor: Visitor, name: str) -> None:
    seen = visitor.open("/task?name=" + name.replace("\0", "%00").replace("\udcff", "%FF"))

    assert 404 == seen.status


def test_a_row_that_cannot_be_planned_says_so_in_place_of_its_runs(well: Situation, visitor: Visitor) -> None:
    well.task(problem="the zone Mars/Olympus_Mons is unknown")

    assert "it cannot be planned: the zone Mars/Olympus_Mons is unknown" in visitor.open("/task", name="nightly").text


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_every_page_is_read_by_each_driver(well: Situation, migrated_database: str, driver: str) -> None:
    well.plan(max_run_time="30 min", jitter="5 s")
    well.job("running")
    well.final("failed")
    url = normalise_url(migrated_database).set(drivername=f"postgresql+{driver}")

    with Visitor(dashboard(url.render_as_string(hide_password=False))) as visitor:
        seen = {path: visitor.open(path).status for path in (*PAGES, "/timeline")}

    assert dict.fromkeys(seen, 200) == seen


def test_a_user_of_the_database_who_may_not_read_arguments_sees_all_else(
    well: Situation, migrated_database: str, reader_url: str
) -> None:
    well.plan(args='["patient 4711"]')
    well.job("running")

    with Visitor(dashboard(reader_url)) as visitor:
        seen = {path: visitor.open(path) for path in PAGES}

    assert dict.fromkeys(PAGES, 200) == {path: one.status for path, one in seen.items()}
    assert "the dashboard's database user may not read them" in seen["/task?name=nightly"].text
