"""Many jobs started in one statement, each with arguments of its own, in SQL and Python."""

from __future__ import annotations

import json
import threading
import uuid
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import psycopg2
import pytest
from psycopg2.extras import Json

from celery_pgbeat.api import PgBeat
from celery_pgbeat.errors import InvalidPeriodicTask, JobInTheWay, UnknownPeriodicTask
from tests.harness.session import Session, reason

MANY = 2_000


@pytest.fixture
def other(migrated_database: str) -> Session:
    return Session(migrated_database)


def started(session: Session, *jobs: Any, force: bool = False) -> list[dict[str, Any]]:
    return session.rows("select * from pgbeat.trigger_many(%s, %s)", Json(list(jobs)), force)


def refused(session: Session, *jobs: Any) -> Any:
    return session.refusal("select * from pgbeat.trigger_many(%s)", Json(list(jobs)))


def arguments(session: Session, job: Any) -> tuple[Any, Any]:
    message = session.value("select message from pgbeat.active_job where id = %s", str(job))
    return message["args"], message["kwargs"]


def job_count(session: Session) -> int:
    return int(session.value("select count(*) from pgbeat.active_job"))


# SQL


def test_each_job_has_its_own_arguments_and_those_of_its_row_for_what_is_omitted_or_null(session: Session) -> None:
    session.insert("a", args="[1]", kwargs='{"a": 1, "b": 1}', overlap="allow")
    session.insert("b", args="[7]")
    jobs = [
        {"name": "b"},
        {"name": "a", "args": [2]},
        {"name": "a", "kwargs": {"a": 2}},
        {"name": "a", "args": [], "kwargs": {}},
        {"name": "a", "args": None, "kwargs": None},
    ]

    made = started(session, *jobs)

    assert [0, 1, 2, 3, 4] == [row["index"] for row in made]
    assert [job["name"] for job in jobs] == [row["name"] for row in made]
    assert [
        ([7], {}),
        ([2], {"a": 1, "b": 1}),
        ([1], {"a": 2}),  # replaced, not merged
        ([], {}),
        ([1], {"a": 1, "b": 1}),
    ] == [arguments(session, row["job"]) for row in made]
    assert ([1], {"a": 1, "b": 1}) == (session.task("a")["args"], session.task("a")["kwargs"])


def test_a_job_of_many_is_the_job_that_trigger_makes(session: Session) -> None:
    session.rows("select pgbeat.limit_group('g', 1)")
    for columns in (
        {"overlap": "skip", "queue": "q", "priority": 3, "options": '{"expires": 60}', "tracking": "send"},
        {"overlap": "allow", "sensitive": True, "on_lost": "rerun", "on_error": "ask", "max_run_time": "1 minute"},
        {"overlap": "skip", "group_name": "g"},
    ):
        session.rows("delete from pgbeat.periodic_task; delete from pgbeat.active_job")
        session.insert("alone", **columns)
        session.insert("many", **columns)
        session.rows("select pgbeat.trigger('alone', args => '[1]', kwargs => '{\"a\": 2}')")
        started(session, {"name": "many", "args": [1], "kwargs": {"a": 2}})

        alone, many = session.rows(
            "select to_jsonb(job) - array['id', 'periodic_task', 'scheduled_for', 'created_at', 'busy_until'] as job "
            "from pgbeat.active_job as job order by periodic_task"
        )
        assert alone == many


@pytest.mark.parametrize("state", ["paused", "finished", "without a schedule", "planned"])
def test_it_starts_jobs_of_a_row_in_any_state_and_moves_no_next_run(session: Session, state: str) -> None:
    columns = {
        "paused": {"schedule": "every 1h", "enabled": False},
        "finished": {"schedule": "every 1h", "max_runs": 1},
        "without a schedule": {},
        "planned": {"schedule": "every 1h", "next_run_at": "2100-01-01"},
    }[state]
    session.insert("a", **columns)
    if state == "finished":
        session.rows("update pgbeat.periodic_task set run_count = 1, next_run_at = null")
    before = session.task("a")

    started(session, {"name": "a"})

    after = session.task("a")
    assert 1 == job_count(session)
    assert {name: before[name] for name in ("next_run_at", "last_run_at", "run_count", "enabled", "revision")} == {
        name: after[name] for name in ("next_run_at", "last_run_at", "run_count", "enabled", "revision")
    }


@pytest.mark.parametrize("jobs", [None, "[]"])
def test_no_jobs_are_started_of_an_empty_array_or_of_what_jsonb_agg_returns_for_no_rows(
    session: Session, jobs: str | None
) -> None:
    assert [] == session.rows("select * from pgbeat.trigger_many(%s::jsonb)", jobs)


@pytest.mark.parametrize(
    ("jobs", "state", "said"),
    [
        ('{"name": "a"}', "22023", "jobs is a JSON object, not an array"),
        ("null", "22023", "jobs is a JSON null, not an array"),
        ('[{"name": "a"}, "b"]', "22023", "jobs[1] is a JSON string, not an object"),
        ('[{"args": [1]}]', "22023", "jobs[0] has no name of a periodic task"),
        ('[{"name": null}]', "22023", "jobs[0] has no name of a periodic task"),
        ('[{"name": "a"}, {"name": "b", "arg": []}]', "22023", "jobs[1]: has 'arg', which is none of name, args"),
        ('[{"name": "a"}, {"name": "bb"}]', "P0002", "No periodic task is named 'bb'. Did you mean 'b'?"),
        ('[{"name": "a"}, {"name": "b", "args": {}}]', "22023", "jobs[1]: args is {}, not a JSON array"),
        ('[{"name": "a"}, {"name": "b", "kwargs": 7}]', "22023", "jobs[1]: kwargs is 7, not a JSON object"),
        ('[{"name": "a", "args": [1e310]}]', "22023", "jobs[0]: args has a number of more than 309 digits"),
        ('[{"name": "a", "args": ' + "[" * 102 + "]" * 102 + "}]", "22023", "jobs[0]: args is nested more than 100"),
        (
            json.dumps([{"name": "a", "args": ["x" * 40_000]}]),  # together with those of the row
            "22023",
            "jobs[0]: args and kwargs have 70013 bytes together, more than 65536",
        ),
        (
            '[{"name": "b"}, {"name": "a"}, {"name": "b"}]',
            "55006",
            "jobs[2] is one more job of 'b', whose overlap (skip) permits one at a time: set overlap to allow",
        ),
    ],
)
def test_what_is_wrong_with_one_job_is_said_by_its_index_and_starts_none(
    session: Session, jobs: str, state: str, said: str
) -> None:
    session.insert("a", kwargs=json.dumps({"a": "x" * 30_000}))
    session.insert("b")

    error = session.refusal("select * from pgbeat.trigger_many(%s::jsonb)", jobs)

    assert state == error.pgcode
    assert said in reason(error)
    assert 0 == job_count(session)


def test_a_job_that_is_not_final_refuses_all_and_is_named_and_force_starts_all(session: Session) -> None:
    session.insert("a")
    session.insert("b")
    first = session.value("select pgbeat.trigger('b')")

    error = refused(session, {"name": "a"}, {"name": "b"})
    assert ("55006", f"A job of 'b' is not final yet: {first} (pending)") == (error.pgcode, reason(error))
    assert 1 == job_count(session)

    jobs = [{"name": name, "args": [number]} for number, name in enumerate("abab")]
    made = started(session, *jobs, force=True)

    exclusive = [
        session.value("select exclusive from pgbeat.active_job where id = %s", str(row["job"])) for row in made
    ]
    assert [True, False, False, False] == exclusive
    assert 5 == job_count(session)
    assert "55006" == refused(session, {"name": "a"}).pgcode


def test_arguments_that_a_beat_computes_when_it_sends_cannot_be_given(session: Session) -> None:
    session.insert("a")
    session.rows("update pgbeat.periodic_task set lazy = true")

    error = refused(session, {"name": "a", "args": [1]})

    assert "jobs[0]: the arguments of 'a' are computed when it is sent (BeatLazyFunc)" in reason(error)
    assert 1 == len(started(session, {"name": "a"}))


def test_no_error_quotes_the_arguments_of_a_sensitive_row(session: Session, beat: PgBeat) -> None:
    session.insert("a", sensitive=True)

    assert "jobs[0]: args is <sensitive>, not a JSON array" == reason(refused(session, {"name": "a", "args": 7}))
    assert "jobs[0]: has <sensitive>, which" in reason(refused(session, {"name": "a", "patient": "Ann"}))
    for wrong in ({"kwargs": {"patient": object()}}, {"patient": "Ann"}):
        with pytest.raises(InvalidPeriodicTask, match="<sensitive>") as error:
            beat.trigger_many(jobs=[{"name": "a", **wrong}])
        assert "patient" not in str(error.value)


def test_nothing_of_it_is_there_before_the_commit_and_nothing_after_a_rollback(
    session: Session, other: Session
) -> None:
    session.insert("a", overlap="allow")

    def start_and_think_better_of_it() -> None:
        session.rows("begin")
        started(session, *[{"name": "a", "args": [number]} for number in range(10)])
        assert 10 == job_count(session)
        assert 0 == job_count(other)
        session.rows("rollback")

    assert not session.notified_by(start_and_think_better_of_it)
    assert 0 == job_count(session)
    assert session.notified_by(lambda: started(session, {"name": "a"}))


def test_rows_are_locked_in_name_order_whatever_the_order_of_the_jobs(session: Session, other: Session) -> None:
    names = [f"row-{number}" for number in range(200)]
    for name in names:
        session.insert(name, overlap="allow")
    errors: list[psycopg2.Error] = []

    def start(which: Session, order: list[str]) -> None:
        try:
            for _ in range(5):
                started(which, *[{"name": name} for name in order])
        except psycopg2.Error as error:
            errors.append(error)

    threads = [
        threading.Thread(target=start, args=(session, names), daemon=True),
        threading.Thread(target=start, args=(other, names[::-1]), daemon=True),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert [] == errors
    assert 2_000 == job_count(session)


@pytest.mark.parametrize("force", [True, False])
def test_a_lost_job_that_turns_up_meanwhile_is_in_the_way(session: Session, other: Session, force: bool) -> None:
    """A worker starts it without a lock on the row, and commits after the other transaction has looked."""
    session.insert("a")
    session.insert("b")
    session.rows("begin")
    session.rows(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until) values (%s, 'b', pgbeat.now(), 'schedule', 'running', true, "
        "'app.probe', '{}', 'give_up', 'full', '1 hour', pgbeat.now() + interval '1 hour')",
        str(uuid.uuid4()),
    )
    outcomes: list[Any] = []

    def start() -> None:
        try:
            outcomes.append(len(started(other, {"name": "a"}, {"name": "b"}, force=force)))
        except psycopg2.Error as error:
            outcomes.append(error.pgcode)

    thread = threading.Thread(target=start, daemon=True)
    thread.start()
    session.eventually_waits(other)
    session.rows("commit")
    thread.join(30)

    assert [2 if force else "55006"] == outcomes
    assert (3 if force else 1) == job_count(session)


def test_a_job_of_many_is_retried_with_its_own_arguments(session: Session) -> None:
    session.insert("a", args="[1]", overlap="allow")
    job = started(session, {"name": "a", "args": [2]}, {"name": "a", "args": [3]})[1]["job"]
    session.rows(
        "with gone as (delete from pgbeat.active_job as job where id = %s returning job) "
        "insert into pgbeat.finished_job select final.* from gone "
        "cross join lateral pgbeat.archived(job, 'failed') as final",
        job,
    )

    again = session.row("select job, arguments_of from pgbeat.retry_job(%s::uuid)", job)

    assert "job" == again["arguments_of"]
    assert ([3], {}) == arguments(session, again["job"])


def test_thousands_of_jobs_of_one_row_are_no_more_than_one_statement_for_each_step(session: Session) -> None:
    """With a call for each job, Postgres would look through all versions of the row that the calls before have left."""
    session.insert("a", overlap="allow")
    session.rows("set statement_timeout = '20s'")

    made = session.value(
        "select count(distinct job) from pgbeat.trigger_many((select jsonb_agg(jsonb_build_object('name', 'a', "
        "'args', jsonb_build_array(number))) from generate_series(1, %s) as number))",
        MANY,
    )

    assert MANY == made
    versions = "select n_tup_upd from pg_stat_xact_user_tables where relid = 'pgbeat.periodic_task'::regclass"
    session.rows("begin")
    before = session.value(versions)
    started(session, *[{"name": "a", "args": [number]} for number in range(100)])
    assert 1 == session.value(versions) - before
    session.rows("rollback")


# Python


def test_python_writes_arguments_as_celery_does_and_returns_the_ids_in_their_order(
    beat: PgBeat, session: Session
) -> None:
    beat.schedule("a", "t", args=[1], kwargs={"a": 1}, overlap="allow")
    moment = datetime(2026, 12, 24, tzinfo=timezone.utc)

    jobs = beat.trigger_many(
        jobs=({"name": "a", **given} for given in ({"args": (moment, Decimal("1.5"))}, {"kwargs": {}}, {}))
    )

    assert all(isinstance(job, uuid.UUID) for job in jobs)
    beat.update("a", args=[moment, Decimal("1.5")])
    assert [(session.task("a")["args"], {"a": 1}), ([1], {}), ([1], {"a": 1})] == [
        arguments(session, job) for job in jobs
    ]
    assert [] == beat.trigger_many(jobs=[])


def test_python_joins_the_transaction_of_the_caller_and_commits_by_itself_without_one(
    beat: PgBeat, session: Session
) -> None:
    beat.schedule("a", "t", overlap="allow")
    with beat.database.engine.execution_options(isolation_level="READ COMMITTED").connect() as theirs:
        assert 2 == len(beat.trigger_many(jobs=[{"name": "a", "args": [1]}] * 2, connection=theirs))
        assert 0 == job_count(session)
        theirs.rollback()
    assert 0 == job_count(session)

    beat.trigger_many(jobs=[{"name": "a", "args": [1]}] * 2)

    assert 2 == job_count(session)


@pytest.mark.parametrize(
    ("job", "error", "said"),
    [
        ({"name": "b", "args": [{1}]}, InvalidPeriodicTask, r"jobs\[1\]: args\[0\] is a set that is not JSON"),
        (
            {"name": "b", "kwargs": {"day": {1}}},
            InvalidPeriodicTask,
            r"jobs\[1\]: kwargs\['day'\] is a set that is not",
        ),
        ({"name": "b", "args": "abc"}, InvalidPeriodicTask, r"jobs\[1\]: args is a str, not a list or tuple"),
        ({"name": "b", "args": ["x" * 70_000]}, InvalidPeriodicTask, r"jobs\[1\]: args and kwargs have \d+ bytes"),
        ({"name": "a", "args": ["x" * 40_000]}, InvalidPeriodicTask, r"jobs\[1\]: args and kwargs have \d+ bytes"),
        (
            {"name": "b", "arg": []},
            InvalidPeriodicTask,
            r"jobs\[1\]: has 'arg', which is none of name, args and kwargs",
        ),
        ({"args": []}, InvalidPeriodicTask, r"jobs\[1\] has no name of a periodic task: give name"),
        ("b", InvalidPeriodicTask, r"jobs\[1\] is a str, not a dict with name, args and kwargs"),
        ({"name": "b\0"}, InvalidPeriodicTask, r"jobs\[1\]: name holds the character NUL"),
        ({"name": "bb", "args": [{1}]}, UnknownPeriodicTask, "named 'bb'. Did you mean 'b'"),
        ({"name": "bb"}, UnknownPeriodicTask, r"jobs\[1\]: No periodic task is named 'bb'. Did you mean 'b'"),
        (
            {"name": "c"},
            JobInTheWay,
            r"jobs\[1\] is one more job of 'c', whose overlap \(skip\).*or start them with for",
        ),
        ({"name": "d"}, JobInTheWay, r"A job of 'd' is not final yet: .*\. Wait for its end, or send one beside it"),
    ],
)
def test_python_says_what_is_wrong_with_one_job_and_starts_none(
    beat: PgBeat, session: Session, job: Any, error: type[Exception], said: str
) -> None:
    for name in ("a", "b", "c", "d"):
        beat.schedule(name, "t", kwargs={"a": "x" * 30_000} if name == "a" else {})
    beat.trigger("d")

    with pytest.raises(error, match=said):
        beat.trigger_many(jobs=[{"name": "c"}, job])

    assert 1 == job_count(session)


def test_a_call_that_mixes_both_forms_says_which_argument_is_meant(beat: PgBeat) -> None:
    jobs: Any = [{"name": "a", "args": [1]}]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "either names or jobs"),
        ({"names": ["a"], "jobs": jobs}, "either names or jobs"),
        ({"names": jobs}, r"names has a dict: jobs with arguments of their own are jobs=\[…\] of trigger_many"),
        ({"jobs": jobs[0]}, "jobs is a dict: give a list of dicts"),
        ({"jobs": "a"}, "jobs is a str: give a list of dicts"),
        ({"jobs": jobs, "missing_ok": True}, "missing_ok is for names"),
    ]
    for given, said in wrong:
        with pytest.raises(TypeError, match=said):
            beat.trigger_many(**given)


def test_names_are_started_by_the_same_statement_and_those_in_the_way_are_left_out(
    beat: PgBeat, session: Session
) -> None:
    names = [f"row-{number:04}" for number in range(MANY)]
    beat.schedule_many({"name": name, "task": "t"} for name in names)
    busy = beat.trigger("row-0007")
    session.rows("set statement_timeout = '20s'")

    jobs = beat.trigger_many(names)

    assert names == list(jobs)
    assert ["row-0007"] == [name for name, job in jobs.items() if job is None]
    assert {busy, *(job for job in jobs.values() if job)} == {job.id for job in beat.jobs(limit=MANY)}
    assert timedelta(0) == session.value(
        "select max(created_at) - min(created_at) from pgbeat.active_job where id <> %s", str(busy)
    )
