"""The Python door: rows declared, read and commanded."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import psycopg2
import psycopg2.extras
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.orm import Session

from celery_pgbeat.api import Backfill, Job, PeriodicTask, PgBeat
from celery_pgbeat.declare import KNOWN_OPTIONS, cron, every
from celery_pgbeat.declare.columns import READERS
from celery_pgbeat.errors import (
    DatabaseUnavailable,
    InvalidPeriodicTask,
    InvalidSchedule,
    InvalidSetting,
    JobInTheWay,
    SchemaMissing,
    UnknownJob,
    UnknownPeriodicTask,
)
from celery_pgbeat.postgres.engine import normalise_url
from tests.harness.cost import slowness

UTC = timezone.utc
FAR = datetime(3000, 1, 1, tzinfo=UTC)
OLD = datetime(2020, 1, 1, tzinfo=UTC)
HIDDEN = {
    "schedule_set_at",
    "planned_from",
    "judged_from",
    "taken_over",
    "mark_lease",
    "pickup_deadline",
    "planned_ahead",
    "due_ahead",
    "lazy",
    "declared",
    "declared_timezone",
    "windows_used",
    "windows_revision",
    "failures_from",
    "decided_anew_at",
}


def written(beat: PgBeat, name: str) -> tuple[Any, ...]:
    """What changes with every write to a row."""
    (row,) = beat.database.execute(
        "select xmin::text, ctid::text from pgbeat.periodic_task where name = %(name)s", {"name": name}
    )
    return tuple(row)


def plan(beat: PgBeat, name: str, next_run_at: datetime = FAR) -> None:
    """Plan a row as a beat does."""
    beat.database.execute(
        "update pgbeat.periodic_task set planned_revision = revision, next_run_at = %(at)s where name = %(name)s",
        {"at": next_run_at, "name": name},
    )


def test_a_declared_row_is_stored_with_the_defaults_and_waits_to_be_planned(beat: PgBeat) -> None:
    row = beat.schedule("nightly", "shop.report", cron("0 3 * * *", timezone="Europe/Berlin"))

    assert row == beat.get("nightly")
    assert (row.schedule, row.timezone, row.overlap, row.catchup) == ("0 3 * * *", "Europe/Berlin", "skip", "latest")
    assert (row.enabled, row.managed_by, row.next_run_at, row.args, row.kwargs) == (True, "api", None, [], {})


# What only a task for people may have, which may not have all the rest.
FOR_PEOPLE: dict[str, Any] = {"kind": "human", "target": ["finance", "ann"], "due_in": timedelta(hours=4)}
AFTER: dict[str, Any] = {"after": ["all", "people"], "after_condition": "finish"}


def test_every_column_that_is_declared_is_stored(beat: PgBeat) -> None:
    columns: dict[str, Any] = {
        "args": [1, Decimal("1.5"), datetime(2026, 1, 1)],
        "kwargs": {"box": UUID(int=7)},
        "queue": "fast",
        "priority": 7,
        "options": {"expires": 60, "headers": {"a": "ü"}},
        "sensitive": True,
        "timezone": "Asia/Tokyo",
        "anchor": datetime(2026, 1, 1, tzinfo=UTC),
        "dst": "skip",
        "start_at": datetime(2026, 1, 2, tzinfo=UTC),
        "end_at": datetime(2027, 1, 2, 0, 0, 0, 123456, tzinfo=UTC),
        "max_runs": 5,
        "jitter": timedelta(minutes=2, microseconds=1),
        "overlap": "allow",
        "catchup": "all",
        "catchup_window": timedelta(days=40, microseconds=1),
        "catchup_limit": 7,
        "min_gap": timedelta(seconds=55),
        "max_run_time": timedelta(minutes=30),
        "blackout": ['cron: 0 0 * * sat P2D; window: "ü", {it\'s}', "RRULE:FREQ=DAILY;BYHOUR=0 PT30S"],
        "blackout_action": "skip",
        "submitter": "anna",
        "subject": "the inbox",
        "group_name": "mail",
        "pause_after_failures": 3,
        "on_lost": "rerun",
        "on_error": "ask",
        "tracking": "send",
    }

    row = beat.schedule("all", "mail.poll", every("5m"), **columns)

    assert set(READERS) == {*columns, *FOR_PEOPLE, *AFTER}
    assert columns == {name: getattr(row, name) for name in columns}
    people = beat.schedule("people", None, every("5m"), **FOR_PEOPLE)
    assert {"task": None, **FOR_PEOPLE} == {name: getattr(people, name) for name in ("task", *FOR_PEOPLE)}
    last = beat.schedule("last", "mail.poll", **AFTER)
    assert AFTER == {name: getattr(last, name) for name in AFTER}
    for name, value in columns.items():
        beat.schedule("one", "mail.poll", every("5m"))
        alone: dict[str, Any] = {name: value}
        assert value == getattr(beat.schedule("one", "mail.poll", every("5m"), **alone), name)


def test_an_equal_declaration_writes_nothing_and_leaves_a_mark_on(beat: PgBeat) -> None:
    declare = lambda: beat.schedule("x", "t", every("5m"), kwargs={"a": 1.0}, max_run_time="1h")  # noqa: E731
    declare()
    beat.database.execute("update pgbeat.periodic_task set marked_by = 'beat-a', marked_at = pgbeat.now()")
    before = written(beat, "x")

    again = declare()

    assert before == written(beat, "x")
    assert again.marked_by == "beat-a"


def test_windows_given_as_text_and_as_a_list_are_equal_and_none_at_all_is_another_thing(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@daily", blackout="cron: 0 0 * * * PT5H", jitter="90s")
    before = written(beat, "x")

    again = beat.schedule("x", "t", "@daily", blackout=("cron: 0 0 * * * PT5H",), jitter=90)

    assert before == written(beat, "x")
    assert (["cron: 0 0 * * * PT5H"], "defer", timedelta(seconds=90)) == (
        again.blackout,
        again.blackout_action,
        again.jitter,
    )
    assert beat.schedule("x", "t", "@daily", blackout=[]).blackout == []
    assert beat.schedule("x", "t", "@daily").blackout is None


def test_a_window_of_an_unknown_name_is_stored(beat: PgBeat) -> None:
    assert beat.schedule("x", "t", "@daily", blackout="window: later").blackout == ["window: later"]


def test_an_equal_declaration_wakes_no_beat(beat: PgBeat, migrated_database: str) -> None:
    beat.schedule("x", "t", "@daily")
    with psycopg.connect(plain_url(migrated_database), autocommit=True) as listener:
        listener.execute("listen pgbeat")
        beat.schedule("x", "t", "@daily")
        assert list(listener.notifies(timeout=0.2, stop_after=1)) == []
        beat.schedule("x", "t", "@hourly")
        assert len(list(listener.notifies(timeout=5, stop_after=1))) == 1


def test_changed_arguments_leave_the_next_run_and_take_the_mark_off(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@yearly")
    plan(beat, "x")
    beat.database.execute("update pgbeat.periodic_task set marked_by = 'beat-a', marked_at = pgbeat.now()")

    row = beat.schedule("x", "t", "@yearly", args=[1])

    assert (row.next_run_at, row.marked_by) == (FAR, None)


def test_a_changed_schedule_is_planned_anew_and_keeps_the_last_run(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@yearly")
    last = datetime(2026, 1, 1, tzinfo=UTC)
    beat.database.execute("update pgbeat.periodic_task set last_run_at = %(last)s", {"last": last})
    plan(beat, "x")

    row = beat.schedule("x", "t", "@daily")

    assert (row.next_run_at, row.last_run_at) == (None, last)
    assert row.planned_revision != row.revision


def test_the_next_run_is_kept_on_demand(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@yearly")
    plan(beat, "x")

    assert beat.schedule("x", "t", "@daily", keep_next_run=True).next_run_at == FAR
    assert beat.get("x").next_run_at == FAR
    assert beat.schedule("x", "t", "@hourly").next_run_at is None


def test_a_pause_is_never_touched_by_a_declaration(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@daily")
    beat.pause("x", reason="stocktaking")

    row = beat.schedule("x", "t", "@hourly", args=[1])

    assert (row.enabled, row.pause_reason) == (False, "stocktaking")


def test_what_is_omitted_becomes_the_default_again(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@daily", queue="q", max_runs=3, overlap="allow", options={"expires": 1})

    row = beat.schedule("x", "t", "@daily")

    assert (row.queue, row.max_runs, row.overlap, row.options) == (None, None, "skip", {})


def test_a_new_row_may_run_at_once_and_a_known_one_does_not(beat: PgBeat) -> None:
    (before,) = beat.database.execute("select statement_timestamp()")

    first = beat.schedule("x", "t", "@yearly", run_on_start=True)
    plan(beat, "x")
    again = beat.schedule("x", "t", "@monthly", run_on_start=True)

    assert first.next_run_at is not None
    assert timedelta(0) <= first.next_run_at - before[0] < timedelta(minutes=1)
    assert again.next_run_at is None


def test_eight_sessions_that_declare_one_new_name_make_one_row(beat: PgBeat) -> None:
    barrier = threading.Barrier(8)

    def declare(number: int) -> str:
        barrier.wait(10)
        return beat.schedule("x", "t", "@daily", args=[number]).name

    with ThreadPoolExecutor(8) as pool:
        assert ["x"] * 8 == list(pool.map(declare, range(8)))
    assert len(beat.list()) == 1


def test_threads_that_come_at_once_share_one_pool_of_connections(beat: PgBeat) -> None:
    barrier = threading.Barrier(8)

    def first_use(_: int) -> int:
        barrier.wait(10)
        return id(beat.database)

    with ThreadPoolExecutor(8) as pool:
        assert 1 == len(set(pool.map(first_use, range(8))))


def test_two_sessions_that_declare_the_same_rows_in_opposite_order_do_not_deadlock(beat: PgBeat) -> None:
    names = [f"row-{number}" for number in range(300)]
    barrier = threading.Barrier(2)

    def declare(order: list[str], task: str) -> None:
        for turn in range(5):
            barrier.wait(60)
            beat.schedule_many({"name": name, "task": f"{task}{turn}", "schedule": "@daily"} for name in order)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(declare, names, "a"), pool.submit(declare, names[::-1], "b")]:
            done.result(120)
    assert len(beat.list(limit=1000)) == 300


def seconds_of_work(beat: PgBeat) -> float:
    """The processor time that we and our backend have used: unlike a clock, it does not run when others work."""
    (row,) = beat.database.execute("select pg_backend_pid()")
    backend = Path(f"/proc/{row[0]}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + sum(map(int, backend[11:13])) / os.sysconf("SC_CLK_TCK")


def test_ten_thousand_are_declared_within_five_seconds_in_one_transaction(beat: PgBeat) -> None:
    """The fastest of three counts: on a shared processor the same work may take three times as long for a while."""
    # The planner's idea of an empty table must not be used for one that fills.
    beat.database.execute("vacuum analyze pgbeat.periodic_task")
    taken = []
    for turn in "abc":
        many = [
            {
                "name": f"{turn}{n}",
                "task": "t",
                "schedule": f"{n % 60} {n % 24} * * *",
                "args": [n],
                "options": {"expires": 60},
            }
            for n in range(10_000)
        ]
        before = seconds_of_work(beat)

        beat.schedule_many(many)

        taken.append(seconds_of_work(beat) - before)
        if taken[-1] < 5 * slowness():
            break
    assert taken[-1] < 5 * slowness(), taken
    counted = beat.database.execute("select count(*) from pgbeat.periodic_task group by xmin::text")
    assert counted == [(10_000,)] * len(taken)


def test_of_many_none_is_stored_if_one_is_wrong_and_each_wrong_one_is_named(beat: PgBeat) -> None:
    many = [
        {"name": "good", "task": "t", "schedule": "@daily"},
        {"name": "late", "task": "t", "schedule": "0 25 * * *"},
        {"name": "odd", "task": "t", "schedule": "@daily", "priority": 999},
        {"name": "good", "task": "t", "schedule": "@hourly"},
        {"task": "t", "schedule": "@hourly"},
    ]

    with pytest.raises(InvalidPeriodicTask) as refusal:
        beat.schedule_many(many)

    first, *others = str(refusal.value).splitlines()
    assert first == "4 of 5 periodic tasks are wrong, none was stored:"
    assert others == [
        "  'late': '0 25 * * *': hour 25 is not in 0-23",
        "  'odd': priority 999 is not in 0-255",
        "  'good': declared twice in this batch",
        "  None: name is None, not text",
    ]
    assert beat.list() == []


def test_of_many_each_may_give_its_own_orders(beat: PgBeat) -> None:
    beat.schedule("kept", "t", "@yearly")
    plan(beat, "kept")

    beat.schedule_many(
        [
            {"name": "kept", "task": "t", "schedule": "@daily", "keep_next_run": True},
            {"name": "first", "task": "t", "schedule": "@daily", "run_on_start": True, "managed_by": "sql"},
        ]
    )

    kept, first = beat.get("kept"), beat.get("first")
    assert (kept.schedule, kept.next_run_at) == ("@daily", FAR)
    assert first.next_run_at is not None
    assert first.managed_by == "sql"


def test_what_postgres_alone_refuses_is_named_and_nothing_is_stored(beat: PgBeat) -> None:
    # Python cannot know this one: it is a constraint that somebody has added to his table.
    beat.database.execute("alter table pgbeat.periodic_task add constraint no_fools check (subject <> 'fool')")

    with pytest.raises(InvalidPeriodicTask, match="no_fools"):
        beat.schedule("x", "t", "@daily", subject="fool")

    assert beat.list() == []


def test_a_wrong_schedule_is_refused_before_the_database_is_requested() -> None:
    with pytest.raises(InvalidSchedule, match="hour 25 is not in 0-23"):
        PgBeat(url="postgresql://nobody@127.0.0.1:1/nowhere").schedule("x", "t", "0 25 * * *")


def test_a_row_that_exists_can_be_removed_once(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@daily")

    assert beat.unschedule("x")
    assert not beat.unschedule("x")


def test_a_pause_has_a_reason_a_user_and_an_end_and_a_resume_clears_them(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@daily")

    paused = beat.pause("x", "stocktaking", datetime(2030, 1, 1))
    resumed = beat.resume("x")

    assert (paused.enabled, paused.pause_reason, paused.paused_until) == (
        False,
        "stocktaking",
        datetime(2030, 1, 1, tzinfo=UTC),
    )
    assert paused.paused_by
    assert (resumed.enabled, resumed.pause_reason, resumed.paused_until) == (True, None, None)


def test_a_pause_until_no_datetime_is_refused(beat: PgBeat) -> None:
    with pytest.raises(InvalidPeriodicTask, match="until is '2030', neither a datetime nor a timedelta"):
        beat.pause("x", until="2030")  # type: ignore[arg-type]


def test_a_pause_may_last_for_a_duration(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@daily")
    before = datetime.now(UTC)

    until = beat.pause("x", until=timedelta(days=1)).paused_until

    assert until is not None
    assert timedelta(0) <= until - before - timedelta(days=1) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("until", "said"),
    [
        (datetime(2020, 1, 1), "until is 2020-01-01 00:00:00Z, which is in the past. Give a later time, or none"),
        (timedelta(0), "which is in the past"),
        (timedelta(hours=-1), "which is in the past"),
        (timedelta(days=10**7), "until is 10000000 days, 0:00:00 from now; it must be at most 366000 days"),
    ],
)
def test_a_pause_that_would_be_over_at_once_or_never_is_refused(
    beat: PgBeat, until: datetime | timedelta, said: str
) -> None:
    beat.schedule("x", "t", "@daily")

    with pytest.raises(InvalidPeriodicTask, match=said):
        beat.pause("x", until=until)
    assert beat.get("x").enabled


def test_triggering_makes_a_manual_job_and_leaves_the_next_run(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@yearly", queue="q")
    plan(beat, "x")

    job = beat.trigger("x")

    (stored,) = beat.jobs("x")
    assert (stored.id, stored.origin, stored.state, stored.queue) == (job, "manual", "pending", "q")
    assert beat.get("x").next_run_at == FAR


def test_a_job_in_the_way_refuses_a_trigger_unless_it_is_forced(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@daily")
    first = beat.trigger("x")

    with pytest.raises(JobInTheWay, match=f"{first}.*force"):
        beat.trigger("x")
    assert {first, beat.trigger("x", force=True)} == {job.id for job in beat.jobs("x")}


def test_of_twenty_triggers_at_once_one_makes_a_job_and_nineteen_are_refused(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@daily")
    barrier = threading.Barrier(20)

    def trigger(_: int) -> UUID | None:
        barrier.wait(20)
        try:
            return beat.trigger("x")
        except JobInTheWay:
            return None

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(trigger, range(20)))

    assert answers.count(None) == 19
    assert len(beat.jobs("x")) == 1


COMMANDS: dict[str, Callable[[PgBeat], Any]] = {
    "get": lambda beat: beat.get("nigthly"),
    "pause": lambda beat: beat.pause("nigthly"),
    "resume": lambda beat: beat.resume("nigthly"),
    "trigger": lambda beat: beat.trigger("nigthly"),
    "backfill": lambda beat: beat.backfill("nigthly", OLD, OLD),
    "dry run": lambda beat: beat.backfill("nigthly", OLD, OLD, dry_run=True),
    "explain": lambda beat: beat.explain("nigthly"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_name_is_answered_with_the_one_that_was_meant(beat: PgBeat, command: str) -> None:
    beat.schedule("nightly", "t", "@daily")

    with pytest.raises(UnknownPeriodicTask, match=r"No periodic task is named 'nigthly'\. Did you mean 'nightly'\?"):
        COMMANDS[command](beat)


def test_rows_are_listed_in_name_order_a_page_at_a_time(beat: PgBeat) -> None:
    beat.schedule_many({"name": name, "task": "t", "schedule": "@daily"} for name in "edcba")

    first = beat.list(limit=2)
    second = beat.list(limit=2, after=first[-1].name)

    assert ["a", "b", "c", "d"] == [row.name for row in [*first, *second]]


def test_rows_are_listed_by_what_they_are(beat: PgBeat) -> None:
    beat.schedule("a", "t1", "@daily", group_name="g")
    beat.schedule("b", "t2", "@daily", managed_by="sql")
    beat.pause("b")
    beat.database.execute("update pgbeat.periodic_task set problem = 'why' where name = 'a'")

    def names(**filters: Any) -> list[str]:
        return [row.name for row in beat.list(**filters)]

    assert (names(task="t1"), names(managed_by="sql")) == (["a"], ["b"])
    assert (names(group_name="g"), names(group_name="h")) == (["a"], [])
    assert (names(enabled=True), names(enabled=False)) == (["a"], ["b"])
    assert (names(with_problem=True), names(with_problem=False)) == (["a"], ["b"])
    assert names() == ["a", "b"]


def test_rows_are_listed_by_a_pattern_of_a_shell_or_of_sql(beat: PgBeat) -> None:
    for name in ("mail-1", "mail-2", "mail_x", "100%"):
        beat.schedule(name, "t", "@daily")

    def names(like: str) -> list[str]:
        return [row.name for row in beat.list(like=like)]

    assert ["mail-1", "mail-2"] == names("mail-*") == names("mail-%")
    assert (["mail_x"], ["100%"]) == (names("mail_?"), names("*%"))
    assert (["mail-1"], []) == (names("mail-1"), names("mail"))


def test_nodes_and_health_tell_which_beats_live_and_how_long_a_row_waits(beat: PgBeat) -> None:
    assert ([], False, None) == (beat.nodes(), beat.health().healthy, beat.health().last_seen_at)
    beat.database.execute(
        "insert into pgbeat.node (id, role, hostname, pid, version, last_seen_at) values "
        "('b', 'beat', 'here', 7, '1', pgbeat.now()), ('w', 'worker', 'there', 8, '1', pgbeat.now() - interval '1h')"
    )

    alive, dead = beat.nodes()
    assert ("beat", "here", 7, True) == (alive.role, alive.hostname, alive.pid, alive.alive)
    assert ("worker", False, False) == (dead.role, dead.alive, dead.tracking)
    assert timedelta(minutes=59) < dead.silent_for < timedelta(minutes=61)
    assert (True, 1, timedelta(0)) == (beat.health().healthy, beat.health().beats, beat.health().lag)
    assert (False, 0) == (beat.health(hostname="there").healthy, beat.health(hostname="there").beats)

    beat.schedule("x", "t", "@daily")
    plan(beat, "x", OLD)
    health = beat.health()
    assert (False, 1, timedelta(seconds=32)) == (health.healthy, health.beats, health.max_lag)
    assert health.lag > timedelta(days=365)
    assert beat.health(max_lag=timedelta(days=36_500)).healthy


def test_an_export_has_a_line_for_each_definition_of_every_page(beat: PgBeat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("celery_pgbeat.api.methods.operations.PAGE", 2)
    beat.schedule_many({"name": f"row-{number}", "task": "t", "args": [number]} for number in range(5))
    beat.schedule("other", "t", every("1m"), managed_by="ops", max_run_time="30m")

    assert [f"row-{number}" for number in range(5)] == [json.loads(line)["name"] for line in beat.export(like="row-*")]
    (line,) = beat.export(managed_by="ops")
    assert {
        "name": "other",
        "task": "t",
        "schedule": "every 1m",
        "max_run_time": "30m",
        "managed_by": "ops",
    } == json.loads(line)


def test_jobs_are_listed_by_name_and_state_the_latest_first(beat: PgBeat) -> None:
    for name in "ab":
        beat.schedule(name, "t", "@daily", overlap="allow")
    jobs = [beat.trigger("a"), beat.trigger("b"), beat.trigger("a")]
    beat.database.execute("update pgbeat.active_job set state = 'sent' where id = %(id)s", {"id": str(jobs[0])})

    assert [jobs[2], jobs[0]] == [job.id for job in beat.jobs("a")]
    assert [jobs[0]] == [job.id for job in beat.jobs(state="sent")]
    assert [jobs[2]] == [job.id for job in beat.jobs(limit=1)]


def plain_url(url: str) -> str:
    return normalise_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def engine(url: str, driver: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(normalise_url(url).set(drivername=f"postgresql+{driver}"))


CONNECTIONS: dict[str, Callable[[str], Any]] = {
    "sqlalchemy on psycopg2": lambda url: engine(url, "psycopg2").connect(),
    "sqlalchemy on psycopg": lambda url: engine(url, "psycopg").connect(),
    "session": lambda url: Session(engine(url, "psycopg2")),
    "psycopg2": lambda url: psycopg2.connect(plain_url(url)),
    "psycopg2 with dict rows": lambda url: psycopg2.connect(
        plain_url(url), cursor_factory=psycopg2.extras.RealDictCursor
    ),
    "psycopg": lambda url: psycopg.connect(plain_url(url)),
    "psycopg with dict rows": lambda url: psycopg.connect(plain_url(url), row_factory=dict_row),
}


@pytest.fixture(params=CONNECTIONS)
def theirs(request: pytest.FixtureRequest, migrated_database: str) -> Iterator[Any]:
    """A connection of the caller's own, of each kind."""
    connection = CONNECTIONS[request.param](migrated_database)
    bind = getattr(connection, "engine", None) or getattr(connection, "bind", None)
    yield connection
    connection.close()
    if bind is not None:
        bind.dispose()


def test_a_declaration_joins_the_transaction_of_the_caller(beat: PgBeat, theirs: Any) -> None:
    row = beat.schedule("x", "t", every("5m"), args=[Decimal(1)], max_run_time=1.5, connection=theirs)

    assert (row.args, row.max_run_time, row.created_at.tzinfo) == ([Decimal(1)], timedelta(seconds=1.5), UTC)
    assert beat.list() == []
    theirs.rollback()
    assert beat.list() == []
    beat.schedule("x", "t", every("5m"), connection=theirs)
    theirs.commit()
    assert ["x"] == [row.name for row in beat.list()]


class WrappingCursor(psycopg2.extensions.cursor):
    """Raises an error of its own for one of the driver, as the cursors of Django do."""

    def execute(self, query: Any, vars: Any = None) -> None:
        try:
            super().execute(query, vars)
        except psycopg2.Error as error:
            raise RuntimeError("of a framework") from error


def test_what_postgres_refuses_is_our_error_on_the_connection_of_a_framework(
    beat: PgBeat, migrated_database: str
) -> None:
    with closing(psycopg2.connect(plain_url(migrated_database), cursor_factory=WrappingCursor)) as connection:
        with pytest.raises(UnknownPeriodicTask, match="'nightly'"):
            beat.trigger("nightly", connection=connection)
        connection.rollback()
        with pytest.raises(UnknownJob, match="There is no job"):
            beat.retry_job(UUID(int=7), connection=connection)
        connection.rollback()
        beat.schedule("x", "t", connection=connection)
        beat.trigger("x", connection=connection)
        with pytest.raises(JobInTheWay, match="'x' is not final"):
            beat.trigger("x", connection=connection)


def test_every_method_joins_the_transaction_of_the_caller(beat: PgBeat, theirs: Any) -> None:
    beat.schedule_many([{"name": "x", "task": "t", "schedule": "@daily", "run_on_start": True}], connection=theirs)
    beat.schedule("x", "t", "@hourly", keep_next_run=True, connection=theirs)
    job = beat.trigger("x", connection=theirs)
    beat.pause("x", connection=theirs)

    assert beat.get("x", connection=theirs).next_run_at is not None
    assert [False] == [row.enabled for row in beat.list(connection=theirs)]
    assert "paused by" in beat.explain("x", connection=theirs)
    assert beat.resume("x", connection=theirs).enabled
    assert [job] == [stored.id for stored in beat.jobs("x", connection=theirs)]
    assert beat.unschedule("x", connection=theirs)
    theirs.rollback()
    assert (beat.list(), beat.jobs()) == ([], [])


def test_a_refusal_in_the_transaction_of_the_caller_is_the_same_error(beat: PgBeat, theirs: Any) -> None:
    with pytest.raises(UnknownPeriodicTask, match="No periodic task is named 'nobody'"):
        beat.trigger("nobody", connection=theirs)


@pytest.mark.parametrize("kind", [object, type("AsyncConnection", (), {})])
def test_what_is_no_connection_is_refused_by_its_type(beat: PgBeat, kind: type) -> None:
    with pytest.raises(TypeError, match=f"connection is an? {kind.__name__}"):
        beat.get("x", connection=kind())


def test_a_database_out_of_reach_is_said_without_the_password() -> None:
    beat = PgBeat(url="postgresql://shop:hush@127.0.0.1:1/shop")

    with pytest.raises(DatabaseUnavailable) as error:
        beat.list()

    assert "hush" not in str(error.value)
    assert "127.0.0.1" in str(error.value)


def test_a_database_without_our_schema_is_said_with_the_way_out(database: str) -> None:
    beat = PgBeat(url=database)

    with pytest.raises(SchemaMissing, match="run `celery-pgbeat migrate`"):
        beat.list()
    beat.close()


def test_a_missing_url_is_an_error_that_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGBEAT_URL", raising=False)

    with pytest.raises(InvalidSetting, match="pgbeat_url is not set"):
        PgBeat().list()


def test_the_url_may_come_from_the_environment(migrated_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGBEAT_URL", migrated_database)
    beat = PgBeat()

    assert beat.list() == []
    beat.close()


def test_a_forked_process_uses_connections_of_its_own(beat: PgBeat) -> None:
    (mine,) = beat.database.execute("select pg_backend_pid()")
    receiving, sending = multiprocessing.get_context("fork").Pipe(duplex=False)

    def child() -> None:
        sending.send(beat.database.execute("select pg_backend_pid()")[0][0])

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    theirs = receiving.recv()
    process.join(10)

    assert theirs != mine[0]
    assert beat.database.execute("select pg_backend_pid()")[0] == mine


def test_python_and_sql_know_the_same_options(beat: PgBeat) -> None:
    (row,) = beat.database.execute("select pgbeat.known_options()")

    assert KNOWN_OPTIONS == set(row[0])


@pytest.mark.parametrize(("table", "shape"), [("periodic_task", PeriodicTask), ("job", Job), ("backfill", Backfill)])
def test_a_row_in_python_has_a_field_for_each_public_column(beat: PgBeat, table: str, shape: Any) -> None:
    columns = beat.database.execute(
        "select column_name from information_schema.columns where table_schema = 'pgbeat' and table_name = %(table)s",
        {"table": table},
    )

    hidden, counted = HIDDEN, set()
    if shape is Backfill:
        hidden, counted = HIDDEN | {"next_at", "marked_by", "marked_at"}, {"active"}
    assert {column for (column,) in columns} - hidden == {field.name for field in fields(shape)} - counted


def test_the_sql_function_finds_a_declaration_of_the_python_api_equal(beat: PgBeat) -> None:
    beat.schedule("x", "t", "@daily", args=[1], timezone="Europe/Berlin")
    before = written(beat, "x")

    beat.database.execute(
        "select pgbeat.schedule('x', 't', '@daily', args => '[1]', timezone => 'Europe/Berlin', managed_by => 'api')"
    )

    assert before == written(beat, "x")


def test_the_repr_of_the_api_shows_no_password() -> None:
    beat = PgBeat(url="postgresql://shop:hush@localhost/shop")

    assert "hush" not in repr(beat) + repr(beat.settings) + repr(beat.database)
