"""Moving the entries of an app's code into rows that people own."""

from __future__ import annotations

import shelve
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from celery.beat import ScheduleEntry

from tests.harness.peers.beat_schedule_peer import ENTRIES, REFUSED
from tests.harness.peers.moving_in import AUTUMN, SPRING, MovingIn
from tests.harness.session import Session

PEER = "beat_schedule_peer"
AUTUMN_DIFFERENCES = {"cron 01": ([], ["10-25 01:00:00", "10-25 01:30:00"])}
SPRING_DIFFERENCES = {"cron 02": (["03-28 01:30:00"], ["03-28 01:00:00"])}


@pytest.fixture
def moving(migrated_database: str) -> MovingIn:
    """The entries of an app in Berlin."""
    return MovingIn("beat-schedule", migrated_database, app=f"tests.harness.peers.{PEER}")


@pytest.mark.parametrize(("start", "expected"), [(AUTUMN, AUTUMN_DIFFERENCES), (SPRING, SPRING_DIFFERENCES)])
def test_both_run_at_the_same_times_apart_from_what_the_docs_list(
    moving: MovingIn, start: datetime, expected: object
) -> None:
    moving.clock.stand_at(start)
    report = moving.report("--apply", "--yes")

    assert expected == moving.differences(PEER, start)
    assert ENTRIES.keys() == {name for name, row in report.items() if row["taken"]}
    assert REFUSED.keys() == {name for name, row in report.items() if not row["taken"]}
    assert (
        "a BeatLazyFunc makes its arguments for each message, and a row cannot: leave it in code"
        == (report["lazy"]["reason"])
    )


def test_options_and_our_own_columns_are_kept(moving: MovingIn) -> None:
    report = moving.report("--apply", "--yes")
    session = Session(moving.url)

    row = session.task("with everything")
    wanted = {"args": [1, "a"], "kwargs": {"b": [None]}, "queue": "slow", "priority": 3, "managed_by": "api"}
    assert {**wanted, "overlap": "allow"} == {column: row[column] for column in [*wanted, "overlap"]}
    assert {"expires": 60, "headers": {"tenant": "north"}, "exchange": "shop", "routing_key": "shop.slow"} == (
        row["options"]
    )
    assert timedelta(minutes=10) == row["catchup_window"]
    assert "skip" == session.task("own rule")["overlap"]
    assert ["run_on_start has no effect: the row is not new at the next start"] == report["own rule"]["changes"]


def test_a_second_import_changes_nothing(moving: MovingIn) -> None:
    moving.report("--apply", "--yes")

    assert {"equal"} == {row["kind"] for row in moving.report("--apply", "--yes").values() if row["taken"]}


def test_tasks_that_the_app_does_not_know_are_named(moving: MovingIn) -> None:
    assert "The app knows no task 'shop.work'" in moving.run().stderr


def test_without_an_app_there_is_nothing_to_read(migrated_database: str) -> None:
    done = MovingIn("beat-schedule", migrated_database).run()

    assert (1, "Error: beat-schedule is read from an app: name it, with -A\n") == (done.exit_code, done.stderr)


def test_last_runs_come_from_the_schedule_file_of_beat_only_if_it_is_trusted(moving: MovingIn, tmp_path: Path) -> None:
    path = str(tmp_path / "celerybeat-schedule")
    last = AUTUMN - timedelta(minutes=7)
    with closing(shelve.open(path)) as shelf:
        shelf["entries"] = {"seconds": ScheduleEntry(name="seconds", task="shop.work", schedule=90.0, last_run_at=last)}
    moving.source = path
    moving.clock.stand_at(AUTUMN)

    refused = moving.run()
    moving.report("--trust-pickle", "--apply", "--yes")

    assert (1, True) == (
        refused.exit_code,
        "holds pickles, and to load one runs whatever code it names" in refused.stderr,
    )
    assert last == Session(moving.url).task("seconds")["anchor"]
    moving.source = str(tmp_path / "none")
    missing = moving.run("--trust-pickle")
    assert (1, True) == (missing.exit_code, "is no schedule file of Celery's beat" in missing.stderr)
