"""The functions of the SQL door: schedule, unschedule, pause, resume, trigger."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg2
import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness import ticks
from tests.harness.session import PATIENCE, Session, reason
from tests.harness.ticks import HOUR, submit

FAR = datetime(3000, 1, 1, tzinfo=timezone.utc)
EVERYTHING = """
    name => 'a', task => 'app.probe', schedule => '0 9 * * *', args => '[1]', kwargs => '{"b": 2}', queue => 'q2',
    priority => 7, options => '{"expires": 60}', sensitive => true,
    timezone => 'Europe/Berlin', anchor => '2026-01-01', dst => 'once',
    start_at => '2026-02-01', end_at => '2036-02-01', max_runs => 100, jitter => '90 s', overlap => 'allow',
    catchup => 'all', catchup_window => '1 hour', catchup_limit => 7, min_gap => '55 seconds',
    max_run_time => '10 minutes',
    blackout => array['0 0 * * sat P2D', 'window: night'], blackout_action => 'skip', submitter => 'ann',
    subject => 'billing', pause_after_failures => 3, on_lost => 'rerun',
    on_error => 'ask', tracking => 'send', managed_by => 'api'"""
STATES = ["pending", "sent", "running", "retrying", "buffered"]


@pytest.fixture
def other(migrated_database: str) -> Session:
    return Session(migrated_database)


def schedule(session: Session, name: str = "a", task: str = "app.probe", text: str | None = "every 1h", **more: Any) -> dict[str, Any]:  # fmt: skip  # noqa: E501
    arguments = {"name": name, "task": task, "schedule": text, **more}
    named = ", ".join(f"{argument} => %s" for argument in arguments)
    return session.row(f"select * from pgbeat.schedule({named})", *arguments.values())


def written(session: Session) -> list[dict[str, Any]]:
    """Return where each row lies and who wrote and locked it: changes with every write, even one to equal values."""
    return session.rows("select ctid::text, xmin::text, xmax::text, name from pgbeat.periodic_task order by name")


def plan(store: BeatQueries, next_run_at: datetime, zone: str = "Asia/Tokyo") -> None:
    store.plan([ticks.planned(row, next_run_at) for row in store.unplanned(100)], zone)


def at_once(count: int, action: Callable[[int], Any]) -> list[Any]:
    """Run the action in that many threads at the same moment; return answers and errors."""
    barrier = threading.Barrier(count)
    outcomes: list[Any] = []

    def run(number: int) -> None:
        barrier.wait(PATIENCE)
        try:
            outcomes.append(action(number))
        except Exception as error:  # noqa: BLE001  (an outcome, asserted by the test)
            outcomes.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(outcomes) == count, "somebody waits for ever"
    return outcomes


# schedule


def test_schedule_inserts_a_row_with_the_defaults_of_the_table(session: Session) -> None:
    by_function = schedule(session, "a", "app.probe", "every 1h")
    by_insert = session.insert("b", task="app.probe", schedule="every 1h")

    own = ("name", "created_at", "updated_at", "schedule_set_at", "planned_from", "failures_from")
    assert {column: value for column, value in by_insert.items() if column not in own} == {
        column: value for column, value in by_function.items() if column not in own
    }


def test_schedule_takes_every_column_of_the_definition(session: Session) -> None:
    row = session.row(f"select * from pgbeat.schedule({EVERYTHING})")

    assert row == session.task("a")
    assert ("q2", 7, {"expires": 60}, "Europe/Berlin") == (
        row["queue"], row["priority"], row["options"], row["timezone"],
    )  # fmt: skip
    assert row["sensitive"]
    assert ("once", 100, timedelta(seconds=90), "allow") == (
        row["dst"], row["max_runs"], row["jitter"], row["overlap"],
    )  # fmt: skip
    assert ("all", timedelta(hours=1), 7, timedelta(minutes=10)) == (
        row["catchup"], row["catchup_window"], row["catchup_limit"], row["max_run_time"],
    )  # fmt: skip
    assert (["0 0 * * sat P2D", "window: night"], "skip") == (row["blackout"], row["blackout_action"])
    assert row["pause_after_failures"] == 3
    assert ("ann", "billing", "rerun", "send", "api") == (
        row["submitter"], row["subject"], row["on_lost"], row["tracking"], row["managed_by"],
    )  # fmt: skip


def test_schedule_takes_the_columns_of_a_task_for_people(session: Session) -> None:
    row = session.row(
        "select * from pgbeat.schedule('a', null, kind => 'human', target => array['finance'], due_in => '4 hours')"
    )

    assert row == session.task("a")
    assert (None, "human", ["finance"], timedelta(hours=4)) == (
        row["task"], row["kind"], row["target"], row["due_in"],
    )  # fmt: skip


def test_schedule_takes_what_it_comes_after(session: Session) -> None:
    session.rows("select pgbeat.schedule('a', 'app.probe')")
    row = session.row(
        "select * from pgbeat.schedule('b', 'app.probe', after => array['a'], after_condition => 'finish')"
    )

    assert row == session.task("b")
    assert (["a"], "finish") == (row["after"], row["after_condition"])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("jitter", timedelta(seconds=90)),
        ("catchup", "all"),
        ("catchup_window", timedelta(hours=1)),
        ("catchup_limit", 7),
        ("min_gap", timedelta(seconds=55)),
        ("max_run_time", timedelta(minutes=10)),
        ("blackout", ["0 0 * * sat P2D"]),
        ("blackout_action", "skip"),
        ("pause_after_failures", 3),
        ("on_lost", "rerun"),
        ("on_error", "ask"),
        ("sensitive", True),
    ],
)
def test_a_change_of_one_column_alone_is_written(session: Session, column: str, value: Any) -> None:
    schedule(session)

    assert value == schedule(session, **{column: value})[column]
    assert value == session.task("a")[column]


def test_the_arguments_bear_the_names_of_columns(session: Session) -> None:
    names = session.value(
        "select proargnames from pg_proc where proname = 'schedule' and pronamespace = 'pgbeat'::regnamespace"
    )
    columns = session.rows(
        "select attname from pg_attribute where attrelid = 'pgbeat.periodic_task'::regclass and attnum > 0"
    )

    assert set(names) - {row["attname"] for row in columns} == {"keep_next_run", "take_over"}


@pytest.mark.parametrize("definition", ["name => 'a', task => 'app.probe', schedule => 'every 1h'", EVERYTHING])
def test_an_equal_definition_writes_nothing_and_wakes_no_beat(session: Session, definition: str) -> None:
    first = session.row(f"select * from pgbeat.schedule({definition})")
    before = written(session)

    assert not session.notified_by(lambda: session.rows(f"select pgbeat.schedule({definition}, keep_next_run => true)"))
    second = session.row(f"select * from pgbeat.schedule({definition})")

    assert first == second
    assert before == written(session)


def test_a_changed_definition_wakes_the_beats(session: Session) -> None:
    schedule(session)

    assert session.notified_by(lambda: schedule(session, args="[1]"))


def test_an_equal_definition_leaves_a_live_mark(session: Session, store: BeatQueries) -> None:
    schedule(session)
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    due = store.mark(10)

    schedule(session)

    assert submit(store, due) == {"a": True}


def test_a_changed_definition_takes_a_live_mark_off_and_its_holders_submit_changes_nothing(
    session: Session, store: BeatQueries
) -> None:
    schedule(session)
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    due = store.mark(10)

    schedule(session, args="[1]")

    assert submit(store, due) == {}
    assert session.rows("select * from pgbeat.job") == []


def test_changed_arguments_leave_the_next_run(session: Session, store: BeatQueries) -> None:
    schedule(session)
    plan(store, FAR)

    row = schedule(session, args="[1]", queue="q2")

    assert (FAR, [1], "q2") == (row["next_run_at"], row["args"], row["queue"])


def test_a_changed_schedule_is_planned_anew_and_keeps_the_last_run(session: Session, store: BeatQueries) -> None:
    schedule(session)
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    submit(store, store.mark(10))
    last = session.task("a")["last_run_at"]
    assert last is not None

    row = schedule(session, text="every 2h")

    assert (None, last, 1) == (row["next_run_at"], row["last_run_at"], row["run_count"])
    assert [definition.name for definition in store.unplanned(10)] == ["a"]


def test_keep_next_run_keeps_it_although_the_schedule_changes(session: Session, store: BeatQueries) -> None:
    schedule(session)
    plan(store, FAR)

    row = schedule(session, text="every 2h", keep_next_run=True)

    assert ("every 2h", FAR) == (row["schedule"], row["next_run_at"])
    assert row == session.task("a")
    assert store.unplanned(10) == []


def test_keep_next_run_of_a_row_that_has_none_plans_it(session: Session, store: BeatQueries) -> None:
    schedule(session)

    schedule(session, text="every 2h", keep_next_run=True)

    assert [definition.schedule for definition in store.unplanned(10)] == ["every 2h"]


def test_what_is_omitted_becomes_the_default(session: Session) -> None:
    session.rows(f"select pgbeat.schedule({EVERYTHING})")

    row = schedule(session)

    assert ([], {}, None, None, {}, None) == (
        row["args"], row["kwargs"], row["queue"], row["priority"], row["options"], row["timezone"],
    )  # fmt: skip
    assert not row["sensitive"]
    assert ("default", None, "skip", "latest", None, None, "give_up", "full", "sql") == (
        row["dst"], row["max_runs"], row["overlap"], row["catchup"], row["catchup_window"], row["max_run_time"],
        row["on_lost"], row["tracking"], row["managed_by"],
    )  # fmt: skip
    assert (None, None, None, "defer", None) == (
        row["jitter"], row["catchup_limit"], row["blackout"], row["blackout_action"], row["pause_after_failures"],
    )  # fmt: skip


def test_a_pause_survives_a_new_definition(session: Session) -> None:
    schedule(session)
    session.rows("select pgbeat.pause('a', 'flood', '2999-01-01')")

    row = schedule(session, args="[1]")

    assert (False, "flood") == (row["enabled"], row["pause_reason"])
    assert row["paused_until"] is not None
    assert row["paused_by"] is not None


def test_declaring_no_zone_is_equal_to_the_zone_that_a_beat_filled_in(session: Session, store: BeatQueries) -> None:
    schedule(session, text="@daily")
    plan(store, FAR, "Asia/Tokyo")
    before = written(session)

    row = schedule(session, text="@daily")

    assert before == written(session)
    assert ("Asia/Tokyo", FAR) == (row["timezone"], row["next_run_at"])


def test_a_change_of_something_else_keeps_the_zone_that_a_beat_filled_in(session: Session, store: BeatQueries) -> None:
    schedule(session, text="@daily")
    plan(store, FAR, "Asia/Tokyo")

    row = schedule(session, text="@daily", args="[1]")

    assert ("Asia/Tokyo", FAR) == (row["timezone"], row["next_run_at"])


def test_a_zone_that_was_given_and_is_given_no_more_becomes_the_apps(session: Session, store: BeatQueries) -> None:
    schedule(session, text="@daily", timezone="Europe/Berlin")
    plan(store, FAR, "Asia/Tokyo")
    assert session.task("a")["timezone"] == "Europe/Berlin"

    schedule(session, text="@daily")
    plan(store, FAR, "Asia/Tokyo")

    assert session.task("a")["timezone"] == "Asia/Tokyo"


def test_declaring_the_zone_that_a_beat_filled_in_plans_nothing_anew(session: Session, store: BeatQueries) -> None:
    schedule(session, text="@daily")
    plan(store, FAR, "Asia/Tokyo")

    row = schedule(session, text="@daily", timezone="Asia/Tokyo")
    assert ("Asia/Tokyo", FAR, 1) == (row["timezone"], row["next_run_at"], row["revision"])
    before = written(session)
    schedule(session, text="@daily", timezone="Asia/Tokyo")

    assert before == written(session)


def test_a_wrong_definition_is_refused_and_changes_nothing(session: Session) -> None:
    before = schedule(session)

    error = session.refusal("select pgbeat.schedule('a', 'app.probe', '0 25 * * *')")

    assert ("22023", "'0 25 * * *': hour 25 is not in 0-23") == (error.pgcode, reason(error))
    assert before == session.task("a")


def test_eight_calls_for_one_new_name_make_one_row_and_no_error(migrated_database: str, session: Session) -> None:
    sessions = [Session(migrated_database) for _ in range(8)]
    names = [f"new-{number}" for number in range(20)]

    def declare_all(which: int) -> list[str]:
        return [schedule(sessions[which], name, args=f"[{which}]")["name"] for name in names]

    assert at_once(8, declare_all) == [names] * 8
    assert session.value("select count(*) from pgbeat.periodic_task") == 20


def test_schedule_waits_for_a_row_of_the_name_that_is_not_committed_yet(session: Session, other: Session) -> None:
    session.rows("begin")
    schedule(session)
    answers: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: answers.append(schedule(other, args="[1]")), daemon=True)
    thread.start()
    session.eventually_waits(other)

    session.rows("commit")
    thread.join(PATIENCE)

    assert [answer["args"] for answer in answers] == [[1]]
    assert session.task("a")["args"] == [1]


def test_a_definition_rolled_back_leaves_no_row(session: Session) -> None:
    session.rows("begin")
    schedule(session)
    session.rows("rollback")

    assert session.rows("select * from pgbeat.periodic_task") == []


def test_the_functions_work_in_a_transaction_that_reads_a_snapshot(session: Session) -> None:
    session.rows("begin isolation level serializable")
    schedule(session)
    schedule(session, args="[1]")
    session.rows("select pgbeat.trigger('a')")
    session.rows("select pgbeat.pause('a')")
    session.rows("commit")

    assert (False, [1]) == (session.task("a")["enabled"], session.task("a")["args"])
    assert len(session.rows("select * from pgbeat.job")) == 1


# unschedule, pause, resume


def test_unschedule_says_whether_there_was_a_row(session: Session) -> None:
    schedule(session)

    assert session.value("select pgbeat.unschedule('a')") is True
    assert session.value("select pgbeat.unschedule('a')") is False
    assert session.rows("select * from pgbeat.periodic_task") == []


def test_a_paused_row_says_why_until_when_and_who(session: Session) -> None:
    schedule(session)

    row = session.row("select * from pgbeat.pause('a', reason => 'flood', until => '3000-01-01 00:00Z')")

    assert row == session.task("a")
    assert (False, "flood", FAR) == (row["enabled"], row["pause_reason"], row["paused_until"])
    assert row["paused_by"] == session.value("select session_user::text")


def test_a_second_pause_has_the_last_word(session: Session) -> None:
    schedule(session)
    session.rows("select pgbeat.pause('a', 'flood', '3000-01-01')")

    row = session.row("select * from pgbeat.pause('a', 'fire')")

    assert (False, "fire", None) == (row["enabled"], row["pause_reason"], row["paused_until"])


def test_a_pause_that_is_refused_changes_nothing_and_says_what_to_do(session: Session) -> None:
    schedule(session)
    before = session.task("a")

    refused = session.refusal("select pgbeat.pause('a', until => pgbeat.now())")

    assert "Give a later time, or none: then the pause lasts until it is resumed." == refused.diag.message_hint
    assert before == session.task("a")


def notices_of(session: Session, statement: str) -> list[str]:
    session.connection.notices.clear()
    session.rows(statement)
    return [" ".join(notice.removeprefix("NOTICE:").split()) for notice in session.connection.notices]


@pytest.mark.parametrize("schedule", ["every 0.2s", "every 500ms", "every .5 seconds", "PT0.2S", "R/PT0.2S"])
def test_a_schedule_below_a_second_is_stored_with_a_notice(session: Session, schedule: str) -> None:
    insert = f"insert into pgbeat.periodic_task (name, task, schedule) values ('x', 'a.b', '{schedule}')"

    assert [f"'{schedule}': a run more often than once a second needs a lower pgbeat_min_interval"] == (
        notices_of(session, insert)
    )


@pytest.mark.parametrize(
    "schedule", ["every 1s", "every 1.5s", "every 1000ms", "every 10.5 s", "R/PT1.2S", "* * * * * *"]
)
def test_a_schedule_of_a_second_or_more_has_no_notice(session: Session, schedule: str) -> None:
    insert = f"insert into pgbeat.periodic_task (name, task, schedule) values ('x', 'a.b', '{schedule}')"

    assert [] == notices_of(session, insert)


def test_a_resume_says_if_nothing_was_paused_and_what_else_keeps_the_row_still(
    session: Session, store: BeatQueries
) -> None:
    schedule(session)
    plan(store, FAR)
    resume = "select pgbeat.resume('a')"

    assert ["'a' was not paused"] == notices_of(session, resume)
    session.rows("select pgbeat.pause('a')")
    assert [] == notices_of(session, resume)
    session.rows("update pgbeat.periodic_task set group_name = 'g'; select pgbeat.pause_group('g', 'why')")
    assert [
        "'a' was not paused",
        "'a' has no next run: its group 'g' is paused (why); resume_group() resumes a group",
    ] == notices_of(session, resume)
    session.rows("select pgbeat.resume_group('g'); update pgbeat.periodic_task set schedule = null")
    session.rows("select pgbeat.pause('a')")
    assert ["'a' has no next run: it has no schedule, only trigger() starts it"] == notices_of(session, resume)


def test_a_resumed_row_is_planned_from_now_and_forgets_its_pause(session: Session, store: BeatQueries) -> None:
    schedule(session)
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    session.rows("select pgbeat.pause('a', 'flood')")

    row = session.row("select * from pgbeat.resume('a')")

    assert row == session.task("a")
    assert (True, None, None, None) == (row["enabled"], row["pause_reason"], row["paused_by"], row["next_run_at"])
    assert [definition.name for definition in store.unplanned(10)] == ["a"]


def test_to_resume_a_row_that_is_not_paused_leaves_it_as_it_is(session: Session, store: BeatQueries) -> None:
    schedule(session)
    plan(store, FAR)
    before = session.task("a")

    assert before == session.row("select * from pgbeat.resume('a')")


@pytest.mark.parametrize("call", ["pause(%s)", "resume(%s)", "trigger(%s)"])
@pytest.mark.parametrize("slip", ["nigthly", "nightl", "nightlyy", "nichtly", "Nightly"])
def test_an_unknown_name_is_refused_with_the_one_that_may_have_been_meant(
    session: Session, call: str, slip: str
) -> None:
    schedule(session, "nightly")

    error = session.refusal(f"select pgbeat.{call}", slip)

    assert error.pgcode == "P0002"
    assert reason(error) == f"No periodic task is named '{slip}'. Did you mean 'nightly'?"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("trigger(null)", "name is null, not the name of a periodic task"),
        ("pause(null)", "name is null, not the name of a periodic task"),
        ("resume(null)", "name is null, not the name of a periodic task"),
        ("explain(null)", "name is null, not the name of a periodic task"),
        ("pause('a', until => 'infinity')", "paused_until is infinity, outside the years 1 to 9999"),
        ("pause('a', until => '2020-01-01')", "until is 2020-01-01 00:00:00Z, which is in the past"),
        ("pause('a', repeat('x', 1001))", "pause_reason has 1001 characters, more than 1000"),
        ("schedule('b', 'app.probe', priority => 70000)", "priority 70000 is not in 0-255"),
        ("schedule('b', 'app.probe', start_at => 'infinity')", "start_at is infinity, outside the years 1 to 9999"),
        ("schedule(null, 'app.probe')", "name is null, not 1 to 200 characters"),
        ("limit_group('g', 0)", "max_active is 0, not at least 1"),
        ("limit_group(null, 1)", "name is null, not 1 to 200 characters"),
        ("pause_group(null)", "name is null, not the name of a group"),
        ("resume_group(null)", "name is null, not the name of a group"),
    ],
)
def test_an_argument_that_can_never_be_right_is_refused_in_our_words(session: Session, call: str, message: str) -> None:
    session.insert("a", sensitive=True, kwargs='{"password": "s3cret"}')

    refused = session.refusal(f"select pgbeat.{call}")

    assert ("22023", message) == (refused.pgcode, reason(refused))
    assert "s3cret" not in str(refused)


def test_a_pause_reason_from_before_there_was_a_bound_hinders_no_other_write(session: Session) -> None:
    session.insert("a", enabled=False)
    session.rows("set session_replication_role = replica")
    session.rows("update pgbeat.periodic_task set pause_reason = repeat('x', 5000)")
    session.rows("set session_replication_role = default")

    session.rows("select pgbeat.resume('a')")

    assert (True, None) == (session.task("a")["enabled"], session.task("a")["pause_reason"])


def test_a_name_that_none_can_have_is_not_searched_for_similar_ones(session: Session) -> None:
    session.rows("set statement_timeout = '2s'")  # 2,000 letters took 5 s, 5,000 more than 100

    assert "P0002" == session.refusal("select pgbeat.explain(repeat('a', 1000000))").pgcode


def test_no_name_is_suggested_that_is_not_alike(session: Session) -> None:
    schedule(session, "nightly")

    error = session.refusal("select pgbeat.pause('weekly')")

    assert reason(error) == "No periodic task is named 'weekly'."


# trigger


def triggered(session: Session, name: str = "a") -> dict[str, Any]:
    job = session.value("select pgbeat.trigger(%s)", name)
    return session.row("select * from pgbeat.active_job where id = %s", job)


def leave_job(session: Session, name: str = "a", state: str = "running", exclusive: bool = True) -> str:
    """Leave a job that is not final, as a submit, a backfill or a worker may have."""
    job = str(uuid.uuid4())
    session.rows(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until, wait_reason) values (%s, %s, pgbeat.now(), 'schedule', %s, "
        "%s, 'app.probe', '{}', 'give_up', 'full', '1 hour', pgbeat.now() + interval '1 hour', %s)",
        job, name, state, exclusive, "predecessor" if state == "buffered" else None,
    )  # fmt: skip
    return job


def test_a_trigger_makes_a_manual_job_that_any_beat_may_send(session: Session, store: BeatQueries) -> None:
    session.rows(
        "select pgbeat.schedule('a', 'app.probe', '@daily', args => '[1]', kwargs => '{\"b\": 2}', queue => 'q2', "
        "priority => 7, options => '{\"expires\": 60}', timezone => 'Europe/Berlin', max_run_time => '1 minute', "
        "on_lost => 'rerun', tracking => 'send')"
    )

    job = triggered(session)

    assert ("a", "manual", "pending", True) == (job["periodic_task"], job["origin"], job["state"], job["exclusive"])
    assert ("app.probe", "q2", "rerun", "send") == (job["task"], job["queue"], job["on_lost"], job["tracking"])
    assert (None, None, None, 0) == (job["marked_by"], job["marked_at"], job["beat"], job["sends"])
    assert job["scheduled_for"] == job["created_at"]
    assert job["max_run_time"] == timedelta(minutes=1)
    assert job["message"] == {
        "args": [1], "kwargs": {"b": 2}, "priority": 7, "options": {"expires": 60}, "sensitive": False,
        "schedule": "@daily", "timezone": "Europe/Berlin",
    }  # fmt: skip
    assert [recovered.id for recovered in store.recover(10, HOUR)] == [uuid.UUID(job["id"])]


def test_a_triggered_job_waits_for_a_worker_as_long_as_its_row_says(session: Session, store: BeatQueries) -> None:
    schedule(session, "planned")
    plan(store, FAR)
    schedule(session, "unplanned")

    known, unknown = triggered(session, "planned"), triggered(session, "unplanned")

    assert (HOUR, known["created_at"] + HOUR) == (known["pickup_deadline"], known["busy_until"])
    assert unknown["busy_until"] == unknown["created_at"] + timedelta(days=1)


def test_a_trigger_leaves_the_next_run_and_counts_as_no_run(session: Session, store: BeatQueries) -> None:
    schedule(session)
    plan(store, FAR)
    before = session.task("a")

    triggered(session)

    assert before == session.task("a")


@pytest.mark.parametrize(
    "state", ["enabled = false", "schedule = null", "next_run_at = null", "max_runs = 1, run_count = 1"]
)
def test_a_paused_finished_or_schedule_less_row_is_triggered(session: Session, state: str) -> None:
    schedule(session)
    session.rows(f"update pgbeat.periodic_task set {state}")

    assert triggered(session)["state"] == "pending"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("exclusive", [True, False])
def test_a_job_that_is_not_final_refuses_a_trigger_and_is_named(session: Session, state: str, exclusive: bool) -> None:
    schedule(session)
    job = leave_job(session, state=state, exclusive=exclusive)

    error = session.refusal("select pgbeat.trigger('a')")

    assert error.pgcode == "55006"
    assert reason(error) == f"A job of 'a' is not final yet: {job} ({state})"


def test_a_job_of_another_name_refuses_nothing(session: Session) -> None:
    schedule(session)
    leave_job(session, "b")

    assert triggered(session)["exclusive"]


def test_force_sends_beside_a_job_that_is_not_final(session: Session) -> None:
    schedule(session)
    leave_job(session)

    job = session.value("select pgbeat.trigger('a', force => true)")

    assert session.value("select exclusive from pgbeat.active_job where id = %s", job) is False
    assert session.value("select count(*) from pgbeat.active_job where periodic_task = 'a'") == 2


def test_force_with_nothing_in_the_way_makes_a_job_that_is_in_the_way_of_others(session: Session) -> None:
    schedule(session)

    session.rows("select pgbeat.trigger('a', force => true)")

    assert session.value("select exclusive from pgbeat.active_job") is True
    assert session.refusal("select pgbeat.trigger('a')").pgcode == "55006"


def test_a_row_that_allows_overlap_is_triggered_as_often_as_one_likes(session: Session) -> None:
    schedule(session, overlap="allow")

    jobs = [triggered(session) for _ in range(3)]

    assert [job["exclusive"] for job in jobs] == [False] * 3


def test_of_twenty_triggers_at_once_one_makes_a_job_and_nineteen_are_refused_clearly(
    migrated_database: str, session: Session
) -> None:
    schedule(session)
    sessions = [Session(migrated_database) for _ in range(20)]

    outcomes = at_once(20, lambda which: sessions[which].value("select pgbeat.trigger('a')"))

    refused = [outcome for outcome in outcomes if isinstance(outcome, psycopg2.Error)]
    (made,) = [outcome for outcome in outcomes if outcome not in refused]
    assert [error.pgcode for error in refused] == ["55006"] * 19
    assert all(made in reason(error) for error in refused)
    assert [row["id"] for row in session.rows("select id from pgbeat.job")] == [made]


def test_a_trigger_takes_the_mark_off_and_the_submit_under_way_changes_nothing(
    session: Session, store: BeatQueries
) -> None:
    schedule(session)
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    due = store.mark(10)

    job = triggered(session)

    assert submit(store, due) == {}
    assert [row["id"] for row in session.rows("select id from pgbeat.job")] == [job["id"]]
    assert [row.name for row in store.mark(10)] == ["a"]


def test_a_trigger_that_is_not_committed_yet_delays_its_own_row_only(session: Session, store: BeatQueries) -> None:
    schedule(session, "a")
    schedule(session, "b")
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    due = store.mark(10)
    session.rows("begin")
    triggered(session, "a")

    assert submit(store, due) == {"b": True}
    session.rows("rollback")


def test_a_trigger_reaches_the_beats_after_the_commit_and_not_before(session: Session, other: Session) -> None:
    schedule(session)
    session.rows("begin")
    triggered(session)
    assert other.rows("select * from pgbeat.job") == []

    session.rows("commit")
    assert len(other.rows("select * from pgbeat.job")) == 1


def test_a_trigger_wakes_the_beats(session: Session) -> None:
    schedule(session)

    assert session.notified_by(lambda: triggered(session))


def test_a_trigger_rolled_back_leaves_no_job_and_wakes_no_beat(session: Session) -> None:
    schedule(session)

    def trigger_and_think_better_of_it() -> None:
        session.rows("begin")
        triggered(session)
        session.rows("rollback")

    assert not session.notified_by(trigger_and_think_better_of_it)
    assert session.rows("select * from pgbeat.job") == []


@pytest.mark.parametrize("force", [False, True])
def test_a_lost_job_that_turns_up_meanwhile_is_in_the_way_of_a_trigger(
    session: Session, other: Session, force: bool
) -> None:
    schedule(session)
    session.rows("begin")
    leave_job(session, state="running")  # by the worker's start, which holds no lock on the row
    outcomes: list[Any] = []

    def trigger() -> None:
        try:
            outcomes.append(other.value("select pgbeat.trigger('a', %s)", force))
        except psycopg2.Error as error:
            outcomes.append(error.pgcode)

    thread = threading.Thread(target=trigger, daemon=True)
    thread.start()
    session.eventually_waits(other)
    session.rows("commit")
    thread.join(PATIENCE)

    jobs = session.rows("select exclusive from pgbeat.active_job order by created_at")
    if force:
        assert [job["exclusive"] for job in jobs] == [True, False]
    else:
        assert outcomes == ["55006"]
        assert len(jobs) == 1
