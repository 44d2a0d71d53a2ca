"""Who changed what: every door leaves one entry, a tick none; and a definition can be put back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg2
import pytest
from celery import Celery

from celery_pgbeat import PgBeat
from celery_pgbeat.api import Change
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.columns import RECORDED
from celery_pgbeat.errors import InvalidPeriodicTask, UnknownPeriodicTask
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.roles import roles_script
from celery_pgbeat.postgres.statements import statement
from celery_pgbeat.settings import Settings
from tests.harness.session import Session, reason
from tests.harness.ticks import HOUR, make_due, planned, submit
from tests.harness.ticks import beat as at_work
from tests.interfaces.test_update import GIVEN

FULL: dict[str, Any] = {
    "args": [1, {"a": None}],
    "kwargs": {"box": None},
    "options": {"expires": 60},
    "timezone": "Asia/Tokyo",
    "jitter": timedelta(minutes=2, microseconds=1),
    "catchup_window": timedelta(days=36_000),
    "blackout": ["cron: 0 0 * * sat P2D"],
    "group_name": "mail",
    "queue": "fast",
    "subject": "the inbox",
    "sensitive": False,
}


@pytest.fixture
def store(migrated_database: str) -> Iterator[BeatQueries]:
    made = at_work(migrated_database)
    yield made
    made.database.close()


def role(session: Session) -> str:
    return str(session.value("select session_user::text"))


def told(changes: Any) -> list[tuple[str, str, str]]:
    return [(change.action, change.name, change.who) for change in changes]


def only(beat: PgBeat, name: str | None = None) -> Change:
    (change,) = beat.changes(name)
    return change


# What is done by SQL to the row 'nightly', a group or a window: the action, and the columns that differ.
BY_SQL: dict[str, tuple[str, str, set[str]]] = {
    "an edit": ("update pgbeat.periodic_task set queue = 'mail', priority = 3", "changed", {"queue", "priority"}),
    "an edit of arguments": ("update pgbeat.periodic_task set args = '[5]'", "changed", {"args"}),
    "a text without effect": ("update pgbeat.periodic_task set subject = 'x'", "changed", {"subject"}),
    "another manager": ("update pgbeat.periodic_task set managed_by = 'api'", "changed", {"managed_by"}),
    "an edit that pauses too": (
        "update pgbeat.periodic_task set queue = 'mail', enabled = false",
        "changed",
        {"queue", "enabled", "paused_by"},
    ),
    "another name": ("update pgbeat.periodic_task set name = 'daily'", "renamed", {"name"}),
    "a pause": ("update pgbeat.periodic_task set enabled = false", "paused", {"enabled", "paused_by"}),
    "a pause by the function": (
        "select pgbeat.pause('nightly', 'stocktaking')",
        "paused",
        {"enabled", "paused_by", "pause_reason"},
    ),
    "a removal": ("delete from pgbeat.periodic_task", "removed", set()),
    "a removal by the function": ("select pgbeat.unschedule('nightly')", "removed", set()),
    "a new row": ("insert into pgbeat.periodic_task (name, task) values ('new', 'app.probe')", "created", set()),
    "a new row by the function": ("select pgbeat.schedule('new', 'app.probe', 'every 5m')", "created", set()),
    "a definition that differs": (
        "select pgbeat.schedule('nightly', 'app.probe', 'every 5m', timezone => 'UTC')",
        "changed",
        {"schedule"},
    ),
    "an upsert": (
        "insert into pgbeat.periodic_task (name, task) values ('nightly', 'x') "
        "on conflict (name) do update set task = 'x'",
        "changed",
        {"task"},
    ),
    "the next run": ("update pgbeat.periodic_task set next_run_at = now()", "next_run_set", {"next_run_at"}),
    "a job": ("select pgbeat.trigger('nightly')", "triggered", set()),
    "jobs": ("""select pgbeat.trigger_many('[{"name": "nightly"}, {"name": "nightly"}]', true)""", "triggered", set()),
    "a backfill": ("select pgbeat.backfill('nightly', '2026-05-01', '2026-05-02')", "backfilled", set()),
    "a new group": ("select pgbeat.limit_group('g', 2)", "created", set()),
    "a window": ("insert into pgbeat.blackout (name, windows) values ('w', '{}')", "created", set()),
}


@pytest.mark.parametrize("what", BY_SQL)
def test_each_change_by_sql_leaves_one_entry_that_names_the_person(beat: PgBeat, session: Session, what: str) -> None:
    statement, action, columns = BY_SQL[what]
    session.insert("nightly", schedule="0 3 * * *", timezone="UTC")
    session.rows("truncate pgbeat.change")

    session.rows("begin")
    session.rows(
        "select set_config('pgbeat.who', 'ann@example.com', true), set_config('pgbeat.reason', 'ticket 7', true)"
    )
    session.rows(statement)
    session.rows("commit")

    change = only(beat)
    assert (action, "ann@example.com", role(session)) == (change.action, change.who, change.role)
    assert columns == set(change.columns)
    assert not columns or columns == set(change.before) == set(change.after)
    assert change.reason == ("stocktaking" if "stocktaking" in statement else "ticket 7")


def test_a_next_run_that_is_taken_away_is_recorded_with_what_it_was(beat: PgBeat, session: Session) -> None:
    session.insert("nightly", schedule="0 3 * * *", timezone="UTC", next_run_at="2026-12-08T03:00Z")
    session.rows("truncate pgbeat.change")

    session.rows("update pgbeat.periodic_task set next_run_at = null")

    change = only(beat)
    assert ({"next_run_at": "2026-12-08T03:00:00.000000+00:00"}, {"next_run_at": None}) == (
        change.before,
        change.after,
    )


def test_a_definition_is_put_back_beyond_a_next_run_that_was_set(beat: PgBeat, session: Session) -> None:
    session.insert("nightly", schedule="0 3 * * *", timezone="UTC")
    session.rows("update pgbeat.periodic_task set queue = 'mail'")
    session.rows("update pgbeat.periodic_task set next_run_at = '2026-12-08 04:00Z'")

    session.rows("select pgbeat.revert('nightly', 1)")

    assert (None, 3) == (session.task("nightly")["queue"], session.task("nightly")["revision"])


def test_without_a_person_the_role_is_who_acts(beat: PgBeat, session: Session) -> None:
    session.insert("nightly")

    assert [("created", "nightly", role(session))] == told(beat.changes())


@pytest.mark.parametrize(("setting", "value"), [("who", "x" * 201), ("who", "a\nb"), ("reason", "x" * 1001)])
def test_a_person_who_cannot_be_written_is_refused(session: Session, setting: str, value: str) -> None:
    session.rows("begin")
    session.rows(f"select set_config('pgbeat.{setting}', %s, true)", value)

    refused = session.refusal("insert into pgbeat.periodic_task (name, task) values ('new', 'app.probe')")

    assert f"pgbeat.{setting} has" in reason(refused)


def test_what_is_equal_and_what_has_no_effect_on_the_definition_leaves_no_entry(beat: PgBeat, session: Session) -> None:
    session.insert("nightly", schedule="0 3 * * *")
    session.rows("truncate pgbeat.change")

    session.rows("update pgbeat.periodic_task set queue = null, enabled = true")
    session.rows("select pgbeat.schedule('nightly', 'app.probe', '0 3 * * *')")

    assert [] == beat.changes()


def test_a_tick_leaves_no_entry(store: BeatQueries) -> None:
    session = Session(store.database.url)
    make_due(store, "due")
    session.rows("truncate pgbeat.change")

    (marked,) = store.mark(10)
    assert {"due": True} == submit(store, [marked])
    session.insert("fresh", schedule="every 1h")
    unplanned = store.unplanned(10)
    store.plan([planned(one, one.planned_from + HOUR) for one in unplanned], "Europe/Berlin")

    assert "Europe/Berlin" == session.task("fresh")["timezone"]
    assert ["created"] == [entry["action"] for entry in session.rows("select action from pgbeat.change")]


def test_the_api_names_the_person_whom_it_acts_for(beat: PgBeat, session: Session) -> None:
    ann = beat.as_person("ann", "ticket 7")

    ann.schedule("nightly", "app.probe", "every 5m")
    ann.schedule("nightly", "app.probe", "every 6m", keep_next_run=True)
    ann.update("nightly", queue="mail")
    ann.pause("nightly", "stocktaking")
    ann.resume("nightly")
    job = ann.trigger("nightly")
    ann.cancel_job(job)
    ann.unschedule("nightly")
    beat.schedule("nightly", "app.probe")

    actions = ["created", "changed", "changed", "paused", "resumed", "triggered", "cancelled", "removed"]
    assert [*((action, "nightly", "ann") for action in actions), ("created", "nightly", role(session))] == told(
        reversed(beat.changes())
    )
    by_action = {change.action: change for change in beat.changes()}
    assert "stocktaking" == by_action["paused"].reason
    assert "ticket 7" == by_action["removed"].reason
    assert {job} == {by_action["triggered"].job, by_action["cancelled"].job}


def test_the_person_is_named_in_the_callers_transaction_for_these_calls_alone(beat: PgBeat, session: Session) -> None:
    with beat.database.engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
        beat.as_person("ann").schedule("hers", "app.probe", connection=connection)
        beat.schedule("mine", "app.probe", connection=connection)

    assert {("created", "hers", "ann"), ("created", "mine", role(session))} == set(told(beat.changes()))


def test_a_connection_that_commits_each_statement_can_name_nobody(beat: PgBeat) -> None:
    with beat.database.engine.connect() as connection, pytest.raises(TypeError, match="autocommit"):
        beat.as_person("ann").schedule("hers", "app.probe", connection=connection)

    assert [] == beat.changes()


@pytest.mark.parametrize("who", ["", "x" * 201, 5, "a\nb"])
def test_a_person_without_a_proper_name_is_refused(beat: PgBeat, who: Any) -> None:
    with pytest.raises(InvalidPeriodicTask, match="who"):
        beat.as_person(who)


def test_the_sync_of_code_is_the_apps(beat: PgBeat, migrated_database: str) -> None:
    app = Celery("shop")
    app.conf.beat_schedule = {"nightly": {"task": "app.probe", "schedule": 60.0}}
    CodeSchedules(app, beat.database, Settings()).sync()
    app = Celery("shop")
    app.conf.beat_schedule = {"nightly": {"task": "app.probe", "schedule": 90.0}}
    CodeSchedules(app, beat.database, Settings()).sync()
    app = Celery("shop")
    CodeSchedules(app, beat.database, Settings()).sync()

    assert [
        ("created", "nightly", "code:shop"),
        ("changed", "nightly", "code:shop"),
        ("paused", "nightly", "code:shop"),
    ] == told(reversed(beat.changes("nightly")))


def test_what_a_person_does_with_a_task_for_people_is_recorded(beat: PgBeat) -> None:
    beat.schedule("sign", None, kind="human", target=["ann"])
    job = beat.trigger("sign")
    beat.pick_up(job, "ann")
    beat.release(job, "ann")
    beat.pick_up(job, "ann")
    beat.finish(job, "succeeded", "signed", owner="ann")

    picked, released, again, finished = list(reversed(beat.changes("sign")))[2:]

    assert [("picked_up", "ann"), ("released", "ann"), ("picked_up", "ann"), ("finished", "ann")] == [
        (one.action, one.who) for one in (picked, released, again, finished)
    ]
    assert ("signed", {"state": "succeeded"}, job) == (finished.reason, finished.after, finished.job)


def test_jobs_that_a_person_decides_about_are_recorded(beat: PgBeat, session: Session) -> None:
    session.insert("asks", on_error="ask", overlap="allow")
    job = beat.trigger("asks")
    session.rows("select pgbeat.ask(%s, 'boom')", str(job))
    beat.as_person("ann").retry_job(job)
    session.rows("select pgbeat.ask(%s, 'boom')", str(job))
    beat.as_person("ann").fail_job(job, "hopeless")
    retried = beat.as_person("bob").retry_job(job)

    assert [("retried", "bob", retried.job), ("failed", "ann", job), ("retried", "ann", job)] == [
        (one.action, one.who, one.job) for one in beat.changes("asks")[:3]
    ]
    assert str(session.value("select error from pgbeat.finished_job")).startswith("given up by ann: hopeless")


def test_a_group_and_a_window_have_their_entries_and_their_members_none(beat: PgBeat, session: Session) -> None:
    beat.define_group("g", max_active=1)
    beat.schedule("nightly", "app.probe", "every 5m", group_name="g")
    session.rows("truncate pgbeat.change")

    beat.as_person("ann").pause_group("g", "why")
    beat.resume_group("g")
    beat.limit_group("g", 3)
    beat.finish_group("g")
    session.rows("update pgbeat.task_group set state = 'active'")
    session.rows("delete from pgbeat.task_group")

    found = list(reversed(beat.changes()))
    assert ["paused", "resumed", "changed", "finished", "resumed", "removed"] == [one.action for one in found]
    assert {"group"} == {one.kind for one in found}
    assert ("ann", "why") == (found[0].who, found[0].reason)
    assert ({"max_active": 1}, {"max_active": 3}) == (found[2].before, found[2].after)


def test_a_change_of_a_window_is_one_entry_however_many_rows_use_it(beat: PgBeat, session: Session) -> None:
    session.rows("insert into pgbeat.blackout (name, windows) values ('w', array['0 22 * * * PT8H'])")
    session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, blackout) values "
        "('a', 'app.probe', 'every 1h', array['window: w']), ('b', 'app.probe', 'every 1h', array['window: w'])"
    )
    last = beat.changes(limit=1)[0].id

    session.rows("update pgbeat.blackout set windows = array['0 23 * * * PT8H']")

    found = [change for change in beat.changes() if change.id > last]
    assert [("window", "changed", "w")] == [(change.kind, change.action, change.name) for change in found]
    # The revision that this made has no entry. It can be put back all the same.
    session.rows("update pgbeat.periodic_task set queue = 'x' where name = 'a'")
    assert None is beat.revert("a", 2).queue
    assert None is beat.revert("a", 1).queue


def record(beat: PgBeat, name: str) -> dict[str, Any]:
    row = beat.get(name)
    return {column: getattr(row, column) for column in RECORDED if column in DEFINED}


DEFINED = set(RECORDED) - {"enabled", "pause_reason", "paused_by", "paused_until"}


def test_an_edit_is_put_back(beat: PgBeat) -> None:
    beat.schedule("nightly", "app.probe", "every 5m", **FULL)
    before = record(beat, "nightly")
    beat.schedule("nightly", "app.other", "0 3 * * *", start_at=None)
    beat.update("nightly", subject="other")
    beat.pause("nightly")

    row = beat.as_person("ann").revert("nightly", 1)

    assert before == record(beat, "nightly")
    assert not row.enabled, "a pause is no part of the definition"
    change = beat.changes("nightly", limit=1)[0]
    assert ("changed", "ann", "reverted to revision 1") == (change.action, change.who, change.reason)
    beat.revert("nightly", change=change.id)
    assert "app.other" == beat.get("nightly").task


def test_every_column_is_recorded_and_put_back(beat: PgBeat, session: Session) -> None:
    beat.schedule("nightly", "app.probe", "every 5m")
    empty = record(beat, "nightly")
    beat.update("nightly", **{**GIVEN, "sensitive": False})
    full = record(beat, "nightly")

    beat.revert("nightly", 1)
    assert empty == record(beat, "nightly")
    beat.revert("nightly", 2)
    assert full == record(beat, "nightly")
    beat.unschedule("nightly")
    beat.revert("nightly", change=beat.changes(limit=1)[0].id)
    assert full == record(beat, "nightly")


def test_a_removed_row_is_made_again_with_its_pause(beat: PgBeat) -> None:
    beat.schedule("nightly", "app.probe", "every 5m", **FULL)
    beat.pause("nightly", "stocktaking")
    before = record(beat, "nightly")
    beat.unschedule("nightly")

    row = beat.revert("nightly", change=beat.changes()[0].id)

    assert before == record(beat, "nightly")
    assert (False, "stocktaking") == (row.enabled, row.pause_reason)
    assert "created" == beat.changes()[0].action
    beat.unschedule("nightly")
    assert "every 5m" == beat.revert("nightly", 1).schedule


def test_a_renaming_is_put_back_and_what_came_before_it_too(beat: PgBeat, session: Session) -> None:
    session.insert("old", schedule="every 5m")
    session.rows("update pgbeat.periodic_task set queue = 'mail'")
    session.rows("update pgbeat.periodic_task set name = 'new'")
    assert ["renamed"] == [change.action for change in beat.changes("new")]
    assert ["renamed", "changed", "created"] == [change.action for change in beat.changes("old")]

    with pytest.raises(UnknownPeriodicTask, match="it was renamed to 'new'"):
        beat.revert("old", 1)
    row = beat.revert("new", 1)

    assert ("old", None) == (row.name, row.queue)


def test_a_renaming_is_not_put_back_over_another_row(beat: PgBeat, session: Session) -> None:
    session.insert("old")
    session.rows("update pgbeat.periodic_task set name = 'new'")
    session.insert("old")

    with pytest.raises(InvalidPeriodicTask):
        beat.revert("new", 1)
    beat.unschedule("new")
    with pytest.raises(InvalidPeriodicTask, match="another periodic task has that name now"):
        beat.revert("new", 1)


def test_the_arguments_of_a_sensitive_row_are_not_recorded(beat: PgBeat, session: Session) -> None:
    beat.schedule("secret", "app.probe", args=["patient-4711"], kwargs={"key": "patient-4711"}, sensitive=True)
    beat.update("secret", args=["patient-4712"], queue="x")
    kept = beat.revert("secret", 1)
    beat.unschedule("secret")

    with pytest.raises(InvalidPeriodicTask, match="it was sensitive, so its args and kwargs are not recorded"):
        beat.revert("secret", 1)

    assert (["patient-4712"], None) == (kept.args, kept.queue)
    entries = str(session.rows("select * from pgbeat.change"))
    assert "<sensitive>" in entries
    assert "patient-471" not in entries


def test_what_is_put_back_stays_sensitive(beat: PgBeat, session: Session) -> None:
    beat.schedule("secret", "app.probe", args=["patient-4711"], queue="x")
    beat.update("secret", sensitive=True, queue=None)
    (change, *_) = [one.id for one in beat.changes("secret")]

    before = beat.definition_before("secret", 1)
    by_revision = beat.revert("secret", 1)
    by_change = beat.revert("secret", change=change)
    beat.unschedule("secret")
    with pytest.raises(InvalidPeriodicTask, match="it was sensitive, so its args are not recorded"):
        beat.revert("secret", 1)

    assert (True, "x") == (before["sensitive"], before["queue"])
    assert [(True, "x")] * 2 == [(row.sensitive, row.queue) for row in (by_revision, by_change)]
    assert "secret' stays sensitive: only UPDATE" in _notice_of_revert(beat, session)


def _notice_of_revert(beat: PgBeat, session: Session) -> str:
    beat.schedule("secret", "app.probe")
    beat.update("secret", sensitive=True)
    session.rows("select pgbeat.revert('secret', 1)")
    return str(session.connection.notices[-1])


def test_a_removed_row_that_was_sensitive_is_made_again_as_one(beat: PgBeat) -> None:
    beat.schedule("secret", "app.probe", args=["open"])
    beat.update("secret", args=["patient-4711"])
    beat.update("secret", sensitive=True)
    beat.unschedule("secret")

    row = beat.revert("secret", 1)

    assert (["open"], True) == (row.args, row.sensitive)


def test_a_row_that_is_not_sensitive_any_more_is_put_back_as_it_was(beat: PgBeat) -> None:
    beat.schedule("open", "app.probe", sensitive=True)
    beat.update("open", sensitive=False)

    assert beat.revert("open", 1).sensitive
    assert not beat.update("open", sensitive=False).sensitive


def test_what_was_recorded_of_a_row_before_it_became_sensitive_is_not_shown_any_more(
    beat: PgBeat, session: Session
) -> None:
    def shown(*names: str | None) -> str:
        return str([beat.changes(name) for name in names])

    beat.schedule("first", "app.probe", args=["patient-4711"], kwargs={}, options={"expires": 60})
    beat.update("first", kwargs={"key": "patient-4711"})
    beat.schedule("other", "app.probe", args=["other"])
    session.rows("update pgbeat.periodic_task set name = 'second' where name = 'first'")
    assert "patient-4711" in shown(None)

    beat.update("second", sensitive=True)

    assert "patient-4711" not in shown(None, "first", "second")
    assert ("other" in shown(None), "expires" in shown(None)) == (True, True)
    beat.unschedule("second")
    beat.schedule("second", "app.probe", args=["new"])
    beat.schedule("first", "app.probe", args=["new"])
    assert "patient-4711" not in shown(None, "first", "second")
    assert "'new'" in shown("second")


def test_a_row_that_is_not_sensitive_any_more_shows_what_was_recorded_before(beat: PgBeat) -> None:
    beat.schedule("open", "app.probe", args=["before"])
    beat.update("open", sensitive=True)
    beat.update("open", args=["hidden"])

    beat.update("open", sensitive=False)

    shown = str(beat.changes("open"))
    assert ("before" in shown, "hidden" in shown) == (True, False)


def test_a_row_that_becomes_sensitive_hides_what_changes_with_it(beat: PgBeat, session: Session) -> None:
    beat.schedule("secret", "app.probe", args=["open"])
    beat.update("secret", args=["patient-4711"], sensitive=True)
    beat.update("secret", args=["open too"], sensitive=False)

    assert "patient-4711" not in str(session.rows("select * from pgbeat.change"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs a revision or a change"),
        ({"revision": 1, "change": 1}, "needs a revision or a change"),
        ({"revision": 9}, "'nightly' has no revision 9: it is at 2"),
        ({"revision": 0}, "is not known: its changes go back to revision 1"),
        ({"change": 999}, "'nightly' has no change 999"),
    ],
)
def test_what_cannot_be_put_back_is_refused(beat: PgBeat, given: dict[str, int], said: str) -> None:
    beat.schedule("nightly", "app.probe")
    beat.update("nightly", queue="mail")

    with pytest.raises(InvalidPeriodicTask, match=said):
        beat.revert("nightly", **given)
    assert "mail" == beat.get("nightly").queue


def test_a_row_is_not_put_back_to_when_it_did_not_exist(beat: PgBeat) -> None:
    beat.schedule("nightly", "app.probe")

    with pytest.raises(InvalidPeriodicTask, match="did not exist before change"):
        beat.revert("nightly", change=only(beat).id)
    with pytest.raises(UnknownPeriodicTask, match="named 'nightli'"):
        beat.revert("nightli", 1)


def test_a_definition_that_would_be_refused_today_is_not_put_back(migrated_database: str) -> None:
    app = Celery("shop")
    app.conf.pgbeat_allowed_tasks = ["app.*"]
    beat = PgBeat(app, migrated_database)
    Session(migrated_database).insert("nightly", task="other.probe")
    beat.update("nightly", task="app.probe")

    with pytest.raises(InvalidPeriodicTask, match=r"other\.probe"):
        beat.revert("nightly", 1)
    beat.close()


def test_rows_that_were_there_before_go_back_as_far_as_is_known(beat: PgBeat, session: Session) -> None:
    beat.schedule("nightly", "app.probe")
    beat.update("nightly", queue="a")
    session.rows("truncate pgbeat.change")
    beat.update("nightly", queue="b")

    assert "a" == beat.revert("nightly", 2).queue
    with pytest.raises(InvalidPeriodicTask, match="its changes go back to revision 2"):
        beat.revert("nightly", 1)


def test_old_changes_are_pruned_and_new_ones_kept(store: BeatQueries) -> None:
    session = Session(store.database.url)
    for name in ("a", "b", "c"):
        session.insert(name)
    session.rows("update pgbeat.change set at = at - interval '366 days' where name <> 'c'")

    assert [1, 1, 0] == [store.prune_changes(timedelta(days=365), 1) for _ in range(3)]
    assert ["c"] == [row["name"] for row in session.rows("select name from pgbeat.change")]


def test_changes_come_a_page_at_a_time(beat: PgBeat) -> None:
    for number in range(5):
        beat.schedule("nightly", "app.probe", queue=f"q{number}")
    first = beat.changes("nightly", limit=2)

    rest = beat.changes("nightly", before=first[-1].id)

    assert 5 == len({change.id for change in (*first, *rest)})
    assert [] == beat.changes("nightly", kind="group")


def test_a_notice_says_if_arguments_stay(beat: PgBeat, session: Session) -> None:
    beat.schedule("secret", "app.probe", args=["4711"], sensitive=True)
    beat.update("secret", args=["4712"])
    session.rows("select pgbeat.revert('secret', 1)")

    assert "'secret' keeps its present args" in session.connection.notices[-1]


def test_nobody_can_forge_or_erase_an_entry(session: Session) -> None:
    session.rows(roles_script("pgbeat"))
    session.insert("nightly", args=["private"])
    for name in ("author", "beat", "worker", "reader", "person"):
        session.rows(f"set role pgbeat_{name}")
        for command in (
            "insert into pgbeat.change (at, who, role, kind, name, action) "
            "values (now(), 'x', 'x', 'group', 'x', 'removed')",
            "update pgbeat.change set who = 'x'",
            "delete from pgbeat.change",
            "select pgbeat.record_act('removed', 'nightly')",
        ):
            assert isinstance(session.refusal(command), psycopg2.errors.InsufficientPrivilege)
        session.rows("reset role")


def test_a_reader_reads_the_changes_without_arguments(beat: PgBeat, session: Session) -> None:
    session.rows(roles_script("pgbeat"))
    session.insert("nightly", args=["private"])
    session.rows("update pgbeat.periodic_task set args = '[1]'")
    session.rows("set role pgbeat_reader")
    assert isinstance(
        session.refusal("select arguments_before from pgbeat.change"), psycopg2.errors.InsufficientPrivilege
    )
    with session.connection.cursor() as cursor:
        cursor.execute(statement("changes", "pgbeat"), {"name": None, "kind": None, "before": 2**62, "limit": 10})
        assert "private" not in json.dumps(cursor.fetchall(), default=str)
    assert ["args"] == session.rows("select columns from pgbeat.change order by id desc limit 1")[0]["columns"]
    session.rows("set role pgbeat_author")
    assert ["private"] == session.value("select arguments_before -> 'args' from pgbeat.change where action = 'changed'")
    session.rows("reset role")
    assert ["private"] == beat.changes()[0].before["args"]
