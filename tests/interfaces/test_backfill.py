"""Backfill in the database: the door's functions, and each step that a beat makes of one."""

from __future__ import annotations

import statistics
import time
import uuid
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from celery_pgbeat.beat.decide.backfiller import Backfiller
from celery_pgbeat.planning import BackfillRow, BackfillStep, Rules, range_of
from celery_pgbeat.postgres.backfill_queries import HISTORY_PAGE
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.statements import statement
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from celery_pgbeat.settings import Settings
from tests.harness.cost import slowness
from tests.harness.session import reason
from tests.harness.situations import NOON, Situation
from tests.harness.ticks import LEASE, beat, decided

RULES = Rules(timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))
HOUR = timedelta(hours=1)
PATIENCE = timedelta(hours=1)


def hours(*clock: int) -> list[datetime]:
    """Return hours of the day before noon's."""
    return [NOON - timedelta(days=1, hours=12) + hour * HOUR for hour in clock]


def ask(situation: Situation, first: int, last: int, name: str = "nightly", **others: Any) -> str:
    """Ask for a range of the day before; return the backfill's id."""
    given = {"name": name, "since": hours(first)[0], "until": hours(last)[0], **others}
    places = ", ".join(f"{word} => %s" for word in given)
    return str(situation.session.value(f"select pgbeat.backfill({places})", *given.values()))


def stored(situation: Situation, backfill: str) -> dict[str, Any]:
    return situation.session.row("select * from pgbeat.backfill where id = %s", backfill)


def jobs(situation: Situation) -> list[dict[str, Any]]:
    return situation.session.rows("select * from pgbeat.active_job where origin = 'backfill' order by scheduled_for")


def end_job(situation: Situation, job: Any, state: str = "succeeded") -> None:
    situation.session.rows(
        "with ended as (delete from pgbeat.active_job where id = %s returning *) insert into pgbeat.finished_job "
        "(id, periodic_task, scheduled_for, origin, state, task, created_at, finished_at) "
        "select id, periodic_task, scheduled_for, origin, %s, task, created_at, pgbeat.now() from ended",
        str(job),
        state,
    )


class Desk:
    """A beat that makes steps of backfills, with a list in the place of the delivery."""

    def __init__(self, store: BeatQueries, **settings: Any) -> None:
        self.store = store
        self.sent: list[uuid.UUID] = []
        delivery: Any = SimpleNamespace(wait_for_place=lambda: True, deliver=self._deliver)
        tracking: Any = SimpleNamespace(full_acts_as=lambda: "full")
        self._backfiller = Backfiller(store, delivery, tracking, Settings(**settings), RULES)

    def run_cycle(self) -> bool:
        return self._backfiller.run_cycle([])

    def _deliver(self, orders: Any, _lease_ends: float) -> None:
        self.sent += [order.id for order in orders]


@pytest.fixture
def store(situation: Situation, migrated_database: str) -> BeatQueries:
    del situation  # the clock stands at noon
    return beat(migrated_database)


@pytest.fixture
def desk(store: BeatQueries) -> Desk:
    return Desk(store)


@pytest.fixture
def hourly(situation: Situation) -> Situation:
    """A row that was made just now and is planned."""
    situation.plan()
    return situation


def marked(store: BeatQueries) -> BackfillRow:
    found = store.mark_backfill("UTC")
    assert found is not None
    return found


def submit(store: BeatQueries, filling: BackfillRow, room: int | None = None) -> str:
    """Decide and submit a step as a beat does, for as much room as it was told unless said."""
    chosen = range_of(filling, filling.since, filling.until, filling.mode, RULES)
    history = store.backfill_history(filling.name, filling.reached or chosen.begin, chosen.end)
    step = chosen.step(filling.reached, history, room or filling.room, filling.undecided_from)
    ids = [chosen.job_id(filling.backfill, occurrence) for occurrence in step.jobs]
    return store.submit_backfill(filling, step, ids, chosen.count(), PATIENCE)


# --- the door


def test_a_backfill_is_a_row_with_its_defaults_and_wakes_the_beats(hourly: Situation) -> None:
    assert hourly.session.notified_by(lambda: ask(hourly, 1, 3))

    (row,) = hourly.session.rows("select * from pgbeat.backfill")
    assert ("nightly", *hours(1, 3), "missing", 1, "running") == (
        *(row[column] for column in ("periodic_task", "since", "until", "mode", "max_active", "state")),
    )
    assert (None, None, 0, 0, NOON, "postgres") == (
        *(row[column] for column in ("reached", "total", "submitted", "skipped", "created_at", "created_by")),
    )


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ("'nightly', now(), null", "until is null", "A backfill needs both ends of its range."),
        (
            "'nightly', '2100-02-28T02:00Z', '2100-02-28T01:00Z'",
            "since is 2100-02-28 02:00:00Z, later than until, 2100-02-28 01:00:00Z",
            "Give the earlier end first.",
        ),
        (
            "'nightly', '2100-02-28T01:00Z', '2100-03-01T12:00:00.000001Z'",
            "until is 2100-03-01 12:00:00.000001+00, which is still to come",
            "What is to come is the schedule's own: end the range at 2100-03-01 12:00:00Z or before.",
        ),
        (
            "'nightly', '-infinity', '2100-02-28T01:00Z'",
            "since is -infinity, outside the years 1 to 9999",
            None,
        ),
        (
            "'nightly', '2100-02-28T01:00Z', '2100-02-28T01:00Z', 'lost'",
            "mode is 'lost'",
            "It is one of missing, failed, all.",
        ),
        (
            "'nightly', '2100-02-28T01:00Z', '2100-02-28T01:00Z', max_active => 1001",
            "max_active is 1001",
            "It is a number from 1 to 1000.",
        ),
        (
            "'on demand', '2100-02-28T01:00Z', '2100-02-28T01:00Z'",
            "'on demand' has no schedule, so no occurrences to be filled in",
            "trigger() starts a job of it.",
        ),
    ],
)
def test_what_makes_no_range_is_refused_with_the_way_out(
    hourly: Situation, arguments: str, message: str, hint: str | None
) -> None:
    hourly.task("on demand", schedule=None)
    hourly.session.rows("set timezone = 'UTC'")

    error = hourly.session.refusal(f"select pgbeat.backfill({arguments})")

    assert ("22023", message, hint) == (error.pgcode, reason(error), error.diag.message_hint)


def test_an_unknown_name_is_refused_with_the_one_that_was_meant(hourly: Situation) -> None:
    error = hourly.session.refusal("select pgbeat.backfill('nigthly', now(), now())")

    assert ("P0002", "No periodic task is named 'nigthly'. Did you mean 'nightly'?") == (error.pgcode, reason(error))


def test_the_end_of_a_range_may_be_this_very_instant(hourly: Situation) -> None:
    assert hourly.session.value("select pgbeat.backfill('nightly', pgbeat.now(), pgbeat.now())")


# --- a step


def test_occurrences_from_before_the_row_was_made_go_out_oldest_first_as_jobs_of_their_own(
    hourly: Situation, desk: Desk
) -> None:
    before = hourly.session.task("nightly")
    backfill = ask(hourly, 1, 5, max_active=2)

    assert desk.run_cycle()

    first, second = jobs(hourly)
    assert hours(1, 2) == [first["scheduled_for"], second["scheduled_for"]]
    assert ("backfill", "pending", "beat-a", 1, backfill) == tuple(
        first[column] for column in ("origin", "state", "marked_by", "sends", "backfill")
    )
    assert [first["id"], second["id"]] == [str(job) for job in desk.sent]
    row = stored(hourly, backfill)
    assert (hours(2)[0], hours(3)[0], 5, 2, 0, "running", None) == tuple(
        row[column] for column in ("reached", "next_at", "total", "submitted", "skipped", "state", "marked_by")
    )
    assert before == hourly.session.task("nightly")  # run_count, next_run_at, last_run_at and all else


def test_never_more_are_under_way_than_max_active_and_each_end_makes_room(hourly: Situation, desk: Desk) -> None:
    backfill = ask(hourly, 1, 5, max_active=2)
    most = 0
    while stored(hourly, backfill)["state"] == "running":
        assert desk.run_cycle()
        most = max(most, len(jobs(hourly)))
        assert not desk.store.look().backfills
        assert not desk.run_cycle()
        end_job(hourly, jobs(hourly)[0]["id"])

    assert 2 == most
    assert 5 == len(set(desk.sent)) == len(desk.sent)
    done = stored(hourly, backfill)
    assert (5, 5, 0, NOON) == (done["total"], done["submitted"], done["skipped"], done["finished_at"])


def test_the_end_of_a_job_wakes_the_beats_while_there_is_more_to_do_and_not_after(
    hourly: Situation, desk: Desk
) -> None:
    ask(hourly, 1, 2)
    assert desk.run_cycle()
    assert hourly.session.notified_by(lambda: end_job(hourly, jobs(hourly)[0]["id"]))

    assert desk.run_cycle()
    assert not hourly.session.notified_by(lambda: end_job(hourly, jobs(hourly)[0]["id"]))


@pytest.mark.parametrize(
    ("mode", "wanted"), [("missing", [2, 3, 5]), ("failed", [4, 6]), ("all", [1, 2, 3, 4, 5, 6, 7, 8])]
)
def test_a_mode_asks_what_became_of_each_occurrence(
    hourly: Situation, desk: Desk, mode: str, wanted: list[int]
) -> None:
    one, two, three, four, _, six, seven, eight = hours(1, 2, 3, 4, 5, 6, 7, 8)
    hourly.final("succeeded", one)
    hourly.final("failed", one)
    hourly.final("skipped", two, reason="overlap", last_scheduled_for=three, occurrences=2)
    hourly.final("lost", four)
    hourly.final("expired", six)
    hourly.final("revoked", six)
    hourly.final("failed", seven)
    hourly.job("running", scheduled_for=seven, exclusive=False)
    hourly.final("untracked", eight)
    hourly.session.rows("update pgbeat.periodic_task set overlap = 'allow'")
    backfill = ask(hourly, 1, 8, mode=mode, max_active=10)

    assert desk.run_cycle()

    assert hours(*wanted) == [job["scheduled_for"] for job in jobs(hourly)]
    done = stored(hourly, backfill)
    assert ("finished", len(wanted), 8 - len(wanted)) == (done["state"], done["submitted"], done["skipped"])


def test_a_manual_job_of_that_instant_is_not_the_occurrence(hourly: Situation, desk: Desk) -> None:
    hourly.final("succeeded", hours(1)[0], origin="manual")
    ask(hourly, 1, 1)

    assert desk.run_cycle()
    assert hours(1) == [job["scheduled_for"] for job in jobs(hourly)]


def test_a_long_history_is_passed_over_in_bounded_steps_without_touching_the_row(hourly: Situation, desk: Desk) -> None:
    hourly.session.rows("update pgbeat.periodic_task set schedule = '* * * * *'")
    count = HISTORY_PAGE + 500
    hourly.session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) select gen_random_uuid(), 'nightly', %s - n * interval '1 minute', 'schedule', 'succeeded', "
        "'app.probe', pgbeat.now(), pgbeat.now() from generate_series(1, %s) n",
        NOON,
        count,
    )
    hourly.session.rows("vacuum analyze pgbeat.finished_job")
    since = NOON - (count + 3) * timedelta(minutes=1)
    backfill = ask(hourly, 0, 0, since=since, until=NOON - timedelta(minutes=1), max_active=5)
    before = hourly.session.row("select xmin::text as version from pgbeat.periodic_task")

    assert desk.run_cycle()
    assert (3, HISTORY_PAGE) == tuple(stored(hourly, backfill)[column] for column in ("submitted", "skipped"))
    version = hourly.session.row("select xmin::text as version from pgbeat.periodic_task")
    assert before != version
    assert desk.run_cycle()
    done = stored(hourly, backfill)
    assert ("finished", count + 3, 3, count) == tuple(
        done[column] for column in ("state", "total", "submitted", "skipped")
    )
    assert version == hourly.session.row("select xmin::text as version from pgbeat.periodic_task")


def test_a_step_reads_no_more_of_the_history_than_it_needs(store: BeatQueries, hourly: Situation) -> None:
    hourly.session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) select gen_random_uuid(), 'row-' || n %% 3, %s - n * interval '1 minute', 'schedule', 'failed', "
        "'app.probe', %s, %s from generate_series(1, 30000) n",
        *(NOON, NOON, NOON),
    )
    hourly.session.rows("vacuum analyze pgbeat.finished_job")

    history = store.backfill_history("row-1", NOON - timedelta(days=30), NOON, most=10)

    assert 10 == len(history.failed)
    assert max(history.failed) == history.until
    plan = "\n".join(
        row[0]
        for row in store.database.execute(
            "explain (analyze, timing off) " + statement("backfill_history", "pgbeat"),
            {"periodic_task": "row-1", "after": NOON - timedelta(days=30), "until": NOON, "most": 10},
        )
    )
    assert "Seq Scan on finished_job" not in plan
    assert "rows=10 loops=1" in plan.replace("rows=10.00", "rows=10")


def test_jobs_of_one_instant_are_not_torn_apart_by_the_limit(store: BeatQueries, hourly: Situation) -> None:
    for _ in range(5):
        hourly.final("failed", hours(1)[0])
    hourly.final("succeeded", hours(1)[0])
    hourly.final("failed", hours(2)[0])

    history = store.backfill_history("nightly", hours(0)[0], hours(3)[0], most=2)

    assert {hours(1)[0]: False} == dict(history.failed)
    assert hours(1)[0] == history.until


def test_a_paused_a_finished_and_a_blacked_out_row_are_filled(situation: Situation, desk: Desk) -> None:
    situation.task("paused", enabled=False)
    situation.task("finished", max_runs=1, run_count=1, next_run_at=None)
    situation.plan(name="dark", blackout=["cron: 0 0 * * * P1D"], jitter=HOUR)
    for name in ("paused", "finished", "dark"):
        ask(situation, 1, 1, name)

    assert [True, True, True, False] == [desk.run_cycle() for _ in range(4)]

    assert {("paused", *hours(1)), ("finished", *hours(1)), ("dark", *hours(1))} == {
        (job["periodic_task"], job["scheduled_for"]) for job in jobs(situation)
    }
    assert 1 == situation.session.task("finished")["run_count"]


# --- beside the ordinary way


def test_what_the_ordinary_way_has_still_to_decide_is_left_to_it_and_then_judged(
    hourly: Situation, desk: Desk, store: BeatQueries
) -> None:
    """As after an outage: catch-up decides first, and the backfill fills in what that leaves."""
    due = hours(3)[0]
    hourly.session.rows("update pgbeat.periodic_task set next_run_at = %s, enabled = true", due)
    backfill = ask(hourly, 1, 5, max_active=10)

    assert desk.run_cycle()
    assert hours(1, 2) == [job["scheduled_for"] for job in jobs(hourly)]
    row = stored(hourly, backfill)
    assert (5, due, "running") == (row["total"], row["next_at"], row["state"])
    for job in jobs(hourly):
        end_job(hourly, job["id"])
    assert not store.look().backfills
    assert not desk.run_cycle()

    (tick,) = store.mark(10)
    assert store.submit([decided(tick, next_run_at=NOON + HOUR)], "UTC", True, True)
    end_job(hourly, store.database.execute("select id from pgbeat.active_job")[0][0])
    assert store.look().backfills
    assert desk.run_cycle()
    assert hours(4, 5) == [job["scheduled_for"] for job in jobs(hourly)]
    done = stored(hourly, backfill)
    assert ("finished", 4, 1) == (done["state"], done["submitted"], done["skipped"])


def test_a_pause_leaves_nothing_to_the_ordinary_way(hourly: Situation, desk: Desk) -> None:
    hourly.session.rows("update pgbeat.periodic_task set next_run_at = %s", hours(3)[0])
    ask(hourly, 1, 5, max_active=10)
    assert desk.run_cycle()
    hourly.session.rows("select pgbeat.pause('nightly')")

    assert desk.run_cycle()
    assert hours(1, 2, 3, 4, 5) == [job["scheduled_for"] for job in jobs(hourly)]


def test_what_came_after_the_end_of_a_pause_that_has_run_out_is_left_to_the_resume(
    hourly: Situation, desk: Desk
) -> None:
    """As after an outage of all beats: the row is still paused in the table, and to be resumed from the pause's end."""
    hourly.session.rows("select pgbeat.pause('nightly', null, %s)", NOON + 2 * HOUR)
    hourly.clock.advance(4 * HOUR)
    backfill = ask(hourly, 0, 0, since=NOON, until=NOON + 4 * HOUR, max_active=10)

    assert desk.run_cycle()

    assert [NOON, NOON + HOUR] == [job["scheduled_for"] for job in jobs(hourly)]
    hourly.session.rows("select pgbeat.resume('nightly')")
    row = hourly.session.task("nightly")
    assert (NOON + 2 * HOUR, stored(hourly, backfill)["next_at"]) == (
        row["planned_from"] + timedelta(microseconds=1),
        NOON + 2 * HOUR,
    )


def test_what_a_window_holds_back_is_left_to_a_paused_row_while_a_resume_would_bring_it(
    situation: Situation, desk: Desk
) -> None:
    situation.plan(NOON + HOUR, planned_for=hours(2)[0])
    situation.session.rows("select pgbeat.pause('nightly')")
    ask(situation, 1, 3, max_active=10)

    assert desk.run_cycle()
    assert hours(1) == [job["scheduled_for"] for job in jobs(situation)]
    assert not desk.store.look().backfills
    situation.clock.advance(HOUR)
    assert desk.run_cycle()
    assert hours(1, 2, 3) == [job["scheduled_for"] for job in jobs(situation)]


def test_a_row_that_is_to_be_planned_is_filled_up_to_where_its_planning_begins(
    situation: Situation, desk: Desk
) -> None:
    situation.task()
    situation.clock.stand_at(NOON + 2 * HOUR)
    ask(situation, 1, 1, until=NOON + 2 * HOUR, since=NOON - HOUR, max_active=10)

    assert desk.run_cycle()
    assert [NOON - HOUR, NOON] == [job["scheduled_for"] for job in jobs(situation)]


@pytest.mark.parametrize(("overlap", "expected"), [("skip", False), ("buffer_all", False), ("allow", True)])
def test_nothing_starts_beside_another_job_of_the_row_unless_overlap_is_allow(
    hourly: Situation, desk: Desk, overlap: str, expected: bool
) -> None:
    hourly.session.rows("update pgbeat.periodic_task set overlap = %s", overlap)
    hourly.job("running")
    ask(hourly, 1, 2, max_active=2)

    assert expected is desk.store.look().backfills
    assert expected is desk.run_cycle()
    assert (2 if expected else 0) == len(jobs(hourly))

    assert expected is not hourly.session.notified_by(lambda: end_job(hourly, uuid.UUID(int=1)))
    assert desk.run_cycle() is not expected
    assert 2 == len(jobs(hourly))


def test_a_tick_that_finds_a_backfill_s_job_is_decided_by_overlap(hourly: Situation, desk: Desk) -> None:
    ask(hourly, 1, 2)
    assert desk.run_cycle()
    (job,) = jobs(hourly)
    hourly.session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    rows = desk.store.mark(10)

    (answer,) = desk.store.submit([decided(row) for row in rows], "UTC", True, True)
    assert (False, job["id"]) == (answer.made, str(answer.blocked_by))
    assert "55006" == hourly.session.refusal("select pgbeat.trigger('nightly')").pgcode


def test_under_buffer_one_each_tick_waits_for_one_job_of_a_backfill_and_goes_before_the_next(
    hourly: Situation, desk: Desk, store: BeatQueries
) -> None:
    """What the docs recommend: no tick is skipped while a range is filled in one by one."""
    hourly.session.rows("update pgbeat.periodic_task set overlap = 'buffer_one'")
    backfill = ask(hourly, 1, 3)
    for hour in (1, 2, 3):
        assert desk.run_cycle()
        hourly.clock.advance(HOUR)
        (tick,) = store.mark(10)
        (answer,) = store.submit([decided(tick)], "UTC", True, True)
        assert (True, True) == (answer.made, answer.waits)
        assert not desk.run_cycle()

        end_job(hourly, jobs(hourly)[0]["id"])
        assert not store.look().backfills
        (sent,) = store.recover(10, HOUR)
        assert ("schedule", NOON + hour * HOUR, None) == (sent.origin, sent.scheduled_for, sent.reason)
        assert not desk.run_cycle()
        end_job(hourly, sent.id)

    assert ("finished", 3) == (stored(hourly, backfill)["state"], len(desk.sent))


def test_the_index_that_is_the_overlap_rule_knows_of_a_backfill(hourly: Situation, desk: Desk) -> None:
    ask(hourly, 1, 3, max_active=2)
    assert desk.run_cycle()

    assert [True, False] == [job["exclusive"] for job in jobs(hourly)]
    hourly_job = {"id": str(uuid.uuid4()), "scheduled_for": NOON, "state": "sent"}
    with pytest.raises(Exception, match="job_one_at_a_time"):
        hourly.job(**hourly_job)
    end_job(hourly, jobs(hourly)[0]["id"])
    assert desk.run_cycle()
    assert [False, True] == [job["exclusive"] for job in jobs(hourly)]


def test_a_submit_takes_the_mark_of_a_tick_off_so_that_it_changes_nothing(
    hourly: Situation, desk: Desk, migrated_database: str
) -> None:
    hourly.session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    ask(hourly, 1, 2)
    other = beat(migrated_database, "beat-b")
    (tick,) = other.mark(10)

    assert desk.run_cycle()

    assert [] == other.submit([decided(tick)], "UTC", True, True)
    assert hours(1) == [job["scheduled_for"] for job in jobs(hourly)]


# --- fences


def test_of_two_beats_one_marks_and_the_other_finds_nothing(
    hourly: Situation, store: BeatQueries, migrated_database: str
) -> None:
    ask(hourly, 1, 2)
    marked(store)
    other = beat(migrated_database, "beat-b")

    assert not other.look().backfills
    assert other.mark_backfill("UTC") is None


def test_a_mark_that_has_lapsed_is_taken_over_and_the_late_submit_changes_nothing(
    hourly: Situation, store: BeatQueries, migrated_database: str
) -> None:
    ask(hourly, 1, 2, max_active=2)
    stalled = marked(store)
    hourly.clock.advance(LEASE + timedelta(seconds=1))
    other = beat(migrated_database, "beat-b")
    assert other.look().backfills

    taken_over = marked(other)
    assert "lost" == submit(store, stalled)
    assert [] == jobs(hourly)
    assert "submitted" == submit(other, taken_over)
    assert "lost" == submit(store, stalled)
    assert 2 == len(jobs(hourly))


def test_a_step_that_is_decided_again_makes_the_same_ids_and_another_backfill_other_ones(
    hourly: Situation, store: BeatQueries
) -> None:
    ids = []
    for mode in ("missing", "all"):
        backfill = ask(hourly, 1, 1, mode=mode)
        filling = marked(store)
        assert backfill == str(filling.backfill)
        chosen = range_of(filling, filling.since, filling.until, filling.mode, RULES)
        ids.append(chosen.job_id(filling.backfill, hours(1)[0]))
        assert "submitted" == submit(store, filling)
        assert [str(ids[-1])] == [job["id"] for job in jobs(hourly)]
        end_job(hourly, ids[-1])

    assert 2 == len(set(ids))


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param("update pgbeat.periodic_task set args = '[1]'", id="edited"),
        pytest.param("update pgbeat.periodic_task set next_run_at = '2100-02-28T01:00Z'", id="set to run again"),
        pytest.param("delete from pgbeat.periodic_task", id="removed"),
        pytest.param("select pgbeat.trigger('nightly')", id="triggered"),
    ],
)
def test_what_changes_between_mark_and_submit_is_seen_and_nothing_is_submitted(
    hourly: Situation, store: BeatQueries, meanwhile: str
) -> None:
    backfill = ask(hourly, 1, 2)
    filling = marked(store)
    hourly.session.rows(meanwhile)

    assert "conflict" == submit(store, filling)
    assert [] == jobs(hourly)
    row = stored(hourly, backfill)
    assert (None, 0, None) == (row["reached"], row["submitted"], row["marked_by"])


def test_more_jobs_than_there_is_room_for_are_refused_by_the_statement_itself(
    hourly: Situation, store: BeatQueries
) -> None:
    ask(hourly, 1, 5, max_active=2)

    assert "conflict" == submit(store, marked(store), room=3)
    assert [] == jobs(hourly)
    assert "submitted" == submit(store, marked(store))


def test_a_beat_that_starts_again_frees_what_its_dead_self_had_marked(
    hourly: Situation, store: BeatQueries, migrated_database: str
) -> None:
    ask(hourly, 1, 2)
    marked(store)
    other = beat(migrated_database, "beat-b")

    other.clear_dead_beats(["beat-a"])

    assert other.look().backfills


def test_a_job_that_a_dead_beat_left_is_sent_again_although_the_row_is_paused_and_the_instant_long_past(
    hourly: Situation, desk: Desk, migrated_database: str
) -> None:
    ask(hourly, 1, 2)
    assert desk.run_cycle()
    hourly.session.rows("update pgbeat.periodic_task set catchup = 'none', catchup_window = '1 minute'")
    hourly.session.rows("select pgbeat.pause('nightly')")
    hourly.clock.advance(LEASE + timedelta(seconds=1))

    (recovered,) = beat(migrated_database, "beat-b").recover(10, timedelta(seconds=32))

    assert (desk.sent[0], None, "backfill") == (recovered.id, recovered.reason, recovered.origin)


# --- the end


def test_a_cancelled_backfill_drops_what_is_undecided_and_leaves_its_jobs(hourly: Situation, desk: Desk) -> None:
    backfill = ask(hourly, 1, 5, max_active=2)
    assert desk.run_cycle()

    row = hourly.session.row("select * from pgbeat.cancel_backfill(%s)", backfill)

    assert ("cancelled", 2, NOON, None) == (row["state"], row["submitted"], row["finished_at"], row["problem"])
    assert 2 == len(jobs(hourly))
    end_job(hourly, jobs(hourly)[0]["id"])
    assert not desk.store.look().backfills
    assert not desk.run_cycle()


def test_a_cancel_between_mark_and_submit_holds(hourly: Situation, store: BeatQueries) -> None:
    backfill = ask(hourly, 1, 5)
    filling = marked(store)
    hourly.session.rows("select pgbeat.cancel_backfill(%s)", backfill)

    assert "lost" == submit(store, filling)
    assert [] == jobs(hourly)


def test_what_is_over_cannot_be_cancelled_and_what_is_unknown_neither(hourly: Situation, desk: Desk) -> None:
    backfill = ask(hourly, 1, 1)
    assert desk.run_cycle()

    over = hourly.session.refusal("select pgbeat.cancel_backfill(%s)", backfill)
    unknown = hourly.session.refusal("select pgbeat.cancel_backfill(%s)", str(uuid.UUID(int=7)))

    assert ("55000", "42704") == (over.pgcode, unknown.pgcode)
    assert (
        f"The backfill {backfill} of 'nightly' was finished at 2100-03-01 12:00:00Z: there is nothing left to cancel."
        == reason(over)
    )
    assert "There is no backfill 00000000-0000-0000-0000-000000000007." == reason(unknown)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("delete from pgbeat.periodic_task", "its periodic task was removed or renamed"),
        ("update pgbeat.periodic_task set name = 'other'", "its periodic task was removed or renamed"),
        ("update pgbeat.periodic_task set schedule = null", "its periodic task has no schedule any more"),
        (
            "update pgbeat.periodic_task set schedule = 'every 100ms'",
            "'every 100ms': a run every 0.1 s is faster than pgbeat_min_interval, 1 s: make it slower, or lower that "
            "setting",
        ),
        (
            "update pgbeat.periodic_task set task = 'os.system'",
            "pgbeat_allowed_tasks does not allow the task 'os.system'",
        ),
    ],
)
def test_a_backfill_that_cannot_go_on_ends_and_says_why(
    hourly: Situation, store: BeatQueries, change: str, problem: str
) -> None:
    desk = Desk(store, allowed_tasks=("app.*",))
    backfill = ask(hourly, 1, 3)
    assert desk.run_cycle()
    end_job(hourly, jobs(hourly)[0]["id"])
    hourly.session.rows(change)

    assert desk.run_cycle()

    row = stored(hourly, backfill)
    assert ("cancelled", problem, 1) == (row["state"], row["problem"], row["submitted"])
    assert not store.look().backfills


def test_what_an_older_package_cannot_read_is_left_to_a_newer_one(hourly: Situation, desk: Desk) -> None:
    backfill = ask(hourly, 1, 3)
    hourly.session.rows("update pgbeat.periodic_task set schedule = 'every 100ms'")
    hourly.session.rows("update pgbeat.schema_version set version = version + 1")

    assert not desk.run_cycle()
    assert "running" == stored(hourly, backfill)["state"]


def test_a_range_without_an_occurrence_is_finished_at_once(hourly: Situation, desk: Desk) -> None:
    backfill = ask(hourly, 1, 1, since=hours(1)[0] + timedelta(minutes=1), until=hours(1)[0] + timedelta(minutes=2))

    assert desk.run_cycle()
    row = stored(hourly, backfill)
    assert ("finished", 0, 0) == (row["state"], row["total"], row["submitted"])


def test_backfills_that_are_over_are_kept_for_the_retention(hourly: Situation, desk: Desk) -> None:
    finished = ask(hourly, 1, 1)
    assert desk.run_cycle()
    running = ask(hourly, 1, 3, mode="all")
    hourly.session.rows("update pgbeat.backfill set created_at = %s", NOON - timedelta(days=400))
    hourly.session.rows("update pgbeat.backfill set finished_at = %s where id = %s", NOON - timedelta(days=8), finished)

    desk.store.prune(timedelta(days=30))
    assert 2 == hourly.session.value("select count(*) from pgbeat.backfill")
    desk.store.prune(timedelta(days=7))
    assert [running] == [row["id"] for row in hourly.session.rows("select id from pgbeat.backfill")]


def test_a_lost_job_keeps_its_backfill_and_starts_late_only_where_no_other_of_it_waits(
    hourly: Situation, desk: Desk, store: BeatQueries
) -> None:
    backfill = ask(hourly, 1, 3)

    def lose_and_start_late() -> bool:
        job = jobs(hourly)[-1]["id"]
        hourly.session.rows(
            "update pgbeat.active_job set state = 'sent', busy_until = '2000-01-01', check_at = default, resends = 3"
        )
        store.judge(10, True)
        lost = hourly.session.value("select restart_data ->> 'backfill' from pgbeat.finished_job where id = %s", job)
        assert backfill == lost
        if len(desk.sent) > 1:
            assert desk.run_cycle()
        return WorkerQueries(store.database).start_lost(Start(job, 0, 0, uuid.uuid4(), "w"), timedelta(seconds=30))

    assert desk.run_cycle()
    assert lose_and_start_late()
    assert backfill == jobs(hourly)[0]["backfill"]
    end_job(hourly, jobs(hourly)[0]["id"])
    assert desk.run_cycle()
    assert not lose_and_start_late()


def test_a_job_of_a_backfill_does_not_wait_for_min_gap(hourly: Situation, desk: Desk, store: BeatQueries) -> None:
    hourly.session.rows("update pgbeat.periodic_task set min_gap = '1 hour'")
    hourly.session.rows("insert into pgbeat.periodic_task_state values ('nightly', pgbeat.now())")
    ask(hourly, 1, 1)
    assert desk.run_cycle()

    start = Start(desk.sent[0], 0, 0, uuid.uuid4(), "w")
    assert WorkerQueries(store.database).start_spaced(start, timedelta(seconds=30)) is True


def test_a_lazy_row_is_filled_by_a_beat_that_declares_it(hourly: Situation, desk: Desk, store: BeatQueries) -> None:
    hourly.session.rows("update pgbeat.periodic_task set lazy = true")
    ask(hourly, 1, 1)

    assert not store.look().backfills
    assert not desk.run_cycle()
    assert store.look(["nightly"]).backfills
    assert store.mark_backfill("UTC", ["nightly"]) is not None


def test_a_step_says_what_it_has_decided(hourly: Situation, store: BeatQueries) -> None:
    """What the statement is told is what stands in the row, whatever has been there."""
    backfill = ask(hourly, 1, 5)
    filling = marked(store)

    assert "submitted" == store.submit_backfill(filling, BackfillStep((), hours(2)[0], 2, hours(3)[0]), [], 5, PATIENCE)

    row = stored(hourly, backfill)
    assert (hours(2)[0], hours(3)[0], 5, 0, 2) == tuple(
        row[column] for column in ("reached", "next_at", "total", "submitted", "skipped")
    )


def test_the_total_follows_an_edit_of_the_schedule_so_that_the_figures_add_up(hourly: Situation, desk: Desk) -> None:
    hourly.final("succeeded", hours(5)[0])
    backfill = ask(hourly, 1, 6, max_active=2)
    assert desk.run_cycle()
    assert 6 == stored(hourly, backfill)["total"]
    hourly.session.rows("update pgbeat.periodic_task set schedule = '0,30 * * * *'")

    totals = []
    while stored(hourly, backfill)["state"] == "running":
        for job in jobs(hourly):
            end_job(hourly, job["id"])
        assert desk.run_cycle()
        totals.append(stored(hourly, backfill)["total"])

    done = stored(hourly, backfill)
    assert {10} == set(totals)
    assert (9, 1) == (done["submitted"], done["skipped"])


def test_what_the_sun_does_in_a_thousand_years_is_not_counted_before_it_is_filled_in(
    hourly: Situation, desk: Desk
) -> None:
    pytest.importorskip("ephem")
    hourly.session.rows("update pgbeat.periodic_task set schedule = 'solar: sunset 69.65 18.96'")
    backfill = ask(hourly, 1, 6, since=NOON - timedelta(days=365_000))

    begun = time.process_time()
    assert desk.run_cycle()

    assert time.process_time() - begun < 5, "to count them takes half a minute"
    assert 365_000 >= stored(hourly, backfill)["total"] > 364_000


def test_the_figures_add_up_where_an_edit_leaves_the_next_occurrence_as_it_was(hourly: Situation, desk: Desk) -> None:
    backfill = ask(hourly, 1, 6)
    assert desk.run_cycle()
    hourly.session.rows("update pgbeat.periodic_task set schedule = '0 2,6 * * *'")

    while stored(hourly, backfill)["state"] == "running":
        for job in jobs(hourly):
            end_job(hourly, job["id"])
        assert desk.run_cycle()

    done = stored(hourly, backfill)
    assert (3, 3, 0) == (done["total"], done["submitted"], done["skipped"])


def test_a_look_at_a_thousand_backfills_takes_no_longer_than_a_tick_may_wait(
    hourly: Situation, store: BeatQueries
) -> None:
    """As after an outage, when somebody asks for what was missed of all rows; each has its job under way."""
    hourly.session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, enabled) "
        "select 'row-' || n, 'app.probe', '0 * * * *', n % 2 = 0 from generate_series(1, 1000) n"
    )
    hourly.session.rows(
        "select pgbeat.backfill(name, pgbeat.now() - interval '5 h', pgbeat.now()) from pgbeat.periodic_task"
    )
    hourly.session.rows(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until, check_at, backfill) select gen_random_uuid(), periodic_task, "
        "since, 'backfill', 'sent', true, 'app.probe', '{}', 'give_up', 'full', '1 hour', 'infinity', 'infinity', id "
        "from pgbeat.backfill"
    )
    hourly.session.rows("vacuum analyze pgbeat.backfill, pgbeat.active_job, pgbeat.periodic_task")

    took = []
    for _ in range(5):
        began = time.perf_counter()
        assert not store.look().backfills
        assert store.mark_backfill("UTC") is None
        took.append(time.perf_counter() - began)

    assert statistics.median(took) < 0.25 * slowness()  # some 0.05 on a quiet machine
    end_job(hourly, jobs(hourly)[0]["id"])
    assert store.look().backfills


# --- in a group


def test_the_jobs_of_a_row_whose_group_has_a_limit_wait_for_slots(
    situation: Situation, store: BeatQueries, desk: Desk
) -> None:
    situation.session.rows("select pgbeat.limit_group('g', 1)")
    situation.plan(group_name="g")
    made = ask(situation, 1, 3, max_active=2)

    assert desk.run_cycle()

    assert [("buffered", "slot", None)] * 2 == [
        (job["state"], job["wait_reason"], job["slot"]) for job in jobs(situation)
    ]
    assert [] == desk.sent
    assert (2, None) == (stored(situation, made)["submitted"], stored(situation, made)["marked_by"])
    assert 1 == store.grant_slots(10)
    (sent,) = store.recover(10, HOUR)
    assert ("backfill", hours(1)[0], None) == (sent.origin, sent.scheduled_for, sent.reason)


def test_a_row_of_a_paused_group_is_filled_up_to_now(situation: Situation, desk: Desk) -> None:
    """The ordinary way decides nothing of it."""
    situation.plan(NOON - timedelta(days=1, hours=10), planned_for=NOON - timedelta(days=1, hours=10), group_name="g")
    situation.session.rows("select pgbeat.pause_group('g')")
    ask(situation, 1, 3)

    for _ in range(3):
        assert desk.run_cycle()
        end_job(situation, jobs(situation)[0]["id"])

    assert "finished" == situation.session.value("select state from pgbeat.backfill")


def test_the_arguments_of_a_sensitive_row_stay_so(situation: Situation, store: BeatQueries, desk: Desk) -> None:
    situation.plan(sensitive=True)
    ask(situation, 1, 1)

    assert desk.run_cycle()

    assert jobs(situation)[0]["message"]["sensitive"] is True
