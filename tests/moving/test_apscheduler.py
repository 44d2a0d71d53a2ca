"""Moving from APScheduler 3: its job store is filled, and its runs computed, by its own code."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import islice

import pytest
from apscheduler.triggers.cron import CronTrigger

from celery_pgbeat.moving.kinds.apscheduler_jobs import cron_text
from celery_pgbeat.schedules import parse
from tests.harness.peers.moving_in import AUTUMN, SPRING, MovingIn
from tests.harness.session import Session

PEER = "apscheduler_peer"
AUTUMN_DIFFERENCES = {  # an interval there leaves out the second pass of the repeated hour
    "every 20": ([], ["10-25 01:19:56", "10-25 01:39:56", "10-25 01:59:56"]),
    "every 95": (["10-25 00:04:56"], ["10-25 01:04:56"]),
}
REFUSED = {
    "a week": "its trigger names weeks of the year (*/2): write it as an RRULE with BYWEEKNO",
    "seconds on both day fields": "its trigger has seconds or years, and both day fields: write it as a calendar event",
    "either": "its trigger is a OrTrigger, and no kind of schedule here has its times",
    "not JSON": "args[0] is ",
}


@pytest.fixture
def moving(migrated_database: str) -> MovingIn:
    """Its table in our database."""
    return MovingIn("apscheduler", migrated_database)


@pytest.mark.parametrize(("start", "expected"), [(AUTUMN, AUTUMN_DIFFERENCES), (SPRING, {})])
def test_both_run_at_the_same_times_apart_from_what_the_docs_list(
    moving: MovingIn, start: datetime, expected: object
) -> None:
    moving.filled_by(PEER, start)
    report = moving.report("--trust-pickle", "--apply", "--yes")
    Session(moving.url).rows("update pgbeat.periodic_task set jitter = null")

    assert expected == moving.differences(PEER, start)
    refused = {name: row["reason"] for name, row in report.items() if not row["taken"]}
    assert REFUSED.keys() == refused.keys()
    assert all(refused[name].startswith(reason) for name, reason in REFUSED.items())


def test_its_rules_for_late_and_overlapping_runs_are_kept(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    report = moving.report("--trust-pickle", "--apply", "--yes")
    session = Session(moving.url)

    row, plain = session.task("with everything"), session.task("workdays")
    assert ("json.dumps", [[1]], {"indent": 2}, "allow", "all", timedelta(minutes=2), timedelta(seconds=30)) == tuple(
        row[column] for column in ("task", "args", "kwargs", "overlap", "catchup", "catchup_window", "jitter")
    )
    assert ("skip", "latest", None) == (plain["overlap"], plain["catchup"], plain["catchup_window"])
    assert [
        "any number of runs may overlap, not only 3",
        "a run is up to 30 s late, and never early",
    ] == report["with everything"]["changes"]
    assert ["paused"] == [
        found["name"] for found in session.rows("select name from pgbeat.periodic_task where not enabled")
    ]
    assert {"equal"} == {found["kind"] for found in moving.report("--trust-pickle").values() if found["taken"]}


def test_no_pickle_is_loaded_without_the_word_of_the_caller(moving: MovingIn) -> None:
    moving.filled_by(PEER, AUTUMN)
    session = Session(moving.url)

    refused = moving.run()
    session.rows("update apscheduler_jobs set job_state = 'nonsense' where id = 'paused'")
    report = moving.report("--trust-pickle")

    assert (1, True) == (
        refused.exit_code,
        "to load one runs whatever code it names: give --trust-pickle" in refused.stderr,
    )
    assert "its pickle cannot be loaded: UnpicklingError: " in report["paused"]["reason"]


@pytest.mark.parametrize(
    ("day", "weekday", "text"),
    [
        ("1st sun,3rd sun", "*", "crontab: 0 9 * * sun#1,sun#3"),
        ("last fri", "*", "crontab: 0 9 * * friL"),
        ("15,last", "*", "crontab: 0 9 15,L * *"),
        ("last", "0-4", "crontab: 0 9 L * mon,tue,wed,thu,fri"),
    ],
)
def test_days_of_a_month_have_the_same_meaning(day: str, weekday: str, text: str) -> None:
    fields = {"year": "*", "month": "*", "day": day, "week": "*", "day_of_week": weekday, "hour": "9", "minute": "0"}
    start = datetime(2026, 12, 1, tzinfo=timezone.utc)
    theirs, runs, at = CronTrigger(day=day, day_of_week=weekday, hour=9, timezone="UTC"), [], start
    for _ in range(20):
        at = theirs.get_next_fire_time(None, at)
        runs.append(at)
        at += timedelta(seconds=1)

    assert text == cron_text({**fields, "second": "0"})
    assert runs == list(islice(parse(text).occurrences(start), 20))


@pytest.mark.parametrize(("day", "weekday"), [("1st sun,15", "*"), ("1st sun", "mon")])
def test_days_that_no_text_has_are_named(day: str, weekday: str) -> None:
    fields = {"year": "*", "month": "*", "day": day, "week": "*", "day_of_week": weekday, "hour": "9", "minute": "0"}

    with pytest.raises(ValueError, match=f"its trigger names '{day}' and other days: write it as an RRULE"):
        cron_text({**fields, "second": "0"})
