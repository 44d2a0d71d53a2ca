"""Tasks for people: kind = 'human'. A tick makes a job and sends nothing; people pick it up, finish and release it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import psycopg2
import pytest
from celery import Celery
from celery.beat import BeatLazyFunc

from celery_pgbeat.beat.upkeep.declared import read_declared
from celery_pgbeat.errors import (
    InvalidPeriodicTask,
    JobInTheWay,
    JobNotCancellable,
    UnknownJob,
    WorkForOthers,
    WorkNotOpen,
    WorkTaken,
)
from celery_pgbeat.measures.work_announcer import WorkAnnouncer
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.engine import normalise_url
from celery_pgbeat.postgres.worker_queries import MessageCopy, Start, WorkerQueries
from celery_pgbeat.settings import Settings
from celery_pgbeat.signals import work_created
from celery_pgbeat.testing import PgBeatTest
from celery_pgbeat.worker.start.guard import StartResult, start_job
from tests.harness.kits import MakeKit
from tests.harness.ticks import LEASE
from tests.harness.wait import eventually

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
NOON = "2026-12-07T12:00Z"


@pytest.fixture
def kit(make_kit: MakeKit) -> Iterator[PgBeatTest]:
    app = Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)
    app.conf.update(result_expires=None, timezone="UTC")
    with make_kit(app, NOON, finishing=False) as made:
        yield made


def add(kit: PgBeatTest, name: str = "sign off", schedule: str | None = "every 1h", **columns: Any) -> None:
    kit.beat.schedule(name, None, schedule, **{"kind": "human", **columns})


def created(kit: PgBeatTest, **columns: Any) -> UUID:
    """Return a job that somebody may pick up."""
    add(kit, **columns)
    assert [] == kit.advance("1h")
    (job,) = kit.beat.jobs("sign off", "created")
    return job.id


def taken(kit: PgBeatTest, owner: str = "ann", **columns: Any) -> UUID:
    job = created(kit, **columns)
    assert "sign off" == kit.beat.pick_up(job, owner)
    return job


def row_of(kit: PgBeatTest, job: UUID) -> dict[str, Any]:
    (row,) = kit.beat.database.execute(
        f"select * from {kit.beat.database.schema}.job where id = %(job)s", {"job": str(job)}
    )
    return dict(row._mapping)


def told(kit: PgBeatTest, sql: str) -> Any:
    (row,) = kit.beat.database.execute(sql.replace("pgbeat.", f"{kit.beat.database.schema}."))
    return row[0]


def overdue(kit: PgBeatTest) -> list[Any]:
    return list(kit.beat.database.execute(f"select * from {kit.beat.database.schema}.overdue"))


def refused(kit: PgBeatTest, error: type[Exception], call: str, *arguments: Any, **more: Any) -> str:
    """Return the sentence with which a call is refused, once nothing has changed."""

    def everything() -> list[str]:
        schema = kit.beat.database.schema
        found = []
        for table in ("active_job", "finished_job", "open_work", "periodic_task"):
            rows = kit.beat.database.execute(f"select known::text as row from {schema}.{table} as known order by 1")
            found += [row.row for row in rows]
        return found

    before = everything()
    with pytest.raises(error) as caught:
        getattr(kit.beat, call)(*arguments, **more)
    assert before == everything()
    return str(caught.value)


def test_a_tick_makes_a_job_and_sends_no_message(kit: PgBeatTest) -> None:
    job = created(kit, target=["finance"], due_in="4h", subject="the month", kwargs={"month": 11})

    assert () == kit.sent
    found = kit.beat.job(job)
    assert ("created", None, None, None, 0) == (found.state, found.task, found.sent_at, found.owner, found.sends)
    assert kit.clock.now + 4 * HOUR == found.due_by
    assert [] == kit.advance("30m")
    assert "created" == kit.beat.job(job).state
    (mine,) = kit.beat.my_work("bob", ["finance", "sales"])
    assert (job, "created", ["finance"], "the month", {"month": 11}, False) == (
        mine.id,
        mine.state,
        mine.target,
        mine.subject,
        mine.kwargs,
        mine.overdue,
    )
    assert [] == kit.beat.my_work("bob", ["sales"])


def test_it_is_picked_up_by_one_and_finished(kit: PgBeatTest) -> None:
    job = taken(kit)

    assert f"Job {job} of 'sign off' is with 'ann'" == refused(kit, WorkTaken, "pick_up", job, "bob")
    assert "sign off" == kit.beat.pick_up(job, "ann")
    assert ("running", "ann") == (kit.beat.job(job).state, kit.beat.job(job).owner)
    assert [] == kit.beat.my_work("bob")
    (mine,) = kit.beat.my_work("ann")
    assert ("running", kit.clock.now) == (mine.state, mine.picked_up_at)
    assert "is with 'ann'" in refused(kit, WorkTaken, "finish", job, owner="bob")
    assert "is with 'ann'" in refused(kit, WorkTaken, "release", job, "bob")
    kit.beat.finish(job, "succeeded", "signed, page 3")
    found = kit.beat.job(job)
    assert ("succeeded", "ann", "signed, page 3", None) == (found.state, found.owner, found.note, found.error)
    assert [] == kit.beat.my_work("ann")
    assert "is over: succeeded" in refused(kit, WorkNotOpen, "finish", job)
    assert "is over: succeeded" in refused(kit, WorkNotOpen, "pick_up", job, "ann")
    assert "is over: succeeded" in refused(kit, WorkNotOpen, "release", job)


def test_a_failed_one_has_its_note_as_error_and_counts(kit: PgBeatTest) -> None:
    job = taken(kit, pause_after_failures=1)

    kit.beat.finish(job, "failed", "a figure is wrong", owner="ann")

    assert ("failed", "a figure is wrong") == (kit.beat.job(job).state, kit.beat.job(job).error)
    kit.tick()
    assert "pgbeat" == kit.beat.get("sign off").paused_by
    kit.beat.resume("sign off")
    made = kit.beat.retry_job(job)
    assert "created" == kit.beat.job(made.job).state


def test_what_is_released_others_may_take(kit: PgBeatTest) -> None:
    job = taken(kit, due_in="1h")
    due_by = kit.beat.job(job).due_by
    kit.clock.advance("10m")

    kit.beat.release(job, "ann")

    assert ("created", None, due_by) == (kit.beat.job(job).state, kit.beat.job(job).owner, kit.beat.job(job).due_by)
    assert "is not picked up: pick it up first" in refused(kit, WorkNotOpen, "finish", job)
    assert "is not picked up: pick it up first" in refused(kit, WorkNotOpen, "release", job)
    kit.beat.pick_up(job, "bob")
    kit.beat.finish(job)
    assert "bob" == kit.beat.job(job).owner


def test_a_target_restricts_who_may_pick_it_up(kit: PgBeatTest) -> None:
    job = created(kit, target=["finance", "ann"])

    sentence = (
        f"Job {job} of 'sign off' is for 'finance', 'ann', and 'bob' is none of them. "
        "Name the roles of the owner in targets, if one of them is meant."
    )
    assert sentence == refused(kit, WorkForOthers, "pick_up", job, "bob")
    assert sentence == refused(kit, WorkForOthers, "pick_up", job, "bob", ["sales"])
    kit.beat.pick_up(job, "bob", ["sales", "finance"])
    kit.beat.release(job)
    kit.beat.pick_up(job, "ann")


@pytest.mark.parametrize("state", ["created", "running", "buffered"])
def test_it_is_cancelled_whoever_has_it(kit: PgBeatTest, state: str) -> None:
    job = taken(kit, overlap="buffer_one") if state != "created" else created(kit)
    if state == "buffered":
        kit.advance("1h")
        (waiting,) = kit.beat.jobs("sign off", "buffered")
        assert "it cannot be picked up yet" in refused(kit, WorkNotOpen, "pick_up", waiting.id, "bob")
        job = waiting.id

    kit.beat.cancel_job(job, "not this month")

    found = kit.beat.job(job)
    assert ("revoked", True) == (found.state, str(found.error).endswith(": not this month"))
    assert str(found.error).startswith("cancelled by ")
    assert "is over: revoked" in refused(kit, JobNotCancellable, "cancel_job", job)
    assert state == "buffered" or 0 == told(kit, "select count(*) from pgbeat.open_work")


def test_a_job_of_a_worker_is_no_task_for_people_and_is_cancelled_until_it_has_failed(kit: PgBeatTest) -> None:
    kit.beat.schedule("a", "shop.report", "every 1h", overlap="buffer_one", on_error="ask")
    (sent,) = kit.advance("1h")
    kit.advance("1h")
    (waiting,) = kit.beat.jobs("a", "buffered")

    assert "is no task for people: a worker does it" in refused(kit, WorkNotOpen, "pick_up", sent.id, "ann")
    assert "is no task for people: a worker does it" in refused(kit, WorkNotOpen, "finish", sent.id)
    assert "is no task for people: a worker does it" in refused(kit, WorkNotOpen, "release", sent.id)
    kit.beat.cancel_job(waiting.id)
    assert "revoked" == kit.beat.job(waiting.id).state
    triggered = kit.beat.trigger("a", force=True)
    kit.beat.cancel_job(triggered)
    assert [] == kit.tick()
    kit.finish(sent, "failed", "E: x")
    assert "end it with fail_job()" in refused(kit, JobNotCancellable, "cancel_job", sent.id)


def test_unknown_jobs_and_bad_words_are_refused_in_one_sentence(kit: PgBeatTest) -> None:
    job = taken(kit)
    for call, *arguments in (("pick_up", "ann"), ("release",), ("finish",), ("cancel_job",)):
        assert "There is no job" in refused(kit, UnknownJob, call, uuid4(), *arguments)
        assert "an id is a UUID" in refused(kit, UnknownJob, call, "x", *arguments)

    assert "outcome is 'done', not one of succeeded, failed" in refused(kit, InvalidPeriodicTask, "finish", job, "done")
    assert "note has 1001 characters" in refused(kit, InvalidPeriodicTask, "finish", job, "failed", "n" * 1001)
    assert "reason has 1001 characters" in refused(kit, InvalidPeriodicTask, "cancel_job", job, "n" * 1001)
    assert "owner is empty" in refused(kit, InvalidPeriodicTask, "pick_up", job, "")
    assert "owner has 201 characters" in refused(kit, InvalidPeriodicTask, "pick_up", job, "o" * 201)
    assert "owner has the control character U+001B" in refused(kit, InvalidPeriodicTask, "my_work", "\x1b")
    assert "targets[1] is empty" in refused(kit, InvalidPeriodicTask, "my_work", "ann", ["a", ""])
    assert "targets has 1001 names" in refused(kit, InvalidPeriodicTask, "my_work", "ann", ["a"] * 1001)
    assert "limit is 0, not 1 to 10000" in refused(kit, InvalidPeriodicTask, "my_work", "ann", limit=0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("pgbeat.pick_up(null, 'ann')", "id is null, not the id of a job"),
        ("pgbeat.pick_up(gen_random_uuid(), null)", "owner is null, not 1 to 200 characters"),
        ("pgbeat.pick_up(gen_random_uuid(), '')", "owner has 0 characters, not 1 to 200"),
        ("pgbeat.pick_up(gen_random_uuid(), 'ann', array[null])", "targets[0] is null, not 1 to 200 characters"),
        ("pgbeat.pick_up(gen_random_uuid(), 'ann', '{}')", "There is no job"),
        ("pgbeat.release(null)", "id is null, not the id of a job"),
        ("pgbeat.finish(null, 'failed')", "id is null, not the id of a job"),
        ("pgbeat.finish(gen_random_uuid(), 'done')", "outcome is 'done', not one of succeeded, failed"),
        ("pgbeat.finish(gen_random_uuid(), null)", "outcome is null, not one of succeeded, failed"),
        ("pgbeat.finish(gen_random_uuid(), 'failed', repeat('n', 1001))", "note has 1001 characters"),
        ("pgbeat.cancel_job(null)", "id is null, not the id of a job"),
        ("pgbeat.cancel_job(gen_random_uuid(), repeat('n', 1001))", "reason has 1001 characters"),
        ("pgbeat.my_work('ann', most => 0)", "most is 0, not 1 to 10000"),
        ("pgbeat.my_work('ann', most => null)", "most is null, not 1 to 10000"),
        ("pgbeat.my_work(null)", "owner is null, not 1 to 200 characters"),
    ],
)
def test_sql_refuses_bad_words_in_one_sentence(kit: PgBeatTest, call: str, sentence: str) -> None:
    schema = kit.beat.database.schema
    url = normalise_url(str(kit.beat.settings.url)).set(drivername="postgresql")
    connection = psycopg2.connect(url.render_as_string(hide_password=False))
    with closing(connection), connection.cursor() as cursor, pytest.raises(psycopg2.Error) as caught:
        cursor.execute(f"select {call.replace('pgbeat.', f'{schema}.')}")

    assert str(caught.value).startswith(sentence)


WRONG = {
    "queue": "low",
    "priority": 3,
    "options": {"expires": 60},
    "min_gap": "5m",
    "max_run_time": "5m",
    "on_lost": "rerun",
    "on_error": "ask",
    "tracking": "send",
}


@pytest.mark.parametrize("column", WRONG)
def test_what_is_about_messages_is_refused_in_python_and_in_sql(kit: PgBeatTest, column: str) -> None:
    sentence = f"{column} is set, but kind is 'human': no message is sent of a task for people, leave it out"
    assert sentence == refused(
        kit, InvalidPeriodicTask, "schedule", "a", None, "every 1h", kind="human", **{column: WRONG[column]}
    )
    add(kit, "b")
    value = "'{\"expires\": 60}'" if column == "options" else f"'{WRONG[column]}'"
    with pytest.raises(Exception, match=sentence):
        kit.beat.database.execute(f"update {kit.beat.database.schema}.periodic_task set {column} = {value}")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"overlap": "terminate_other"}, "nothing terminates a person, use cancel_other"),
        ({"target": []}, "target is empty: name a user or a role, or leave it out for any person"),
        ({"target": ["x" * 201]}, r"target\[0\] has 201 characters, not 1 to 200"),
        ({"target": [f"x{n}" for n in range(101)]}, "target has 101 names, more than 100"),
        ({"target": ["a\nb"]}, "control character"),
        ({"due_in": timedelta(0)}, "due_in is .*; it must be more than 0"),
        ({"due_in": timedelta(days=367)}, "due_in is .*; it must be at most 366 days"),
        ({"kind": "robot", "task": "t"}, "kind is 'robot', not one of task, human"),
        ({"kind": "task", "target": ["x"], "task": "t"}, "only a task for people has a target"),
        ({"kind": "task", "due_in": "1h", "task": "t"}, "only a task for people has one"),
        ({"kind": "task"}, "task is (missing|null)"),
    ],
)
def test_bad_definitions_are_refused_in_python_and_in_sql(
    kit: PgBeatTest, columns: dict[str, Any], sentence: str
) -> None:
    given = {"kind": "human", **columns}
    task = given.pop("task", None)
    with pytest.raises(InvalidPeriodicTask, match=sentence):
        kit.beat.schedule("a", task, "every 1h", **given)
    with pytest.raises(Exception, match=sentence):
        kit.beat.database.execute(
            f"select {kit.beat.database.schema}.schedule('a', %(task)s, 'every 1h', "
            + ", ".join(f"{name} => %({name})s" for name in given)
            + ")",
            {"task": task, **given},
        )
    assert [] == kit.beat.list()


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("skip", ["created", "skipped"]),
        ("buffer_one", ["created", "buffered"]),
        ("cancel_other", ["revoked", "created"]),
        ("allow", ["created", "created"]),
    ],
)
def test_overlap_decides_as_for_all(kit: PgBeatTest, overlap: str, expected: list[str]) -> None:
    created(kit, overlap=overlap)
    assert [] == kit.advance("1h")

    found = sorted(kit.beat.jobs("sign off"), key=lambda job: job.scheduled_for)
    assert expected == [job.state for job in found]
    open_jobs = told(kit, "select count(distinct job) from pgbeat.open_work")
    assert expected.count("created") == open_jobs


def test_one_that_waited_is_open_and_counts_its_time_from_the_end_of_the_other(kit: PgBeatTest) -> None:
    job = taken(kit, overlap="buffer_one", due_in="30m")
    kit.advance("1h")
    (waiting,) = kit.beat.jobs("sign off", "buffered")
    kit.clock.advance("10m")

    kit.beat.finish(job)

    found = kit.beat.job(waiting.id)
    assert ("created", kit.clock.now + timedelta(minutes=30)) == (found.state, found.due_by)
    assert [] == kit.tick()
    assert [waiting.id] == [work.id for work in kit.beat.my_work("ann")]


def test_one_that_is_to_give_way_is_said_to_whoever_has_it(kit: PgBeatTest) -> None:
    job = taken(kit, overlap="cancel_other")
    kit.advance("1h")

    (mine,) = kit.beat.my_work("ann")
    assert (job, "cancel") == (mine.id, mine.stop_request)
    assert "asked to cancel" in kit.beat.explain("sign off")
    kit.beat.finish(job, "failed", "gave way")
    assert ["created"] == [work.state for work in kit.beat.my_work("ann")]


def test_a_group_limits_people_too(kit: PgBeatTest) -> None:
    kit.beat.limit_group("desk", 1)
    first = created(kit, group_name="desk")
    add(kit, "second", group_name="desk", due_in="1h")
    kit.beat.trigger("second")
    kit.tick()
    (waiting,) = kit.beat.jobs("second")
    assert "buffered" == waiting.state
    kit.beat.pick_up(first, "ann")
    kit.beat.finish(first)

    assert [] == kit.tick()

    found = kit.beat.job(waiting.id)
    assert ("created", kit.clock.now + HOUR) == (found.state, found.due_by)
    kit.beat.pick_up(waiting.id, "ann")
    kit.beat.finish(waiting.id)


def test_catch_up_blackout_and_pause_are_as_for_all(kit: PgBeatTest) -> None:
    add(kit, "none", catchup="none")
    add(kit, "latest")
    add(kit, "all", catchup="all", overlap="buffer_all")
    add(kit, "dark", "every 1h", blackout=["30 12 * * * PT2H"])
    add(kit, "skipping", "every 1h", blackout=["30 12 * * * PT2H"], blackout_action="skip")
    kit.tick()
    kit.clock.advance("2h 5m")
    kit.tick()
    found = {
        name: [(job.state, job.reason, job.origin) for job in reversed(kit.beat.jobs(name))]
        for name in ("none", "latest", "all", "dark", "skipping")
    }

    assert [("skipped", "too_late", "schedule")] == found["none"]
    assert {("skipped", "too_late", "schedule"), ("created", None, "catchup")} == set(found["latest"])
    assert [("created", None, "catchup"), ("buffered", None, "catchup")] == sorted(found["all"], reverse=True)
    assert [] == found["dark"] == found["skipping"]
    kit.advance("55m")
    assert ["created"] == [job.state for job in kit.beat.jobs("dark", "created")]
    assert {"created", "skipped"} == {job.state for job in kit.beat.jobs("skipping")}
    kit.beat.pause("latest")
    (open_job,) = kit.beat.jobs("latest", "created")
    kit.beat.pick_up(open_job.id, "ann")
    kit.beat.finish(open_job.id)
    kit.advance("3h")
    assert [] == kit.beat.jobs("latest", "created")


def test_a_backfill_makes_jobs_for_people(kit: PgBeatTest) -> None:
    add(kit, schedule="0 * * * *")
    kit.tick()
    kit.beat.backfill(
        "sign off", datetime(2026, 12, 7, 9, tzinfo=timezone.utc), datetime(2026, 12, 7, 11, tzinfo=timezone.utc)
    )
    kit.tick()

    for _ in range(3):
        (open_job,) = kit.beat.jobs("sign off", "created")
        assert "backfill" == open_job.origin
        kit.beat.pick_up(open_job.id, "ann")
        kit.beat.finish(open_job.id)
        assert [] == kit.tick()
    assert ["finished"] == [one.state for one in kit.beat.backfills()]


def test_one_of_a_removed_row_is_finished_all_the_same(kit: PgBeatTest) -> None:
    job = taken(kit, subject="the month")
    kit.beat.unschedule("sign off")
    kit.advance("1d")

    (mine,) = kit.beat.my_work("ann")
    assert (job, None) == (mine.id, mine.subject)
    kit.beat.finish(job)
    assert "succeeded" == kit.beat.job(job).state


def test_what_is_overdue_is_shown_everywhere(kit: PgBeatTest) -> None:
    job = created(kit, due_in="2h", target=["finance"], overlap="skip")
    assert (
        f"'sign off' is not running: job {job} waits for 'finance' to pick it up, to be done by 2026-12-07 15:00:00Z; "
        "its next run is at 2026-12-07 14:00:00Z"
    ) in kit.beat.explain("sign off")
    kit.beat.pause("sign off")
    kit.clock.advance("2h 1m")

    (late,) = overdue(kit)
    assert ("sign off", datetime(2026, 12, 7, 15, tzinfo=timezone.utc)) == (late.name, late.due_at)
    assert "waits for 'finance' to pick it up, overdue since 2026-12-07 15:00:00Z" in late.reason
    kit.beat.pick_up(job, "bob", ["finance"])
    (late,) = overdue(kit)
    assert "has been with 'bob' since 2026-12-07 15:01:00Z, overdue since" in late.reason
    assert "created, overdue" not in told(kit, "select state from pgbeat.status")
    assert "running, overdue" in told(kit, "select state from pgbeat.status")
    stuck = AdminQueries(kit.beat.database).stuck()
    assert (["work"], 1) == ([*stuck], stuck["work"]["number"])
    assert kit.beat.my_work("bob")[0].overdue
    rows = kit.beat.database.run("raise_alerts", beat="b", after=30.0, most=100, now=kit.clock.now, step=2.0)
    assert [("overdue", "sign off")] == [(row.kind, row.name) for row in rows]
    kit.beat.finish(job)
    assert [] == overdue(kit)


def test_a_person_who_works_for_days_is_neither_silent_nor_lost(kit: PgBeatTest) -> None:
    job = taken(kit)
    kit.beat.pause("sign off")
    kit.clock.advance("30d")
    kit.tick()

    assert "running" == kit.beat.job(job).state
    assert [] == overdue(kit)
    assert {} == AdminQueries(kit.beat.database).stuck()
    assert "has been with 'ann' since" in kit.beat.explain("sign off")


@pytest.mark.parametrize("state", ["created", "running"])
def test_a_forged_message_starts_and_ends_no_job_for_people(kit: PgBeatTest, state: str) -> None:
    job = created(kit) if state == "created" else taken(kit)
    before = row_of(kit, job)
    workers = WorkerQueries(kit.beat.database)

    for task in (None, "shop.report"):
        for attempt in (0, 1, 7):
            start = Start(job, 0, attempt, uuid4(), "worker-1", task=task)
            assert start_job(workers, start, DAY) in (StartResult.DUPLICATE, StartResult.FOREIGN)
            assert not workers.finish(start, "succeeded")
            assert not workers.ask(start, "E: x")
            assert not workers.retry(start, SECOND, "E: x")
            assert not workers.requeue(start, "stopped")
            assert not workers.give_up_start(start, "killed")
            workers.heartbeat("worker-1", [start], DAY)
            workers.end_unstarted(MessageCopy(job, 0, attempt), "revoked", "worker-1", error="revoked")
    beats = BeatQueries(kit.beat.database, "beat-x", LEASE)
    beats.finish_by_result([(job, "succeeded")])
    beats.judge(100, True)
    beats.recheck(100)
    beats.lower_tracking("send")

    assert before == row_of(kit, job)


def test_the_notification_names_the_job_when_the_transaction_commits(kit: PgBeatTest) -> None:
    channel = f"{kit.beat.database.schema}_work"
    url = normalise_url(str(kit.beat.settings.url)).set(drivername="postgresql")
    connection = psycopg2.connect(url.render_as_string(hide_password=False))
    connection.autocommit = True

    def heard() -> list[str]:
        """Return what was notified up to now: notifications come in the order of the commits."""
        cursor.execute("select pg_notify(%s, 'until now')", (channel,))
        eventually(lambda: "until now" in [note.payload for note in received(connection)], 10, "our own notification")
        payloads = [note.payload for note in connection.notifies]
        connection.notifies.clear()
        return payloads[:-1]

    with closing(connection), connection.cursor() as cursor:
        cursor.execute(f'listen "{channel}"')
        job = created(kit)
        assert [str(job)] == heard()
        kit.beat.pick_up(job, "ann")
        assert [] == heard()
        kit.beat.release(job)
        assert [str(job)] == heard()


def received(connection: Any) -> list[Any]:
    connection.poll()
    return list(connection.notifies)


def test_the_signal_is_sent_once_for_each_job_by_one_of_two_beats(kit: PgBeatTest) -> None:
    told_of: list[tuple[Any, ...]] = []

    def receive(sender: Any, **said: Any) -> None:
        told_of.append((sender, said["job"], said["periodic_task"], said["target"], said["due_by"]))

    app = object()
    first, second = (WorkAnnouncer(kit.beat.database, app, every=HOUR) for _ in range(2))
    work_created.connect(receive)
    try:
        job = created(kit, target=["b", "a"], due_in="1h")
        for announcer in (first, second, first):
            announcer.report(announcer.look())
        kit.beat.pick_up(job, "ann", ["a"])
        kit.beat.release(job)
        second.report(second.look())
    finally:
        work_created.disconnect(receive)

    assert [(app, job, "sign off", ["b", "a"], kit.clock.now + HOUR)] == told_of


def test_trigger_says_how_to_end_what_is_open(kit: PgBeatTest) -> None:
    created(kit)

    with pytest.raises(JobInTheWay, match="is not final yet"):
        kit.beat.trigger("sign off")
    forced = kit.beat.trigger("sign off", force=True)
    assert "created" == kit.beat.job(forced).state


def test_beat_schedule_may_declare_a_task_for_people(make_kit: MakeKit) -> None:
    app = Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)
    app.conf.update(result_expires=None, timezone="UTC")
    app.conf.beat_schedule = {
        "sign off": {"schedule": 3600, "pgbeat": {"kind": "human", "target": ["finance"], "due_in": "1h"}},
    }
    with make_kit(app, NOON, finishing=False) as kit:
        kit.advance("1h")

        row = kit.beat.get("sign off")
        assert ("human", None, ["finance"], HOUR) == (row.kind, row.task, row.target, row.due_in)
        assert ["created"] == [job.state for job in kit.beat.jobs("sign off")]
        assert () == kit.sent


def test_what_code_declares_for_people_is_checked_too() -> None:
    app = Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)
    app.conf.update(result_expires=None, timezone="UTC")
    app.conf.beat_schedule = {
        "with a queue": {"schedule": 3600, "pgbeat": {"kind": "human", "queue": "low"}},
        "lazy": {"schedule": 3600, "args": (BeatLazyFunc(str),), "pgbeat": {"kind": "human"}},
        "no task": {"schedule": 3600},
    }

    found = read_declared(app, Settings())

    reasons = {name: str(error) for name, error in found.refused.items()}
    assert {"with a queue", "lazy", "no task"} == {*reasons}
    assert "queue is set, but kind is 'human'" in reasons["with a queue"]
    assert "a BeatLazyFunc is set, but kind is 'human'" in reasons["lazy"]
    assert "task is missing" in reasons["no task"]


def test_open_work_stays_equal_to_what_is_created(kit: PgBeatTest) -> None:
    created(kit, target=["a", "b"], overlap="allow")
    kit.advance("3h")
    found = kit.beat.jobs("sign off", "created")
    kit.beat.pick_up(found[0].id, "a")
    kit.beat.cancel_job(found[1].id)

    schema = kit.beat.database.schema
    rows = kit.beat.database.execute(
        f"select job, array_agg(target order by target) as targets from {schema}.open_work group by job"
    )
    assert {(job.id, ("a", "b")) for job in found[2:]} == {(row.job, tuple(row.targets)) for row in rows}


def test_whoever_comes_while_a_transaction_changes_the_job_is_told_so(kit: PgBeatTest) -> None:
    job = created(kit)
    with kit.beat.database.engine.connect() as connection:
        transaction = connection.execution_options(isolation_level="READ COMMITTED").begin()
        kit.beat.pick_up(job, "ann", connection=connection)

        sentence = f"Another person takes or changes job {job} at this moment: look again"
        for call, *arguments in (("pick_up", "bob"), ("cancel_job",)):
            assert sentence == refused(kit, WorkTaken, call, job, *arguments)
        transaction.commit()
    assert "ann" == kit.beat.job(job).owner
