"""What a job knows of itself, and what it may do to its own row: as any other hand would."""

from __future__ import annotations

import doctest
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from celery import Celery
from celery.app.trace import build_tracer

import celery_pgbeat.worker.stop.current
from celery_pgbeat import cron, current, every
from celery_pgbeat.errors import (
    DatabaseUnavailable,
    InvalidPeriodicTask,
    InvalidSchedule,
    NotInAJob,
    UnknownPeriodicTask,
)
from celery_pgbeat.settings import Settings
from celery_pgbeat.worker.context import WorkerContext
from celery_pgbeat.worker.start.guard import guard
from celery_pgbeat.worker.stop import running
from tests.harness.clock import Clock
from tests.harness.jobs import make_job
from tests.harness.session import Session

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)

Inside = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def session(migrated_database: str, database_clock: Clock) -> Session:
    database_clock.stand_at(NOON)
    return Session(migrated_database)


@pytest.fixture
def context(migrated_database: str) -> Iterator[WorkerContext]:
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.timezone = "Europe/Berlin"
    made = WorkerContext(app, Settings(url=migrated_database))
    made.become_main()
    yield made
    made.close()
    app.close()


@pytest.fixture
def job(context: WorkerContext, session: Session) -> uuid.UUID:
    return make_job(context.connection.database)


def task_of(context: WorkerContext, function: Callable[[], None]) -> Any:
    """Make a task as a worker has it."""
    name = f"shop.{uuid.uuid4()}"
    context.app.task(name=name, shared=False)(function)
    guard(context.app.tasks[name], context)
    return context.app.tasks[name]


@pytest.fixture
def inside(context: WorkerContext, job: uuid.UUID) -> Inside:
    """Do something inside the task of a job that has started, as a worker runs it."""

    def run(body: Callable[[], Any], **fields: Any) -> Any:
        answers: list[Any] = []

        def remember() -> None:
            answers.append(body())

        task = task_of(context, remember)
        header = {
            "periodic_task": "nightly",
            "job": str(job),
            "scheduled_for": "2026-12-07T03:00:00+01:00",
            "origin": "schedule",
            "run": 0,
        }
        request = {"id": str(job), "pgbeat": header, "timelimit": [3600, 1800], **fields}
        result = build_tracer(task.name, task, app=context.app)(str(job), (), {}, request)
        if result.info is not None:
            raise result.info.retval
        return answers[0]

    return run


def nightly(session: Session, **columns: Any) -> dict[str, Any]:
    return session.insert("nightly", **{"schedule": "0 3 * * *", "timezone": "Europe/Berlin", **columns})


def pause_of(session: Session) -> tuple[Any, ...]:
    row = session.task("nightly")
    return row["enabled"], row["pause_reason"], row["paused_by"], row["paused_until"]


# --- what it knows


def test_a_job_knows_what_its_message_and_its_start_say(inside: Inside, job: uuid.UUID) -> None:
    found = inside(current)

    assert ("nightly", job, "schedule", 0, 0) == (
        found.periodic_task,
        found.job,
        found.origin,
        found.run,
        found.attempt,
    )
    assert datetime(2026, 12, 7, 2, tzinfo=timezone.utc) == found.scheduled_for
    assert timezone.utc == found.scheduled_for.tzinfo
    assert "postgres" not in repr(found)


def test_a_message_of_celery_s_first_protocol_says_the_same(inside: Inside, job: uuid.UUID) -> None:
    header = {"periodic_task": "x", "job": str(job), "origin": "manual", "run": 0}
    header["scheduled_for"] = "2026-12-07T03:00:00+00:00"
    assert "x" == inside(lambda: current().periodic_task, pgbeat=None, headers={"pgbeat": header})


def test_the_quota_falls_to_nothing_and_not_below(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> list[timedelta | None]:
        found = [current().quota]
        began = running.monotonic()
        for seconds in (600, 1800, 7200):
            monkeypatch.setattr(running, "monotonic", lambda seconds=seconds: began + seconds)
            found.append(current().quota)
        return found

    first, later, last, after = inside(seen)
    assert timedelta(minutes=29) < first <= timedelta(minutes=30)
    assert timedelta(minutes=19) < later <= timedelta(minutes=20)
    assert [timedelta(0), timedelta(0)] == [last, after]


@pytest.mark.parametrize("timelimit", [None, [None, None], [3600, None]])
def test_a_job_without_a_soft_time_limit_has_no_quota(inside: Inside, timelimit: Any) -> None:
    assert inside(lambda: current().quota, timelimit=timelimit) is None


def test_it_reads_at_most_once_a_second_that_it_is_cancelled_and_keeps_to_it(
    inside: Inside, session: Session, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen() -> list[bool]:
        found = [current().cancelled]
        session.rows("update pgbeat.active_job set stop_request = 'cancel'")
        found.append(current().cancelled)
        began = running.monotonic()
        monkeypatch.setattr(running, "monotonic", lambda: began + running.LOOK_EVERY)
        found.append(current().cancelled)
        session.rows("update pgbeat.active_job set stop_request = null")
        found.append(current().cancelled)
        return found

    assert [False, False, True, True] == inside(seen)


def test_cancelled_is_false_while_postgres_is_out_of_reach(
    inside: Inside, context: WorkerContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object) -> None:
        raise DatabaseUnavailable("Postgres is not usable")

    def seen() -> list[bool]:
        monkeypatch.setattr(context.connection.queries, "stop_request_of", away)
        found = [current().cancelled]
        began = running.monotonic()
        monkeypatch.setattr(running, "monotonic", lambda: began + running.LOOK_EVERY)
        return [*found, current().cancelled]

    assert [False, False] == inside(seen)
    assert 1 == caplog.text.count("cannot read whether it is to stop: Postgres is not usable")


# --- where there is none


def test_where_no_job_runs_there_is_a_clear_error(context: WorkerContext, inside: Inside) -> None:
    def ask() -> None:
        current()

    other = task_of(context, ask)
    for call in (current, other, lambda: other.apply(throw=True), lambda: inside(other)):
        with pytest.raises(NotInAJob, match="No job runs here"):
            call()


def test_a_message_of_another_sender_is_no_job(inside: Inside) -> None:
    with pytest.raises(NotInAJob):
        inside(current, pgbeat=None)


def test_a_job_that_is_not_tracked_is_none(
    inside: Inside, context: WorkerContext, job: uuid.UUID, session: Session
) -> None:
    session.rows(
        "update pgbeat.active_job set check_at = 'epoch', tracking = 'send', state = 'pending', marked_by = 'beat'"
    )
    context.connection.database.run("confirm", beat="beat", jobs=[job], count=1, delays="{}")
    with pytest.raises(NotInAJob):
        inside(current)


# --- cancel


def test_a_job_that_cancels_pauses_its_row_for_good(inside: Inside, session: Session, job: uuid.UUID) -> None:
    nightly(session)
    inside(lambda: current().cancel("all is sent"))
    assert (False, "all is sent", f"job {job}", None) == pause_of(session)


def test_a_pause_that_would_have_ended_has_no_end_then(inside: Inside, session: Session) -> None:
    nightly(session, enabled=False, paused_until=NOON + HOUR)
    inside(lambda: current().cancel())
    assert (False, "cancelled by its own job", None) == (*pause_of(session)[:2], pause_of(session)[3])


def test_a_row_that_is_gone_has_no_further_run_anyway(inside: Inside) -> None:
    inside(lambda: current().cancel())


# --- snooze


@pytest.mark.parametrize(
    "until", [NOON + HOUR, HOUR, 3600, "1h", (NOON + HOUR).astimezone(timezone(timedelta(hours=-7)))]
)
def test_a_job_that_snoozes_pauses_its_row_until_then(
    inside: Inside, session: Session, job: uuid.UUID, until: Any
) -> None:
    nightly(session)
    inside(lambda: current().snooze(until))
    assert (False, "snoozed by its own job", f"job {job}", NOON + HOUR) == pause_of(session)


def test_a_snooze_lengthens_a_pause_and_never_shortens_one(inside: Inside, session: Session) -> None:
    nightly(session, enabled=False, paused_until=NOON + HOUR, pause_reason="flood")

    def snooze_twice() -> None:
        current().snooze(HOUR / 2)
        assert NOON + HOUR == session.task("nightly")["paused_until"]
        current().snooze(2 * HOUR)

    inside(snooze_twice)
    assert NOON + 2 * HOUR == session.task("nightly")["paused_until"]


def test_a_snooze_gives_no_end_to_a_pause_without_one(inside: Inside, session: Session) -> None:
    nightly(session, enabled=False, pause_reason="flood", paused_by="ann")
    inside(lambda: current().snooze(HOUR))
    assert (False, "flood", "ann", None) == pause_of(session)


@pytest.mark.parametrize("until", [NOON, NOON - HOUR, timedelta(0), -5])
def test_a_snooze_until_now_does_nothing(inside: Inside, session: Session, until: Any) -> None:
    before = nightly(session)
    inside(lambda: current().snooze(until))
    assert before == session.task("nightly")


@pytest.mark.parametrize(
    ("until", "message"),
    [
        (datetime(2026, 12, 7, 13), "until is 2026-12-07T13:00:00, a naive datetime"),
        ("soon", "until is 'soon'"),
        (None, "until is None"),
    ],
)
def test_a_snooze_until_what_is_no_time_is_refused(inside: Inside, session: Session, until: Any, message: str) -> None:
    nightly(session)
    with pytest.raises(InvalidPeriodicTask, match=message):
        inside(lambda: current().snooze(until))
    assert session.task("nightly")["enabled"]


# --- reschedule


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("every 10m", ("every 10m", "Europe/Berlin")),
        (every("10m"), ("every 10m", "Europe/Berlin")),
        (cron("0 4 * * *"), ("0 4 * * *", "Europe/Berlin")),
        (cron("0 4 * * *", timezone="Asia/Tokyo"), ("0 4 * * *", "Asia/Tokyo")),
        (90, ("every 1m30s", "Europe/Berlin")),
        (None, (None, "Europe/Berlin")),
    ],
)
def test_a_job_that_reschedules_changes_its_row_alone(
    inside: Inside, session: Session, schedule: Any, expected: tuple[Any, Any]
) -> None:
    before = nightly(session, args='["a"]', anchor=NOON, dst="once")
    other = session.insert("other", schedule="every 1h")

    inside(lambda: current().reschedule(schedule))

    row = session.task("nightly")
    assert expected == (row["schedule"], row["timezone"])
    assert ("once", NOON, ["a"]) == (row["dst"], row["anchor"], row["args"])
    assert before["revision"] < row["revision"]
    assert other == session.task("other")


def test_a_zone_that_no_beat_has_filled_in_yet_is_left_to_the_beats(inside: Inside, session: Session) -> None:
    nightly(session, timezone=None)
    inside(lambda: current().reschedule("@daily"))
    assert session.task("nightly")["timezone"] is None


@pytest.mark.parametrize(
    ("schedule", "error", "message"),
    [
        ("0 25 * * *", InvalidSchedule, "hour 25 is not in 0-23"),
        (object(), InvalidSchedule, "an object is not a schedule"),
        (0.5, InvalidPeriodicTask, "pgbeat_min_interval is 1 s"),
    ],
)
def test_a_wrong_schedule_is_refused_with_the_error_of_the_python_api(
    inside: Inside, session: Session, schedule: Any, error: type[Exception], message: str
) -> None:
    before = nightly(session)
    with pytest.raises(error, match=message):
        inside(lambda: current().reschedule(schedule))
    assert before == session.task("nightly")


def test_a_row_that_is_gone_cannot_be_rescheduled(inside: Inside) -> None:
    with pytest.raises(UnknownPeriodicTask, match="No periodic task is named 'nightly' any more"):
        inside(lambda: current().reschedule("@daily"))


# --- the documentation


def examples() -> Iterator[doctest.DocTest]:
    for found in doctest.DocTestFinder(exclude_empty=True).find(celery_pgbeat.worker.stop.current):
        if found.examples:
            yield found


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_the_examples_of_the_documentation_run(example: doctest.DocTest, inside: Inside, session: Session) -> None:
    nightly(session)
    example.globs = {**vars(celery_pgbeat.worker.stop.current), "every": every}

    result = inside(lambda: doctest.DocTestRunner(verbose=False).run(example, clear_globs=False))

    assert result.failed == 0
    assert result.attempted > 0
