"""What is wrong, asked of all who say it: SQL, Python, the shell, the metrics, the alerts and the dashboard agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.cli.doctor.work import TROUBLES, nodes, stuck
from celery_pgbeat.measures.gauges import Gauges
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.web import dashboard
from tests.harness.shell import Run, shell_on
from tests.harness.situations import BEAT, FILLED, JOB, NO_BEAT, NOON, Situation, ago
from tests.harness.visitor import Visitor

LATE, MORE = ago(minutes=10), ago(minutes=6)
FOREVER = "infinity"


@pytest.fixture(scope="module")
def stage(shared_database: str) -> Situation:
    """One database for all situations, whose clock stands at noon."""
    return Situation(shared_database)


@pytest.fixture
def site(stage: Situation) -> Situation:
    """That database without a row, but for a beat and a worker that live."""
    stage.session.rows(f"truncate {', '.join(f'pgbeat.{table}' for table in (*FILLED, 'alert', 'stopped_beat'))}")
    stage.beat()
    stage.worker()
    return stage


@pytest.fixture
def door(shared_database: str) -> Iterator[Doors]:
    with Visitor(dashboard(shared_database)) as visitor:
        made = Doors(shared_database, visitor)
        yield made
        made.beat.close()
        made.database.close()


class Doors:
    """All who say what is wrong in one database."""

    def __init__(self, url: str, visitor: Visitor) -> None:
        self.beat = PgBeat(url=url)
        self.run: Run = shell_on(url)
        self.database = Database(url)
        self.operators = AdminQueries(self.database)
        self.visitor = visitor

    def json(self, *words: str) -> Any:
        """Return what a command of the shell prints as JSON."""
        return json.loads(self.run(*words, "--json").stdout)

    def alerts(self) -> list[tuple[str, str]]:
        """Raise the alerts that are due, and return their subjects and reasons."""
        rows = self.database.run("raise_alerts", beat=BEAT, after=300.0, most=100, now=NOON, step=60.0)
        return [(row.name, row.reason) for row in rows if row.kind == "overdue"]


def no_beat(site: Situation) -> None:
    site.session.rows("delete from pgbeat.node where role = 'beat'")


def no_worker(site: Situation) -> None:
    site.session.rows("delete from pgbeat.node where role = 'worker'")


def broker_refuses(site: Situation) -> None:
    site.session.rows("update pgbeat.node set broker_problem = 'full', broker_problem_since = %s", LATE)
    site.plan(LATE)


def lost_message(site: Situation) -> None:
    site.plan()
    site.job("sent")
    site.session.rows("insert into pgbeat.lost_message (job) values (%s)", str(JOB))


def blocking(site: Situation, **columns: Any) -> None:
    site.plan()
    site.job("running", ago(hours=3), **columns)
    site.final("skipped", reason="overlap", blocked_by=str(JOB))


def group(site: Situation, **columns: Any) -> None:
    site.session.rows("select pgbeat.limit_group('reports', 1)")
    site.plan(group_name="reports", **columns)


def paused_group(site: Situation) -> None:
    group(site, next_run_at=LATE)
    site.session.rows("select pgbeat.pause_group('reports')")


def waits_for_a_slot(site: Situation, *, taken: bool) -> None:
    group(site)
    if taken:
        other = "00000000-0000-0000-0000-000000000002"
        site.job("running", id=other, periodic_task="yearly", group_name="reports", slot=1)
    site.job("buffered", group_name="reports", wait_reason="slot", exclusive=True, busy_until=FOREVER)


def waits_for_the_one_before(site: Situation) -> None:
    site.plan()
    site.job("running", id="00000000-0000-0000-0000-000000000002", max_run_time="1 hour")
    site.job("buffered", busy_until=FOREVER)


def for_a_person(site: Situation, **columns: Any) -> None:
    site.task(kind="human", schedule=None, task=None)
    site.job("created", kind="human", task=None, busy_until=FOREVER, check_at=FOREVER, **columns)


def after_both(*steps: Callable[[Situation], None]) -> Callable[[Situation], None]:
    """Return a situation that several together are."""

    def plant(site: Situation) -> None:
        for step in steps:
            step(site)

    return plant


def row(due_at: Any = LATE, **columns: Any) -> Callable[[Situation], None]:
    """Return a situation with one row that is planned."""
    return lambda site: site.plan(due_at, **columns)


def unplanned(**columns: Any) -> Callable[[Situation], None]:
    """Return a situation with one row that no beat has planned since ten minutes ago."""

    def plant(site: Situation) -> None:
        site.clock.stand_at(LATE)
        site.task(**columns)
        site.clock.stand_at(NOON)

    return plant


def job(state: str, **columns: Any) -> Callable[[Situation], None]:
    """Return a situation with one job of a row that is planned."""

    def plant(site: Situation) -> None:
        site.plan()
        site.job(state, **columns)

    return plant


# What is planted, and the code that everybody has for it; None if nothing is late.
SITUATIONS: dict[str, tuple[Callable[[Situation], None], str | None]] = {
    "all is well": (row(None), None),
    "late by 10 s": (row(ago(seconds=10)), None),
    "late by 60 s": (row(ago(seconds=60)), "undecided"),
    "late by 10 min": (row(), "undecided"),
    "late by less than a longer lease": (row(ago(seconds=60), mark_lease="30 s"), None),
    "no beat": (after_both(no_beat, row()), "undecided"),
    "a beat that was stopped": (
        after_both(no_beat, lambda site: site.stopped_beat(LATE), row()),
        "undecided",
    ),
    "a silent beat": (
        after_both(no_beat, lambda site: site.beat(LATE), row()),
        "undecided",
    ),
    "the broker takes nothing": (broker_refuses, "undecided"),
    "a mark that lapsed": (row(marked_by=BEAT, marked_at=LATE, mark_lease="15 s"), "marked"),
    "lazy arguments": (row(lazy=True), "lazy"),
    "not planned": (unplanned(), "unplanned"),
    "changed and not planned": (unplanned(next_run_at=None), None),
    "paused": (row(enabled=False), None),
    "paused until later": (row(enabled=False, paused_until=NOON + timedelta(hours=1)), None),
    "paused until a time that is over": (row(enabled=False, paused_until=LATE), "unresumed"),
    "its group is paused": (paused_group, None),
    "cannot be planned": (row(problem="no such zone"), None),
    "a blackout window": (row(NOON + timedelta(hours=1), planned_for=LATE, blackout=["0 11 * * * PT2H"]), None),
    "max_runs is reached": (lambda site: site.task(next_run_at=None, max_runs=1, run_count=1), None),
    "its schedule has ended": (lambda site: site.task(next_run_at=None, end_at=ago(days=1)), None),
    "on demand": (lambda site: site.task(schedule=None), None),
    "a job that no beat sends": (job("pending"), "unsent"),
    "a job that its broker refuses": (job("pending", error="closed queue: no room", check_at=NOON), "unsent"),
    "a job in the queue": (job("sent"), None),
    "a job that was sent again": (job("sent", resends=1), "unstarted"),
    "a job without a worker": (after_both(no_worker, job("sent")), "unstarted"),
    "a job of the result backend": (after_both(no_worker, job("sent", tracking="result")), None),
    "a job whose countdown runs": (job("sent", since=NOON + timedelta(minutes=1)), None),
    "a job whose message is lost": (lost_message, "lost_message"),
    "a job that runs": (job("running"), None),
    "a job past its deadline": (job("running", busy_until=MORE), "silent"),
    "a job that blocks the next": (blocking, "blocking"),
    "a job that will be ended": (lambda site: blocking(site, max_run_time="4 hours"), None),
    "a job that waits for its turn": (waits_for_the_one_before, None),
    "a job in a full group": (lambda site: waits_for_a_slot(site, taken=True), None),
    "a job that no beat lets into its group": (lambda site: waits_for_a_slot(site, taken=False), "forgotten"),
    "a job that asks": (job("error", on_error="ask", busy_until=LATE, check_at=FOREVER), "decision"),
    "a task for people": (lambda site: for_a_person(site, due_by=NOON + timedelta(hours=1)), None),
    "a task for people that is late": (lambda site: for_a_person(site, due_by=LATE), "work"),
}
OF_PEOPLE = ("decision", "work", "blocking")  # what no beat and no worker can do


@pytest.mark.parametrize("name", SITUATIONS)
def test_everybody_says_the_same_of_what_is_late(site: Situation, door: Doors, name: str) -> None:
    plant, code = SITUATIONS[name]
    plant(site)
    late = site.session.rows("select * from pgbeat.overdue")

    assert [code] * (code is not None) == [one["code"] for one in late]
    assert [code] * (code is not None) == [one["code"] for one in door.json("overdue")]
    told = [(one["name"], one["reason"]) for one in late]
    told_after = timedelta(minutes=5)  # of alerts
    assert [one for one, of in zip(told, late, strict=True) if of["late_by"] > told_after] == door.alerts()

    sentence = site.session.value("select pgbeat.explain('nightly')")
    assert all(part in sentence for _, reason in told for part in reason.split("; "))
    assert sentence == door.beat.explain("nightly")

    gauges = Gauges(door.database).read()
    assert gauges is not None
    assert (len(late), len(late)) == (gauges.overdue, door.operators.activity(10)["late"])

    is_well = code in (None, *OF_PEOPLE)
    assert is_well == (door.beat.health().lag == timedelta(0)) == door.json("health")["checks"]["lag"]["ok"]

    found = [finding.what for finding in stuck(door.operators)]
    doctors = "problem" if name == "cannot be planned" else code
    assert [doctors] * (doctors is not None) == [
        known
        for what in found
        for known, trouble in TROUBLES.items()
        if what.startswith(trouble.what.partition("{")[0])
    ]

    assert f"Overdue {len(late)}" in door.visitor.open("/").text


def test_everybody_says_in_the_same_words_that_no_beat_is_alive(site: Situation, door: Doors) -> None:
    no_beat(site)
    site.plan(LATE)

    told = {
        "explain": site.session.value("select pgbeat.explain('nightly')"),
        "overdue": site.session.value("select reason from pgbeat.overdue"),
        "health": door.json("health")["checks"]["beats"]["detail"],
        "doctor": " ".join(finding.what for finding in nodes(door.operators)),
        "trigger": door.run("trigger", "nightly").stderr,
        **{page: door.visitor.open(page).text for page in ("/", "/nodes", "/problems")},
    }

    assert {} == {name: text for name, text in told.items() if NO_BEAT[1:] not in text}


@pytest.mark.parametrize(("dead_after", "lives"), [(None, False), ("2 min", True)], ids=["by default", "by setting"])
def test_a_beat_is_alive_for_as_long_as_the_beats_say(
    situation: Situation, beat: PgBeat, migrated_database: str, dead_after: str | None, lives: bool
) -> None:
    situation.beat(ago(minutes=1))
    situation.plan(NOON + timedelta(hours=1))
    if dead_after is not None:
        situation.session.rows("insert into pgbeat.app values ('shop', %s, %s, %s, %s)", NOON, NOON, NOON, dead_after)
    gauges = Gauges(Database(migrated_database)).read()

    assert gauges is not None
    assert [lives] * 4 == [
        "no beat" not in situation.explain(),
        beat.nodes()[0].alive,
        beat.health().beats == 1,
        gauges.beats == 1,
    ]


def test_new_rows_have_ten_minutes_while_a_beat_lives(site: Situation, door: Doors) -> None:
    site.clock.stand_at(ago(minutes=5))
    site.task()
    site.clock.stand_at(NOON)

    assert door.beat.health().lag == timedelta(0)

    no_beat(site)

    assert door.beat.health().lag == timedelta(minutes=5)


def test_the_health_of_a_host_counts_the_workers_of_all(site: Situation, door: Doors) -> None:
    site.plan()
    site.job("sent", resends=1)
    (seen,) = door.database.run("health", hostname="elsewhere")

    assert (0, None) == (seen.beats, seen.no_tracker)
