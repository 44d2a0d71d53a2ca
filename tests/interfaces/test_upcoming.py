"""What runs next, as the Python door reads it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.api import PgBeat, Upcoming
from celery_pgbeat.errors import UnknownPeriodicTask

FAR = datetime(3000, 1, 1, tzinfo=timezone.utc)


def planned(beat: PgBeat, name: str, at: datetime = FAR, schedule: Any = "@hourly", **columns: Any) -> None:
    """Declare a row and plan it as a beat does."""
    beat.schedule(name, "shop.report", schedule, **columns)
    beat.database.execute(
        "update pgbeat.periodic_task set planned_revision = revision, next_run_at = %(at)s, planned_for = %(at)s "
        "where name = %(name)s",
        {"at": at, "name": name},
    )


def test_the_next_run_of_each_row_comes_soonest_first_and_a_page_at_a_time(beat: PgBeat) -> None:
    planned(beat, "later", FAR + timedelta(days=1))
    planned(beat, "b")
    planned(beat, "a")

    assert ["a", "b", "later"] == [run.name for run in beat.upcoming()]
    assert [Upcoming("a", FAR, FAR)] == beat.upcoming(limit=1)


def test_what_waits_for_nothing_is_not_among_what_runs_next(beat: PgBeat) -> None:
    planned(beat, "paused")
    beat.pause("paused")
    beat.schedule("on demand", "shop.report")
    beat.schedule("to be planned", "shop.report", "@hourly")

    assert [] == beat.upcoming()
    assert [0, 0] == [len(beat.upcoming(name)) for name in ("paused", "on demand")]


def test_a_run_that_sql_has_set_is_planned_for_nothing(beat: PgBeat) -> None:
    beat.schedule("set", "shop.report")
    beat.database.execute("update pgbeat.periodic_task set next_run_at = %(at)s", {"at": FAR})

    assert [Upcoming("set", FAR, None)] == beat.upcoming()


def test_the_coming_runs_of_one_row_begin_with_the_one_that_is_planned(beat: PgBeat) -> None:
    planned(beat, "x", timezone="UTC")

    assert [FAR, FAR + timedelta(hours=1)] == [run.next_run_at for run in beat.upcoming("x", 2)]


def test_the_coming_runs_of_a_new_row_are_those_that_a_beat_will_plan(beat: PgBeat) -> None:
    start = datetime(2100, 1, 1, tzinfo=timezone.utc)
    beat.database.execute(
        "insert into pgbeat.blackout (name, windows, timezone) values ('night', '{0 0 * * * PT5H}', 'Asia/Tokyo')"
    )
    spread = {"jitter": "5m", "blackout": ["window: night"]}
    beat.schedule("x", "shop.report", "0 */12 * * *", timezone="UTC", start_at=start, **spread)  # type: ignore[arg-type]

    first, second = beat.upcoming("x", 2)

    assert (start, start + timedelta(hours=12)) == (first.planned_for, second.planned_for)
    assert start < first.next_run_at < start + timedelta(minutes=5)
    assert ("spread by the jitter", timedelta(0)) == (first.note, first.next_run_at.utcoffset())


def test_the_coming_runs_are_read_in_the_transaction_of_the_caller(beat: PgBeat) -> None:
    with beat.database.engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
        beat.schedule("x", "shop.report", "@hourly", timezone="UTC", connection=connection)

        assert 3 == len(beat.upcoming("x", 3, connection=connection))


def test_an_unknown_name_suggests_the_right_one(beat: PgBeat) -> None:
    beat.schedule("nightly", "shop.report", "@daily")

    with pytest.raises(UnknownPeriodicTask, match="Did you mean 'nightly'"):
        beat.upcoming("nigthly")
