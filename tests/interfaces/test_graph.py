"""Which periodic tasks run after which, and when those without a schedule are expected: Python, the CLI, the roles."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.api import GraphNode, PgBeat, Upcoming
from celery_pgbeat.errors import UnknownPeriodicTask, UnknownTimezone
from celery_pgbeat.postgres.roles import roles_script
from celery_pgbeat.postgres.statements import statement
from tests.harness.clock import Clock
from tests.harness.cost import slowness
from tests.harness.every_state import fill
from tests.harness.session import Session
from tests.harness.shell import Run

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
ROWS = 10_000


@pytest.fixture
def clock(migrated_database: str) -> Clock:
    clock = Clock(migrated_database)
    clock.stand_at(NOON)
    return clock


@pytest.fixture
def beat(beat: PgBeat, clock: Clock) -> PgBeat:
    return beat


def define(beat: PgBeat, name: str, schedule: str | None = None, **columns: Any) -> None:
    """Declare a row; plan one with a schedule as a beat does."""
    beat.schedule(name, "shop.report", schedule, timezone="UTC", **columns)
    runs = beat.upcoming(name, 1) if schedule else ()
    if runs:
        beat.database.execute(
            "update pgbeat.periodic_task set planned_revision = revision, next_run_at = %(at)s, planned_for = %(for)s "
            "where name = %(name)s",
            {"at": runs[0].next_run_at, "for": runs[0].planned_for, "name": name},
        )


def shop(beat: PgBeat) -> None:
    """Declare a diamond and what stands beside it."""
    define(beat, "extract", "0 2 * * *")
    define(beat, "rates", "0 3 * * *")
    define(beat, "load", after=["extract", "rates"])
    define(beat, "clean", after=["extract"], after_condition="finish")
    define(beat, "report", "0 6 * * *", after=["load", "clean"])
    define(beat, "alone", "@hourly")


def names(beat: PgBeat, name: str | None = None) -> list[str]:
    return [node.name for node in beat.graph(name).nodes]


def hours(runs: Any) -> list[float]:
    """Return when runs are due, in hours after noon."""
    return [(run.next_run_at - NOON) / HOUR for run in runs]


# The graph.


def test_the_graph_has_what_takes_part_in_a_dependency_upstream_first(beat: PgBeat) -> None:
    shop(beat)

    assert ["extract", "clean", "rates", "load", "report"] == names(beat)
    nodes = {node.name: node for node in beat.graph().nodes}
    assert GraphNode("clean", None, ["extract"], "finish", "after other tasks") == nodes["clean"]
    assert GraphNode("extract", "0 2 * * *", None, "success", "waiting") == nodes["extract"]


def test_around_a_name_is_all_that_comes_before_it_and_all_that_runs_after_it(beat: PgBeat) -> None:
    shop(beat)
    define(beat, "mail", after=["report"])
    define(beat, "other", after=["rates"])

    assert ["extract", "rates", "load", "report", "mail"] == names(beat, "load")
    assert ["rates", "load", "other", "report", "mail"] == names(beat, "rates")
    assert ["alone"] == names(beat, "alone")


def test_an_unknown_name_suggests_the_right_one(beat: PgBeat) -> None:
    shop(beat)

    with pytest.raises(UnknownPeriodicTask, match="Did you mean 'load'"):
        beat.graph("lod")


def test_the_graph_is_read_in_the_transaction_of_the_caller(beat: PgBeat) -> None:
    with beat.database.engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
        beat.schedule("a", "shop.report", "@daily", connection=connection)
        beat.schedule("b", "shop.report", after=["a"], connection=connection)

        assert ["a", "b"] == [node.name for node in beat.graph(connection=connection).nodes]
    assert ["a", "b"] == names(beat)


def test_the_states_are_those_of_the_view_status(session: Session) -> None:
    fill(session)
    session.rows("set session_replication_role = replica")
    ways = [
        *(
            "planned_revision = revision",
            "enabled = false",
            "group_name = 'g'",
            "problem = 'x'",
            "planned_revision = 0",
        ),
        *("schedule = 'every 1h'", "last_run_at = now() + interval '1 day'"),
    ]
    for after in ("null", "array['x']"):
        for due in ("null", "now() + interval '1 hour'", "now() - interval '1 second'"):
            for way in ways:
                session.insert(f"{after} {due} {way}", schedule=None, planned_revision=1, revision=1)
                session.rows(
                    f"update pgbeat.periodic_task set after = {after}, next_run_at = {due}, {way} where name = %s",
                    f"{after} {due} {way}",
                )
    session.rows("insert into pgbeat.dependency select name, name from pgbeat.periodic_task")

    with session.connection.cursor() as cursor:
        cursor.execute(statement("graph", "pgbeat"), {"name": None})
        graph = {row[0]: row[4] for row in cursor.fetchall()}

    assert {row["name"]: row["state"] for row in session.rows("select name, state from pgbeat.status")} == graph
    assert {"waiting", "after other tasks", "on demand", "problem", "paused", "to be planned"} <= set(graph.values())


def test_a_graph_of_ten_thousand_rows_is_read_and_written_in_seconds(run: Run, session: Session) -> None:
    session.rows("set session_replication_role = replica")
    session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, after, next_run_at, planned_for, planned_revision, "
        "revision) select 'row-' || n, 'app.probe', case when n = 1 then '@daily' end, "
        "case when n > 1 then array['row-' || case when n > 5000 then n - 1 else n / 2 end] end, "
        "case when n = 1 then now() + interval '1 hour' end, case when n = 1 then now() + interval '1 hour' end, 1, 1 "
        f"from generate_series(1, {ROWS}) n"
    )
    session.rows(
        "insert into pgbeat.dependency select unnest(after), name from pgbeat.periodic_task where after is not null"
    )
    session.rows("analyze")
    for words in (["graph"], ["graph", "--dot"], ["graph", "--json"], ["graph", "row-9999"], ["upcoming"]):
        begun = time.monotonic()
        result = run(*words)
        taken = time.monotonic() - begun

        assert 0 == result.exit_code, result.output
        assert taken < 15 * slowness(), (words, taken)  # alone on two cores: a second or two
    assert ROWS - 1 == run("graph", "--dot").stdout.count(" -> ")
    assert ROWS == len(json.loads(run("upcoming", "--limit", "20000", "--json").stdout))


@pytest.mark.parametrize("name", ["graph", "expected", "preview_row"])
@pytest.mark.parametrize("role", ["author", "reader"])
def test_authors_and_readers_may_read_it(session: Session, role: str, name: str) -> None:
    session.rows("select pgbeat.schedule('a', 'app.probe', '@daily')")
    session.rows("select pgbeat.schedule('b', 'app.probe', null, after => array['a'])")
    session.rows(roles_script("pgbeat"))

    session.rows(f'set role "pgbeat_{role}"')
    with session.connection.cursor() as cursor:
        cursor.execute(statement(name, "pgbeat"), {"name": "b"})
        assert cursor.fetchall()


# What is expected.


def test_a_row_without_a_schedule_is_expected_after_its_upstream_tasks(beat: PgBeat) -> None:
    shop(beat)

    three = NOON.replace(day=8, hour=3)
    first, second = beat.upcoming("load", 2)
    note = "expected after 'extract' and 'rates'"
    assert Upcoming("load", three, three, note, ["extract", "rates"]) == first
    assert three + 24 * HOUR == second.next_run_at


def test_a_row_with_a_schedule_is_planned_as_before(beat: PgBeat) -> None:
    shop(beat)

    assert [(18, None), (42, None)] == [
        ((run.next_run_at - NOON) / HOUR, run.after) for run in beat.upcoming("report", 2)
    ]


def test_the_page_of_next_runs_has_what_is_expected_where_it_belongs(beat: PgBeat) -> None:
    shop(beat)

    page = beat.upcoming()

    assert [("alone", None), ("extract", None), ("clean", ["extract"])] == [(run.name, run.after) for run in page[:3]]
    assert ["rates", "load", "report"] == [run.name for run in page[3:]]
    assert [None] * 6 == [run.note for run in page]
    assert page[:3] == beat.upcoming(limit=3)
    assert ["load"] == [run.name for run in beat.upcoming(after=NOON + 14 * HOUR) if run.after]


def test_the_expected_runs_begin_after_an_instant(beat: PgBeat) -> None:
    define(beat, "a", "0 * * * *")
    define(beat, "b", after=["a"])
    define(beat, "c", after=["a", "b"])

    for name in ("b", "c"):
        assert [100, 101] == hours(beat.upcoming(name, 2, after=NOON + 99.5 * HOUR))


def test_after_a_paused_task_nothing_is_expected(beat: PgBeat) -> None:
    shop(beat)
    define(beat, "mail", after=["clean"])
    beat.pause("extract")

    assert [[], [], []] == [beat.upcoming(name) for name in ("load", "clean", "mail")]
    assert {"alone", "rates", "report"} == {run.name for run in beat.upcoming()}
    beat.resume("extract")
    beat.pause("clean")
    assert [1, 0, 0] == [len(beat.upcoming(name, 1)) for name in ("load", "clean", "mail")]


def test_the_jitter_and_the_windows_of_all_tasks_count(beat: PgBeat) -> None:
    define(beat, "a", "0 2 * * *", jitter="30m")
    define(beat, "b", after=["a"])
    define(beat, "late", after=["a"], blackout=["cron: 0 0 * * * PT5H"])
    define(beat, "never", after=["a"], blackout=["cron: 0 0 * * * PT5H"], blackout_action="skip")

    (planned,) = beat.upcoming("a", 1)
    (expected,) = beat.upcoming("b", 1)
    (late,) = beat.upcoming("late", 1)
    assert (planned.planned_for, planned.next_run_at) == (expected.planned_for, expected.next_run_at)
    assert planned.planned_for != planned.next_run_at
    assert (planned.planned_for, NOON + 17 * HOUR) == (late.planned_for, late.next_run_at)
    assert "expected after 'a'; held back by a blackout window" == late.note
    assert "never" not in {run.name for run in beat.upcoming()}
    assert [] == beat.upcoming("never", 1)


def test_a_run_that_a_window_drops_gives_way_to_the_next_one(beat: PgBeat) -> None:
    define(beat, "a", "0 * * * *")
    define(beat, "b", after=["a"], blackout=["cron: 0 13 * * * PT2H"], blackout_action="skip")

    assert [3, 4] == hours(beat.upcoming("b", 2))
    assert [3] == hours([run for run in beat.upcoming() if run.name == "b"])


def test_the_bounds_of_a_row_without_a_schedule_count(beat: PgBeat) -> None:
    define(beat, "a", "0 * * * *")
    define(beat, "b", after=["a"], start_at=NOON + 5 * HOUR, end_at=NOON + 6 * HOUR)
    define(beat, "c", after=["a"], max_runs=2)

    assert [[5, 6], [1, 2]] == [hours(beat.upcoming(name)) for name in ("b", "c")]
    assert {"a": [1], "b": [5], "c": [1]} == {run.name: hours([run]) for run in beat.upcoming()}


def test_an_occurrence_that_was_left_out_is_awaited_again(beat: PgBeat, session: Session) -> None:
    define(beat, "a", "0 2 * * *")
    define(beat, "b", after=["a"])
    for reason, due in (("overlap", 14), ("not_sent", 0)):
        finished(session, "a", NOON + timedelta(seconds=1), "skipped", reason)

        assert [due] == hours(beat.upcoming("b", 1))


def finished(session: Session, name: str, at: datetime, state: str = "succeeded", reason: str | None = None) -> None:
    session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, reason, task, created_at, "
        "finished_at) values (gen_random_uuid(), %s, %s, 'schedule', %s, %s, 'app.probe', %s, %s)",
        name,
        at,
        state,
        reason,
        at,
        at,
    )


def test_of_a_task_that_has_run_since_the_next_one_is_not_awaited(beat: PgBeat, session: Session, clock: Clock) -> None:
    shop(beat)
    beat.database.execute(
        "update pgbeat.periodic_task set next_run_at = %(at)s, planned_for = %(at)s, "
        "revision = revision + 1, planned_revision = revision + 1 where name = 'extract'",
        {"at": NOON + 38 * HOUR},
    )
    finished(session, "extract", NOON + 14 * HOUR)
    clock.stand_at(NOON + 14.5 * HOUR)

    assert [15, 39] == hours(beat.upcoming("load", 2))
    assert [14.5, 38] == hours(beat.upcoming("clean", 2)), "it is due when a beat looks at it"
    assert NOON + 14 * HOUR == beat.upcoming("clean", 1)[0].planned_for
    assert {"clean": 14.5, "load": 15} == {
        run.name: (run.next_run_at - NOON) / HOUR for run in beat.upcoming() if run.after
    }


def test_a_job_that_is_under_way_counts_as_its_occurrence(beat: PgBeat, session: Session) -> None:
    define(beat, "a", "0 2 * * *")
    define(beat, "b", after=["a"])
    session.rows("select pgbeat.trigger('a')")
    session.rows("update pgbeat.active_job set scheduled_for = scheduled_for + interval '1 second'")

    first, second = beat.upcoming("b", 2)

    assert (NOON + timedelta(seconds=1), NOON + 14 * HOUR) == (first.planned_for, second.planned_for)


def test_a_row_that_is_due_has_its_run_and_then_what_is_expected(beat: PgBeat, session: Session) -> None:
    shop(beat)
    session.rows(
        "update pgbeat.periodic_task set next_run_at = pgbeat.now(), planned_for = pgbeat.now(), "
        "revision = revision + 1, planned_revision = revision + 1 where name = 'clean'"
    )

    assert [(0, None), (14, ["extract"])] == [
        ((run.next_run_at - NOON) / HOUR, run.after) for run in beat.upcoming("clean", 2)
    ]
    assert [("clean", None)] == [(run.name, run.after) for run in beat.upcoming(limit=1)]
    assert 1 == [run.name for run in beat.upcoming()].count("clean")


def test_without_the_zone_of_a_task_before_it_no_run_is_known(beat: PgBeat, run: Run) -> None:
    beat.schedule("a", "shop.report", "0 3 * * *")
    beat.schedule("b", "shop.report", after=["a"])

    with pytest.raises(UnknownTimezone, match="'a' has no timezone yet"):
        beat.upcoming("b")
    assert "No run is known yet" in run("upcoming", "b").stdout
    assert "known once the first beat" in run("add", "c", "--task", "x", "--after", "a").stdout


# The command line.


def test_the_shell_prints_the_graph_as_a_tree(beat: PgBeat, run: Run) -> None:
    shop(beat)
    beat.pause("clean", until=timedelta(days=3))

    lines = run("graph", "--utc").stdout.splitlines()

    assert [
        "NAME          STATE                              RUNS",
        "extract       waiting                            0 2 * * *",
        "├─ clean      paused until 2026-12-10 12:00:00Z  after 'extract' (finish)",
        "│  └─ report  -                                  see below",
        "└─ load       -                                  see below",
        "rates         waiting                            0 3 * * *",
        "└─ load       after other tasks                  after 'extract' and 'rates'",
        "   └─ report  waiting                            0 6 * * *, after 'load' and 'clean'",
    ] == lines


def test_the_shell_prints_the_graph_of_one_task_as_dot_and_as_json(beat: PgBeat, run: Run) -> None:
    shop(beat)

    dot = run("graph", "clean", "--dot").stdout
    assert '    "extract" -> "clean" [style=dashed]\n    "clean" -> "report" [style=solid]\n}\n' in dot
    assert "rates" not in dot.replace("'load'", "")
    found = json.loads(run("graph", "clean", "--json").stdout)
    assert ["extract", "clean", "report"] == [node["name"] for node in found]
    assert {
        "name": "clean",
        "schedule": None,
        "after": ["extract"],
        "after_condition": "finish",
        "state": "after other tasks",
    } == found[1]
    assert "not both" in run("graph", "--dot", "--json").stderr


def test_without_a_dependency_the_shell_says_how_to_make_one(run: Run, session: Session) -> None:
    session.insert("a")
    session.insert("b c")

    assert "No periodic task runs after another: `celery-pgbeat" in run("graph").stdout
    said = run("graph", "b c").stdout
    assert said.startswith("'b c' runs after no other periodic task, and none after it: `celery-pgbeat ")
    assert said.endswith("edit 'b c' after=OTHER` has it run after OTHER.\n")
    assert [] == json.loads(run("graph", "--json").stdout)
    assert 0 == run("edit", "b c", "after=a").exit_code
    assert "└─ b c" in run("graph").stdout


def test_the_shell_suggests_the_name_that_was_meant(run: Run, session: Session) -> None:
    session.insert("nightly")

    result = run("graph", "nigthly")

    assert (1, "Error: No periodic task is named 'nigthly'. Did you mean 'nightly'?\n") == (
        result.exit_code,
        result.stderr,
    )


def test_the_shell_says_what_is_expected_after_what(beat: PgBeat, run: Run) -> None:
    shop(beat)

    lines = {line.split()[0]: line for line in run("upcoming", "--utc").stdout.splitlines()}
    assert lines["load"].endswith("  after 'extract' and 'rates'")
    assert lines["extract"].endswith("  -")
    found = {row["name"]: row["after"] for row in json.loads(run("upcoming", "--json").stdout)}
    assert (["extract"], None) == (found["clean"], found["report"])
    assert "expected after 'extract'" in run("upcoming", "clean").stdout
    assert (
        "The next run: Tue 2026-12-08 02:00:00Z (UTC), expected after 'extract'\n"
        in run("add", "new", "--task", "x", "--after", "extract", "--timezone", "UTC").stdout
    )
    beat.pause("extract")
    assert "No further run: a task after which it runs has no further run.\n" in run("upcoming", "clean").stdout
