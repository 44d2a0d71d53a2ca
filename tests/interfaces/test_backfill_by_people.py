"""Backfills through the Python door and the shell: what is asked for, told in advance, listed and cancelled."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.api import Backfill, PgBeat
from celery_pgbeat.cli.options import confirmation
from celery_pgbeat.errors import BackfillOver, InvalidPeriodicTask, UnknownBackfill
from tests.harness.shell import Run
from tests.harness.situations import NOON, Situation
from tests.harness.ticks import beat as a_beat
from tests.interfaces.test_backfill import Desk, end_job, hours, jobs

UTC = timezone.utc
DAY = ("2100-02-28T01:00Z", "2100-02-28T05:00Z")


@pytest.fixture
def hourly(situation: Situation) -> Situation:
    situation.plan(timezone="UTC")
    return situation


@pytest.fixture
def desk(hourly: Situation, migrated_database: str) -> Desk:
    del hourly
    return Desk(a_beat(migrated_database))


# --- Python


def test_a_backfill_is_shown_in_its_present_state(beat: PgBeat, hourly: Situation, desk: Desk) -> None:
    since, until = hours(1, 5)
    made = beat.backfill("nightly", since, until, "all", max_active=2)

    assert (
        Backfill(
            id=made.id,
            periodic_task="nightly",
            since=since,
            until=until,
            mode="all",
            max_active=2,
            state="running",
            reached=None,
            total=None,
            submitted=0,
            skipped=0,
            active=0,
            problem=None,
            created_at=NOON,
            created_by="postgres",
            finished_at=None,
        )
        == made
    )
    assert desk.run_cycle()
    end_job(hourly, jobs(hourly)[0]["id"])
    (now,) = beat.backfills("nightly")
    assert (made.id, 5, 2, 1, "running") == (now.id, now.total, now.submitted, now.active, now.state)


def test_backfills_are_found_by_row_by_state_and_by_id(beat: PgBeat, hourly: Situation) -> None:
    hourly.plan(name="other")
    first = beat.backfill("nightly", *hours(1, 2))
    hourly.clock.advance(timedelta(seconds=1))
    second = beat.backfill("other", *hours(1, 2))

    assert [second.id, first.id] == [one.id for one in beat.backfills()]
    assert [second] == beat.backfills(limit=1)
    assert [first] == beat.backfills("nightly") == beat.backfills(id=first.id)
    beat.cancel_backfill(first.id)
    assert [second] == beat.backfills(state="running")


def test_a_backfill_joins_the_caller_s_transaction(beat: PgBeat, hourly: Situation) -> None:
    with beat.database.engine.connect().execution_options(isolation_level="READ COMMITTED") as connection:
        made = beat.backfill("nightly", *hours(1, 2), connection=connection)
        assert "cancelled" == beat.cancel_backfill(made.id, connection=connection).state
        connection.rollback()

    assert [] == beat.backfills()
    del hourly


def test_what_is_over_or_unknown_cannot_be_cancelled(beat: PgBeat, hourly: Situation) -> None:
    made = beat.backfill("nightly", *hours(1, 2))
    assert "cancelled" == beat.cancel_backfill(str(made.id)).state

    with pytest.raises(BackfillOver, match="was cancelled at 2100-03-01 12:00:00Z: there is nothing left to cancel"):
        beat.cancel_backfill(made.id)
    with pytest.raises(UnknownBackfill, match="There is no backfill 00000000-"):
        beat.cancel_backfill(uuid.UUID(int=7))
    for ask in (beat.cancel_backfill, lambda name: beat.backfills(id=name)):
        with pytest.raises(UnknownBackfill, match="There is no backfill 'nightly': an id is a UUID"):
            ask("nightly")
    del hourly


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_wrong_range_is_refused_dry_or_not(beat: PgBeat, hourly: Situation, dry_run: bool) -> None:
    hourly.task("on demand", schedule=None)
    since, until = hours(1, 5)
    wrong: dict[str, tuple[Any, ...]] = {
        "since is 'May', neither a date nor a datetime": ("nightly", "May", until),
        "later than until": ("nightly", until, since),
        "which is still to come": ("nightly", since, NOON + timedelta(seconds=1)),
        "mode is 'lost'": ("nightly", since, until, "lost"),
        "mode is 7": ("nightly", since, until, 7),
        "max_active is 0: it is a whole number from 1 to 1000": ("nightly", since, until, "all", 0),
        "max_active is 2.5": ("nightly", since, until, "all", 2.5),
        "max_active is '2'": ("nightly", since, until, "all", "2"),
        f"max_active is {2**40}": ("nightly", since, until, "all", 2**40),
        "'on demand' has no schedule": ("on demand", since, until),
    }

    for message, arguments in wrong.items():
        with pytest.raises(InvalidPeriodicTask, match=message):
            beat.backfill(*arguments, dry_run=dry_run)
    assert [] == beat.backfills()


@pytest.mark.parametrize(
    ("mode", "to_submit", "first"), [("missing", 21, [1, 2, 5]), ("failed", 1, [3]), ("all", 24, [0, 1, 2])]
)
def test_a_dry_run_says_what_the_beats_then_do(
    beat: PgBeat, hourly: Situation, desk: Desk, mode: str, to_submit: int, first: list[int]
) -> None:
    hourly.final("succeeded", hours(0)[0])
    hourly.final("failed", hours(3)[0])
    hourly.final("succeeded", hours(4)[0])
    hourly.final("succeeded", hours(4)[0] + timedelta(minutes=1))  # of another schedule
    since, until = hours(0, 23)

    told = beat.backfill("nightly", since, until, mode, 1000, dry_run=True)

    assert (24, to_submit, 24 - to_submit, 0) == (told.total, told.to_submit, told.skipped, told.undecided)
    assert hours(*first) == list(told.first[: len(first)])
    assert min(10, to_submit) == len(told.first)
    assert hours(0)[0] == told.history_since
    assert [] == beat.backfills()
    beat.backfill("nightly", since, until, mode, 1000)
    assert desk.run_cycle()
    (made,) = beat.backfills()
    assert (told.total, told.to_submit, told.skipped) == (made.total, made.submitted, made.skipped)
    assert list(told.first) == [job["scheduled_for"] for job in jobs(hourly)][: len(told.first)]


def test_a_dry_run_reads_a_long_history_page_by_page(
    beat: PgBeat, hourly: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("celery_pgbeat.api.backfills.PAGE", 3)
    for hour in (0, 1, 2, 3, 4, 5, 7, 8, 20):
        hourly.final("failed", hours(hour)[0])

    missing = beat.backfill("nightly", *hours(0, 23), dry_run=True)
    failed = beat.backfill("nightly", *hours(0, 23), "failed", dry_run=True)

    assert (15, [6, 9, 10, 11, 12, 13, 14, 15, 16, 17]) == (missing.to_submit, [one.hour for one in missing.first])
    assert (9, [0, 1, 2, 3, 4, 5, 7, 8, 20]) == (failed.to_submit, [one.hour for one in failed.first])


def test_a_dry_run_says_what_the_schedule_has_still_to_decide(beat: PgBeat, hourly: Situation) -> None:
    hourly.session.rows("update pgbeat.periodic_task set next_run_at = %s", hours(4)[0])

    told = beat.backfill("nightly", *hours(1, 6), dry_run=True)

    assert (6, 3, 0, 3, None) == (told.total, told.to_submit, told.skipped, told.undecided, told.history_since)


# --- the shell


def test_a_range_is_filled_from_the_shell(run: Run, hourly: Situation, desk: Desk) -> None:
    begun = run("backfill", "nightly", *DAY, "--mode", "all", "--max-active", "2")

    (row,) = hourly.session.rows("select * from pgbeat.backfill")
    assert (0, f"Started a backfill of 'nightly': {row['id']}\n") == (begun.exit_code, begun.stdout)
    assert (*hours(1, 5), "all", 2) == tuple(row[column] for column in ("since", "until", "mode", "max_active"))
    assert desk.run_cycle()
    heading, line = run("backfill", "list", "nightly").stdout.splitlines()
    assert ["BACKFILL", "PERIODIC", "TASK"] == heading.split()[:3]
    assert line.split()[1:7] == ["nightly", "running", "2", "of", "5", "2"]
    cancelled = run("backfill", "cancel", row["id"])
    assert "Cancelled the backfill of 'nightly': it has made 2 jobs, 2 of them still under way.\n" == cancelled.output
    again = run("backfill", "cancel", row["id"])
    assert (1, True) == (again.exit_code, "there is nothing left to cancel" in again.stderr)
    assert [] == json.loads(run("backfill", "list", "--state", "running", "--json").stdout)


def test_an_instant_without_an_offset_is_read_in_the_zone_of_the_row(run: Run, hourly: Situation) -> None:
    assert 0 == run("backfill", "nightly", "2100-02-28", "2100-02-28T05:00").exit_code

    assert hours(0, 5) == [*hourly.session.row("select since, until from pgbeat.backfill").values()]


def test_a_dry_run_shows_what_would_be_done_and_how_far_back_anything_is_known(run: Run, hourly: Situation) -> None:
    hourly.final("succeeded", hours(2)[0])

    shown = run("backfill", "nightly", *DAY, "--dry-run")

    assert (
        "occurrences  5\n"
        "to submit    4\n"
        "skipped      1\n"
        "first        2100-02-28 01:00:00Z, 2100-02-28 03:00:00Z, 2100-02-28 04:00:00Z, 2100-02-28 05:00:00Z\n"
    ) == shown.stdout
    assert "The history begins at 2100-02-28 02:00:00Z: older occurrences count as missing.\n" == shown.stderr
    told = json.loads(run("backfill", "nightly", *DAY, "--dry-run", "--json").stdout)
    assert (5, 4, 1, 0) == tuple(told[key] for key in ("total", "to_submit", "skipped", "undecided"))
    assert ["2100-02-28T01:00:00+00:00", "2100-02-28T03:00:00+00:00"] == told["first"][:2]
    assert 0 == hourly.session.value("select count(*) from pgbeat.backfill")


def test_more_than_a_thousand_jobs_need_a_confirmation(
    run: Run, hourly: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    long = ("backfill", "nightly", "2099-02-28", "2100-02-28")

    refused = run(*long, input="n\n")

    assert (1, 0) == (refused.exit_code, hourly.session.value("select count(*) from pgbeat.backfill"))
    assert "Submit 8784 jobs of 'nightly'? [y/N]" in refused.stderr
    for words, answer in ((long, "y\n"), ((*long, "--yes"), ""), (("backfill", "nightly", *DAY), "")):
        assert 0 == run(*words, input=answer).exit_code
    assert 3 == hourly.session.value("select count(*) from pgbeat.backfill")


def test_waiting_for_a_backfill_prints_its_end(
    run: Run, hourly: Situation, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at how far it has come is, here, also the beat's cycle and the worker's."""

    def work(_seconds: float) -> None:
        desk.run_cycle()
        for job in jobs(hourly):
            end_job(hourly, job["id"])

    monkeypatch.setattr("time.sleep", work)

    waited = run("backfill", "nightly", *DAY, "--wait")

    assert 0 == waited.exit_code
    assert waited.stdout.endswith("state      finished\ntotal      5\nsubmitted  5\nskipped    0\nactive     0\n")
    assert "finished" == json.loads(run("backfill", "nightly", *DAY, "--wait", "--json").stdout)["state"]


def test_waiting_for_a_backfill_that_cannot_go_on_prints_why(
    run: Run, hourly: Situation, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(_seconds: float) -> None:
        hourly.session.rows("delete from pgbeat.periodic_task")
        desk.run_cycle()

    monkeypatch.setattr("time.sleep", work)

    waited = run("backfill", "nightly", *DAY, "--wait")

    assert 1 == waited.exit_code
    assert "The backfill was cancelled before its end: its periodic task was removed or renamed\n" in waited.stderr


def test_interrupting_the_wait_prints_how_to_cancel_the_backfill(
    run: Run, hourly: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupt)

    waited = run("backfill", "nightly", *DAY, "--wait")

    row = hourly.session.row("select id, state from pgbeat.backfill")
    assert (1, "running") == (waited.exit_code, row["state"])
    assert f"backfill cancel {row['id']}`\n" in waited.stderr


def test_the_clock_of_the_database_decides_what_is_in_the_future(run: Run, hourly: Situation) -> None:
    refused = run("backfill", "nightly", "2100-02-28", datetime(2100, 3, 2, tzinfo=UTC).isoformat())

    assert 1 == refused.exit_code
    assert "which is still to come" in refused.stderr
    del hourly
