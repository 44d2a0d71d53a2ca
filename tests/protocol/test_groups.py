"""Groups: of whose jobs only so many are under way at a time, and that are paused and resumed in one statement."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from tests.harness.jobs import bury, make_job
from tests.harness.session import Session, reason
from tests.harness.ticks import beat, decided, insert, jobs, make_due, row_of, submit
from tests.harness.transactions import Attempt, Transaction

DAY = timedelta(days=1)


@contextmanager
def in_transaction(url: str) -> Iterator[Session]:
    """Yield somebody whose statements are done and seen by nobody until the end."""
    somebody = Session(url)
    somebody.rows("begin")
    yield somebody
    somebody.rows("commit")


def limit(session: Session, max_active: int | None, name: str = "g") -> None:
    session.rows("select pgbeat.limit_group(%s, %s)", name, max_active)


def tick(store: BeatQueries, *names: str, **columns: Any) -> None:
    """Have rows of the group that are due, each with a job of its own."""
    for name in names:
        make_due(store, name, **{"group_name": "g", **columns})
    submit(store, store.mark(100))


def active(store: BeatQueries) -> list[dict[str, Any]]:
    rows = store.database.execute("select * from pgbeat.active_job order by scheduled_for, created_at, periodic_task")
    return [dict(row._mapping) for row in rows]


def places(store: BeatQueries) -> dict[str, tuple[str, int | None]]:
    return {job["periodic_task"]: (job["state"], job["slot"]) for job in active(store)}


def end(session: Session, name: str) -> None:
    session.rows("delete from pgbeat.active_job where periodic_task = %s", name)


def test_a_group_without_a_limit_keeps_no_job_waiting(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", group_name="g")
    (row,) = store.mark(10)

    (answer,) = store.submit([decided(row)], "UTC", True, True)

    assert (True, False) == (answer.made, answer.waits)
    assert {"a": ("pending", 0)} == places(store)
    assert not store.look().slots_to_grant


def test_a_group_with_a_limit_keeps_each_job_waiting_for_its_slot(store: BeatQueries, session: Session) -> None:
    limit(session, 1)
    make_due(store, "a", group_name="g")
    (row,) = store.mark(10)

    (answer,) = store.submit([decided(row)], "UTC", True, True)

    assert (True, True) == (answer.made, answer.waits)
    assert {"a": ("buffered", None)} == places(store)
    assert store.look().slots_to_grant


def test_only_so_many_get_a_place_and_the_oldest_first(store: BeatQueries, session: Session) -> None:
    limit(session, 2)
    tick(store, "a", "b", "c")

    assert 2 == store.grant_slots(10)
    assert {"a": ("pending", 1), "b": ("pending", 2), "c": ("buffered", None)} == places(store)
    assert 0 == store.grant_slots(10)
    assert not store.look().slots_to_grant
    assert ["a", "b"] == [job.periodic_task for job in store.recover(10, DAY)]


def test_the_end_of_a_job_wakes_a_beat_and_frees_its_place(store: BeatQueries, session: Session) -> None:
    limit(session, 1)
    tick(store, "a", "b")
    store.grant_slots(10)

    assert session.notified_by(lambda: end(session, "a"))
    assert store.look().slots_to_grant
    assert 1 == store.grant_slots(10)
    assert {"b": ("pending", 1)} == places(store)


def test_the_end_of_a_job_wakes_no_beat_if_no_job_waits_for_its_group(store: BeatQueries, session: Session) -> None:
    limit(session, 2)
    tick(store, "a")
    store.grant_slots(10)

    assert not session.notified_by(lambda: end(session, "a"))


def test_a_limit_counts_what_was_under_way_before_it(store: BeatQueries, session: Session) -> None:
    tick(store, "a", "b")
    limit(session, 2)
    tick(store, "c")

    assert 0 == store.grant_slots(10)
    end(session, "a")
    assert 1 == store.grant_slots(10)
    assert ("pending", 1) == places(store)["c"]


def test_a_lower_limit_ends_nothing_and_admits_no_job_until_enough_have_ended(
    store: BeatQueries, session: Session
) -> None:
    limit(session, 3)
    tick(store, "a", "b", "c")
    store.grant_slots(10)
    limit(session, 1)
    tick(store, "d")

    for name in ("a", "b"):
        end(session, name)
        assert 0 == store.grant_slots(10)
    end(session, "c")

    assert 1 == store.grant_slots(10)


def test_a_free_number_is_given_again(store: BeatQueries, session: Session) -> None:
    limit(session, 3)
    tick(store, "a", "b", "c", "d")
    store.grant_slots(10)
    end(session, "b")

    store.grant_slots(10)

    assert {"a": 1, "c": 3, "d": 2} == {name: slot for name, (_, slot) in places(store).items()}


@pytest.mark.parametrize("statement", ["select pgbeat.limit_group('g', null)", "delete from pgbeat.task_group"])
def test_all_waiting_jobs_are_promoted_when_the_limit_is_removed(
    store: BeatQueries, session: Session, statement: str
) -> None:
    limit(session, 1)
    tick(store, "a", "b", "c")
    store.grant_slots(10)

    assert session.notified_by(lambda: session.rows(statement))
    assert 2 == store.grant_slots(10)
    assert {"pending"} == {state for state, _ in places(store).values()}


def test_one_group_does_not_keep_another_waiting(store: BeatQueries, session: Session) -> None:
    limit(session, 1)
    limit(session, 1, "h")
    tick(store, "a", "b")
    tick(store, "c", group_name="h")

    assert 2 == store.grant_slots(10)
    assert {"a", "c"} == {name for name, (state, _) in places(store).items() if state == "pending"}


def test_two_beats_at_once_admit_no_more_than_one_would(
    store: BeatQueries, session: Session, migrated_database: str
) -> None:
    limit(session, 1)
    tick(store, "a", "b")
    other = beat(migrated_database, "beat-b")

    with in_transaction(migrated_database) as holder:
        holder.rows("select pgbeat.grant_slots()")
        assert 0 == other.grant_slots(10), "the group is stepped over, not waited for"
    assert 0 == other.grant_slots(10)
    assert ["buffered", "pending"] == sorted(state for state, _ in places(store).values())


def test_an_author_s_lock_on_a_group_keeps_no_other_waiting(
    store: BeatQueries, session: Session, migrated_database: str
) -> None:
    limit(session, 1)
    limit(session, 1, "h")
    tick(store, "a")
    tick(store, "c", group_name="h")

    with in_transaction(migrated_database) as author:
        author.rows("update pgbeat.task_group set max_active = 5 where name = 'g'")
        assert 1 == store.grant_slots(10)
        assert "pending" == places(store)["c"][0]
    assert 1 == store.grant_slots(10)


def test_the_database_itself_refuses_two_jobs_in_one_place(store: BeatQueries, session: Session) -> None:
    limit(session, 1)
    tick(store, "a", "b")
    store.grant_slots(10)

    error = session.refusal(
        "update pgbeat.active_job set state = 'pending', wait_reason = null, slot = 1 where periodic_task = 'b'"
    )

    assert "job_one_in_a_slot" in str(error)


def test_the_next_occurrence_of_a_job_that_waits_for_a_slot_is_decided_by_its_overlap(
    store: BeatQueries, session: Session
) -> None:
    limit(session, 1)
    tick(store, "a", "b")
    store.grant_slots(10)
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now() where name = 'b'")
    (waits,) = [job for job in active(store) if job["periodic_task"] == "b"]

    (answer,) = store.submit([decided(row) for row in store.mark(10)], "UTC", True, True)

    assert (False, waits["id"]) == (answer.made, answer.blocked_by)
    assert [("skipped", "overlap")] == [
        (job["state"], job["reason"]) for job in jobs(store) if job["state"] == "skipped"
    ]


@pytest.mark.parametrize("overlap", ["buffer_one", "buffer_all"])
def test_what_has_waited_for_its_turn_waits_for_a_place_next(
    store: BeatQueries, session: Session, overlap: str
) -> None:
    limit(session, 1)
    tick(store, "a", overlap=overlap)
    store.grant_slots(10)
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    submit(store, store.mark(10))
    tick(store, "b")
    session.rows(
        "update pgbeat.active_job set scheduled_for = scheduled_for - interval '1 hour' where wait_reason = 'slot'"
    )

    session.rows("delete from pgbeat.active_job where state = 'pending'")

    assert {"slot"} == {job["wait_reason"] for job in active(store)}
    assert 1 == store.grant_slots(10)
    assert ("pending", 1) == places(store)["b"], "it was for an earlier instant"


def test_a_trigger_takes_its_turn_and_keeps_no_place_from_others_while_it_is_open(
    store: BeatQueries, session: Session, migrated_database: str
) -> None:
    limit(session, 1)
    insert(store, "manual", schedule=None, group_name="g")
    tick(store, "a")

    with in_transaction(migrated_database) as author:
        author.rows("select pgbeat.trigger('manual')")
        assert 1 == store.grant_slots(10)
    assert {"a": ("pending", 1), "manual": ("buffered", None)} == places(store)
    end(session, "a")
    assert 1 == store.grant_slots(10)
    assert {"manual": ("pending", 1)} == places(store)


def test_a_lost_job_leaves_its_place(store: BeatQueries, session: Session) -> None:
    limit(session, 1)
    tick(store, "a", "b")
    store.grant_slots(10)
    store.confirm([(job.id, 0.0) for job in store.recover(10, DAY)])
    session.rows(
        "update pgbeat.active_job set check_at = 'epoch', "
        "busy_until = pgbeat.now() - interval '1 s' where periodic_task = 'a'"
    )

    store.judge(10, resending=False)

    assert 1 == store.grant_slots(10)
    assert {"b": ("pending", 1)} == places(store)


@pytest.mark.parametrize("state", ["running", "retrying"])
def test_a_rerun_keeps_its_place(store: BeatQueries, session: Session, state: str) -> None:
    limit(session, 1)
    tick(store, "a", on_lost="rerun")
    tick(store, "b")
    store.grant_slots(10)
    session.rows(
        "update pgbeat.active_job set check_at = 'epoch', "
        "state = %s, busy_until = pgbeat.now() - interval '1 s' where periodic_task = 'a'",
        state,
    )

    store.judge(10, resending=True)

    assert 0 == store.grant_slots(10)
    assert ("pending", 1) == places(store)["a"]


class TestALostJobThatTurnsUp:
    """It was given up before it ever started; its message comes after all."""

    @pytest.fixture
    def lost(self, store: BeatQueries) -> uuid.UUID:
        job = make_job(store.database, periodic_task="a", group_name="g", slot=1)
        bury(store.database, job)
        return job

    def turn_up(self, store: BeatQueries, job: uuid.UUID) -> bool:
        return WorkerQueries(store.database).start_lost(Start(job, 0, 0, uuid.uuid4(), "worker"), timedelta(seconds=30))

    def test_it_takes_a_free_place(self, store: BeatQueries, session: Session, lost: uuid.UUID) -> None:
        limit(session, 1)

        assert self.turn_up(store, lost)
        assert {"a": ("running", 1)} == places(store)

    def test_it_stays_lost_where_the_group_is_full(self, store: BeatQueries, session: Session, lost: uuid.UUID) -> None:
        limit(session, 1)
        tick(store, "b")
        store.grant_slots(10)

        assert not self.turn_up(store, lost)
        assert {"b": ("pending", 1)} == places(store)

    def test_it_takes_the_place_of_the_one_that_it_supersedes(
        self, store: BeatQueries, session: Session, lost: uuid.UUID
    ) -> None:
        limit(session, 2)
        tick(store, "b", "a")
        store.grant_slots(10)
        before = places(store)["a"][1]

        assert self.turn_up(store, lost)
        assert {"a": ("running", before), "b": ("pending", 3 - (before or 0))} == places(store)

    def test_it_may_take_the_very_place_that_is_being_given_away(
        self, store: BeatQueries, session: Session, migrated_database: str, lost: uuid.UUID
    ) -> None:
        limit(session, 1)
        tick(store, "b")
        late = Transaction(migrated_database)

        assert late.reports.start_lost(Start(lost, 0, 0, uuid.uuid4(), "worker"), timedelta(seconds=30))
        admission = Attempt(lambda: store.grant_slots(10)).waits_for(late, Database(migrated_database))
        late.commit()

        assert 0 == admission.answer()
        assert {"a": ("running", 1), "b": ("buffered", None)} == places(store)

    def test_without_a_limit_it_just_starts(self, store: BeatQueries, lost: uuid.UUID) -> None:
        assert self.turn_up(store, lost)
        assert {"a": ("running", 0)} == places(store)


@pytest.mark.parametrize("waits", [True, False])
def test_the_result_backend_is_asked_about_a_job_whose_slot_another_waits_for(
    store: BeatQueries, session: Session, waits: bool
) -> None:
    limit(session, 1)
    tick(store, "a", tracking="result")
    store.grant_slots(10)
    (quiet,) = store.recover(10, DAY)
    store.confirm([(quiet.id, 0.0)])
    tick(store, "b", group_name="g" if waits else "h")

    assert ([quiet.id] if waits else []) == store.unreported(10)


def test_under_send_a_place_is_free_when_the_broker_has_the_job(store: BeatQueries, session: Session) -> None:
    limit(session, 1)
    tick(store, "a", tracking="send")
    tick(store, "b")
    store.grant_slots(10)

    store.confirm([(job.id, 0.0) for job in store.recover(10, DAY)])

    assert 1 == store.grant_slots(10)


def paused(session: Session, name: str = "g", reason: str | None = None) -> None:
    session.rows("select pgbeat.pause_group(%s, %s)", name, reason)


def test_one_update_pauses_and_resumes_all_rows_of_a_group(store: BeatQueries, session: Session) -> None:
    limit(session, None)
    for name in ("a", "b"):
        make_due(store, name, group_name="g")
    make_due(store, "other")

    session.rows("update pgbeat.task_group set paused = true, pause_reason = 'stocktaking'")
    assert ["other"] == [row.name for row in store.mark(10)]
    assert [True, True] == [row_of(store, name)["group_paused"] for name in ("a", "b")]

    session.rows("update pgbeat.task_group set paused = false")
    assert [None] == [row["pause_reason"] for row in session.rows("select pause_reason from pgbeat.task_group")]
    assert {"a", "b"} == {row.name for row in store.unplanned(10)}, "time while paused is never caught up"


def test_what_is_paused_is_not_even_in_the_index_of_what_is_due(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", group_name="g")
    paused(session)

    view = store.look()

    assert (False, None, False) == (view.due, view.next_run_at, view.unplanned)
    assert [] == session.rows("select * from pgbeat.upcoming")


def test_a_resumed_row_whose_next_run_is_still_to_come_keeps_it(store: BeatQueries, session: Session) -> None:
    insert(store, "a", group_name="g")
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now() + interval '1 hour'")
    before = row_of(store, "a")["next_run_at"]

    paused(session)
    session.rows("select pgbeat.resume_group('g')")

    assert before == row_of(store, "a")["next_run_at"]


def test_a_pause_of_the_group_takes_the_mark_off(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", group_name="g")
    (row,) = store.mark(10)

    paused(session)

    assert [] == store.submit([decided(row)], "UTC", True, True)
    assert [] == jobs(store)


def test_a_row_that_is_paused_by_itself_stays_so_when_its_group_is_resumed(
    store: BeatQueries, session: Session
) -> None:
    make_due(store, "a", group_name="g")
    session.rows("select pgbeat.pause('a', 'mine')")
    paused(session)

    session.rows("select pgbeat.resume_group('g')")

    assert (False, False, "mine") == tuple(
        row_of(store, "a")[column] for column in ("enabled", "group_paused", "pause_reason")
    )
    assert not store.look().due


def test_a_row_that_is_resumed_while_its_group_is_paused_waits_for_that(store: BeatQueries, session: Session) -> None:
    make_due(store, "a", group_name="g")
    session.rows("select pgbeat.pause('a')")
    paused(session)
    session.rows("select pgbeat.resume('a')")
    assert not store.look().due

    session.rows("select pgbeat.resume_group('g')")

    assert ["a"] == [row.name for row in store.unplanned(10)]


def test_a_row_takes_the_pause_of_the_group_that_it_joins_and_leaves_that_of_the_one_it_leaves(
    store: BeatQueries, session: Session
) -> None:
    insert(store, "x", group_name="g")
    paused(session)

    insert(store, "a", group_name="g")
    insert(store, "b")
    session.rows("update pgbeat.periodic_task set group_name = 'g' where name = 'b'")
    session.rows("update pgbeat.periodic_task set group_name = null where name = 'x'")

    assert {"a": True, "b": True, "x": False} == {name: row_of(store, name)["group_paused"] for name in "abx"}


def test_a_row_that_joins_as_its_group_is_paused_is_paused_by_the_next_sign_of_life(
    store: BeatQueries, session: Session, migrated_database: str
) -> None:
    limit(session, None)
    with in_transaction(migrated_database) as author:
        author.rows("select pgbeat.schedule('a', 'app.probe', 'every 1h', group_name => 'g')")
        paused(session)
    assert not row_of(store, "a")["group_paused"], "neither has seen the other"

    assert ["a"] == store.sync_group_pauses()
    assert row_of(store, "a")["group_paused"]
    assert [] == store.sync_group_pauses()


def test_a_row_that_joins_as_its_group_is_resumed_is_resumed_by_the_next_sign_of_life(
    store: BeatQueries, session: Session, migrated_database: str
) -> None:
    insert(store, "x", group_name="g")
    paused(session)
    with in_transaction(migrated_database) as author:
        author.rows("select pgbeat.schedule('a', 'app.probe', 'every 1h', group_name => 'g')")
        session.rows("select pgbeat.resume_group('g')")
    assert row_of(store, "a")["group_paused"]

    assert ["a"] == store.sync_group_pauses()
    assert not row_of(store, "a")["group_paused"]


def test_a_row_of_no_group_is_paused_by_none(store: BeatQueries, session: Session) -> None:
    insert(store, "a", group_name="g")
    paused(session)

    session.rows("update pgbeat.periodic_task set group_name = null, group_paused = true")
    assert not row_of(store, "a")["group_paused"]
    session.rows("update pgbeat.periodic_task set group_paused = true")
    assert not row_of(store, "a")["group_paused"]


def test_the_rows_of_a_group_that_is_deleted_or_renamed_run_again(store: BeatQueries, session: Session) -> None:
    for group in ("g", "h"):
        insert(store, group, group_name=group)
        paused(session, group)

    session.rows("delete from pgbeat.task_group where name = 'g'")
    session.rows("update pgbeat.task_group set name = 'i' where name = 'h'")

    assert [False, False] == [row_of(store, name)["group_paused"] for name in ("g", "h")]


def test_what_waits_for_a_place_in_a_group_that_is_paused_is_skipped_when_its_turn_comes(
    store: BeatQueries, session: Session
) -> None:
    limit(session, 1)
    tick(store, "a", "b")
    store.grant_slots(10)
    paused(session)
    end(session, "a")

    store.grant_slots(10)
    (recovered,) = store.recover(10, DAY)

    assert ("b", "paused") == (recovered.periodic_task, recovered.reason)


def test_a_manual_job_runs_in_a_paused_group(store: BeatQueries, session: Session) -> None:
    insert(store, "a", group_name="g")
    paused(session)
    session.rows("select pgbeat.trigger('a')")

    (recovered,) = store.recover(10, DAY)

    assert recovered.reason is None


def test_a_job_that_waits_for_a_slot_is_busy_until_the_first_slot_is_due(store: BeatQueries, session: Session) -> None:
    limit(session, 2)
    tick(store, "a", "b", "c")
    store.grant_slots(10)
    session.rows("update pgbeat.active_job set busy_until = busy_until + interval '1 hour' where periodic_task = 'b'")

    busy = {job["periodic_task"]: job["busy_until"] for job in jobs(store)}

    assert busy["a"] == busy["c"] < busy["b"]


def test_a_group_that_was_never_paused_may_be_resumed(session: Session) -> None:
    session.insert("a", schedule="every 1h", group_name="nightly")

    assert ("nightly", False) == tuple(session.row("select name, paused from pgbeat.resume_group('nightly')").values())


@pytest.mark.parametrize("call", ["pause_group('nigthly')", "resume_group('nigthly')"])
def test_an_unknown_group_is_refused_by_its_name(session: Session, call: str) -> None:
    error = session.refusal(f"select pgbeat.{call}")

    assert "P0002" == error.pgcode
    assert "No group is named 'nigthly'." in str(error)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("max_active = 0", "max_active is 0, not at least 1"),
        ("max_active = -1", "max_active is -1, not at least 1"),
        ("name = ''", "name has 0 characters, not 1 to 200"),
        ("paused = null", "paused is null, not true or false"),
    ],
)
def test_a_wrong_limit_or_name_is_refused(session: Session, wrong: str, message: str) -> None:
    limit(session, 1)

    refused = session.refusal(f"update pgbeat.task_group set {wrong}")

    assert ("22023", message) == (refused.pgcode, reason(refused))


def test_a_wrong_group_name_is_refused_by_python_and_sql(session: Session) -> None:
    error = session.refusal("select pgbeat.schedule('a', 'app.probe', 'every 1h', group_name => %s)", "g" * 201)

    assert "22023" == error.pgcode
    assert "group_name has 201 characters, not 1 to 200" in str(error)


def test_a_beat_looks_at_a_hundred_groups_at_a_time_and_comes_to_all_of_them(
    store: BeatQueries, session: Session
) -> None:
    limit(session, 1, "z")
    limit(session, 1, "z2")
    for name, group in (("a", "z"), ("b", "z"), ("c", "z2"), ("d", "z2")):
        tick(store, name, group_name=group)
    store.grant_slots(100)
    end(session, "a")
    end(session, "c")
    session.rows(
        "insert into pgbeat.group_to_check (group_name) select 'many-' || number from generate_series(1, 250) number"
    )
    session.rows("insert into pgbeat.group_to_check (group_name) select 'z' from generate_series(1, 2500)")

    granted = []
    while store.look().slots_to_grant:
        granted.append(store.grant_slots(100))

    assert 3 <= len(granted) <= 6
    assert 1 <= min(granted[:-1]), "there are more to look at"
    assert {"b": ("pending", 1), "d": ("pending", 1)} == places(store)
    assert 0 == session.value("select count(*) from pgbeat.group_to_check")
