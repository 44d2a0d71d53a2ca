"""The days of a backfill are those of the row's zone, the last one included: in SQL, in Python and at the shell."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from celery_pgbeat import PgBeat
from celery_pgbeat.errors import InvalidPeriodicTask, UnknownTimezone
from celery_pgbeat.schedules import own_zone
from tests.harness.session import Session
from tests.harness.shell import Run
from tests.harness.zone_texts import FOLLOWING, NAMED

UTC = timezone.utc
ZONES = [
    "America/New_York",
    "Europe/Berlin",
    "America/Havana",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Asia/Beirut",
]
MAY = ("2026-05-01", "2026-05-31")
FAR = "2100-03-01 12:00Z"


@pytest.fixture
def session(migrated_database: str) -> Session:
    made = Session(migrated_database)
    made.rows("set timezone = 'Asia/Tokyo'")  # the zone of the session decides nothing
    return made


def range_of(session: Session) -> tuple[datetime, datetime]:
    """Return the range of the backfill that was asked for, and remove it."""
    row = session.row("delete from pgbeat.backfill returning since, until")
    return row["since"].astimezone(UTC), row["until"].astimezone(UTC)


def in_three_ways(
    session: Session, beat: PgBeat, run: Run, name: str, since: str, until: str
) -> list[tuple[datetime, datetime]]:
    """Ask for the same range of days in SQL (as literals, and as dates), in Python and at the shell."""
    found = []
    for form in ("pgbeat.backfill(%s, '{}', '{}')", "pgbeat.backfill(%s, date '{}', date '{}')"):
        session.value(f"select {form.format(since, until)}", name)
        found.append(range_of(session))
    beat.backfill(name, date.fromisoformat(since), date.fromisoformat(until))
    found.append(range_of(session))
    shell = run("backfill", name, since, until)
    assert 0 == shell.exit_code, shell.output
    found.append(range_of(session))
    return found


def test_may_has_31_runs_at_22_in_new_york_in_sql_in_python_and_at_the_shell(
    session: Session, beat: PgBeat, run: Run
) -> None:
    beat.schedule("us", "t", "0 22 * * *", timezone="America/New_York")

    ranges = in_three_ways(session, beat, run, "us", *MAY)

    begin, end = datetime(2026, 5, 1, 4, tzinfo=UTC), datetime(2026, 6, 1, 4, tzinfo=UTC)
    assert {(begin, end - timedelta(microseconds=1))} == set(ranges)
    told = beat.backfill("us", date(2026, 5, 1), date(2026, 5, 31), dry_run=True)
    shown = json.loads(run("backfill", "us", *MAY, "--dry-run", "--json").stdout)
    assert (31, 31) == (told.total, shown["total"])
    local = told.first[0].astimezone(ZoneInfo("America/New_York"))
    assert (2026, 5, 1, 22) == (local.year, local.month, local.day, local.hour)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "day",
    ["2018-11-04", "2018-02-17", "2018-02-18", "2022-03-27", "2022-11-06", "2022-10-02", "2023-04-02", "2012-04-01"],
)
def test_a_day_on_which_the_clocks_change_is_the_same_whole_day_in_every_language(
    session: Session, beat: PgBeat, run: Run, zone: str, day: str
) -> None:
    beat.schedule("x", "t", "0 22 * * *", timezone=zone)

    (only,) = set(in_three_ways(session, beat, run, "x", day, day))

    around = [instant.astimezone(ZoneInfo(zone)).date().isoformat() for instant in only]
    assert [day, day] == around
    before = (only[0] - timedelta(microseconds=1)).astimezone(ZoneInfo(zone)).date().isoformat()
    after = (only[1] + timedelta(microseconds=1)).astimezone(ZoneInfo(zone)).date().isoformat()
    assert (
        before < day < after or zone == "America/Sao_Paulo"
    )  # its clocks went back over midnight, into the day before


READINGS = st.datetimes(datetime(1990, 1, 1), datetime(2037, 12, 31))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reading=READINGS, zone=st.sampled_from(ZONES))
def test_postgres_finds_the_instant_of_a_reading_as_python_does(session: Session, reading: datetime, zone: str) -> None:
    found = session.value("select pgbeat.instant_of(%s::timestamp, %s)", reading, zone)

    assert reading.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) == found.astimezone(UTC)


@pytest.mark.parametrize(
    "reading", ["2026-11-01 01:30", "2026-11-01 01:00", "2026-11-01 02:00", "2026-03-08 02:30", "2026-03-08 03:00"]
)
def test_a_reading_in_a_gap_or_an_overlap_is_the_same_instant_in_every_language(
    session: Session, beat: PgBeat, run: Run, reading: str
) -> None:
    session.rows(
        "create or replace function pgbeat.now() returns timestamptz language sql stable as $$ "
        f"select timestamptz '{FAR}' $$"
    )
    beat.schedule("x", "t", "0 22 * * *", timezone="America/New_York")
    naive = datetime.fromisoformat(reading)

    session.value(f"select pgbeat.backfill('x', '{reading}', '{reading}')")
    sql = range_of(session)
    beat.backfill("x", naive, naive)
    python = range_of(session)
    assert 0 == run("backfill", "x", reading, reading).exit_code

    assert sql == python == range_of(session)


@pytest.mark.parametrize("text", [*NAMED, *FOLLOWING])
def test_postgres_finds_the_zone_in_a_text_as_python_does(session: Session, text: str) -> None:
    assert own_zone(text) == session.value("select pgbeat.own_zone(%s)", text)


def test_the_days_of_a_text_with_a_zone_of_its_own_are_those_of_that_zone(
    session: Session, beat: PgBeat, run: Run
) -> None:
    beat.schedule("x", "t", "CRON_TZ=America/New_York 0 22 * * *", timezone="Europe/Berlin")

    assert {datetime(2026, 5, 1, 4, tzinfo=UTC)} == {begin for begin, _ in in_three_ways(session, beat, run, "x", *MAY)}


def test_an_instant_with_an_offset_stays_what_it_is(session: Session, beat: PgBeat, run: Run) -> None:
    beat.schedule("x", "t", "0 22 * * *", timezone="America/New_York")
    texts = ("2026-05-01T00:00Z", "2026-05-31T00:00+02:00")
    expected = (datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 30, 22, tzinfo=UTC))

    session.value("select pgbeat.backfill('x', '2026-05-01T00:00Z', '2026-05-31T00:00+02:00')")
    assert expected == range_of(session)
    session.value("select pgbeat.backfill('x', timestamptz '2026-05-01 00:00Z', timestamptz '2026-05-31 00:00+02')")
    assert expected == range_of(session)
    beat.backfill("x", *expected)
    assert expected == range_of(session)
    assert 0 == run("backfill", "x", *texts).exit_code
    assert expected == range_of(session)
    assert "Asia/Tokyo" == session.value("show timezone")


def test_a_range_up_to_today_ends_now(session: Session, beat: PgBeat, run: Run) -> None:
    beat.schedule("x", "t", "0 22 * * *", timezone="Pacific/Kiritimati")
    today = session.value("select (pgbeat.now() at time zone 'Pacific/Kiritimati')::date")
    present = session.value("select pgbeat.now()").astimezone(UTC)

    for words in ((MAY[0], today.isoformat()), (MAY[0], "today")):
        session.value("select pgbeat.backfill('x', %s::text, %s::text)", *words)
        assert timedelta(0) <= range_of(session)[1] - present < timedelta(minutes=5)
        assert 0 == run("backfill", "x", *words).exit_code
        assert timedelta(0) <= range_of(session)[1] - present < timedelta(minutes=5)
    beat.backfill("x", date(2026, 5, 1), today)
    assert timedelta(0) <= range_of(session)[1] - present < timedelta(minutes=5)
    tomorrow = today + timedelta(days=1)
    for refuse in (
        lambda: beat.backfill("x", date(2026, 5, 1), tomorrow),
        lambda: beat.backfill("x", date(2026, 5, 1), tomorrow, dry_run=True),
    ):
        with pytest.raises(InvalidPeriodicTask, match="which is still to come"):
            refuse()
    assert "which is still to come" in str(session.refusal("select pgbeat.backfill('x', %s, %s)", tomorrow, tomorrow))
    assert "which is still to come" in run("backfill", "x", MAY[0], "tomorrow").stderr


def test_yesterday_is_that_of_the_row_s_zone_at_the_shell_and_in_sql(session: Session, beat: PgBeat, run: Run) -> None:
    for zone in ("Pacific/Kiritimati", "Pacific/Marquesas"):
        beat.schedule("x", "t", "0 22 * * *", timezone=zone)
        day = session.value("select (pgbeat.now() at time zone %s)::date - 1", zone)
        beat.backfill("x", day, day)
        expected = range_of(session)

        session.value("select pgbeat.backfill('x', 'yesterday', 'Yesterday')")
        assert expected == range_of(session)
        assert 0 == run("backfill", "x", "yesterday", "yesterday").exit_code
        assert expected == range_of(session)


def test_one_day_alone_is_that_day_at_the_shell(session: Session, beat: PgBeat, run: Run) -> None:
    beat.schedule("x", "t", "0 22 * * *", timezone="Pacific/Kiritimati")
    for words, day in ((("backfill", "x"), "2026-05-01"), (("backfill", "start", "x"), "yesterday")):
        assert 0 == run(*words, day, day).exit_code
        expected = range_of(session)
        session.rows("delete from pgbeat.backfill")

        assert 0 == run(*words, day).exit_code
        assert expected == range_of(session)

    for instant in ("2026-05-01 12:00Z", "2d"):
        refused = run("backfill", "x", instant)
        assert (2, True) == (refused.exit_code, "Missing argument 'UNTIL'" in refused.stderr)


# --- what is refused


def test_days_of_a_row_whose_zone_no_beat_has_filled_in_need_an_app_or_an_offset(
    session: Session, beat: PgBeat, run: Run, migrated_database: str
) -> None:
    beat.schedule("x", "t", "0 22 * * *")
    session.rows("set timezone = 'UTC'")
    app = Celery("shop", set_as_current=False)
    app.conf.timezone = "Europe/Berlin"
    day = date(2026, 5, 1)

    with pytest.raises(UnknownTimezone, match="'x' has no timezone yet"):
        beat.backfill("x", day, day)
    with pytest.raises(UnknownTimezone, match="'x' has no timezone yet"):
        beat.backfill("x", datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC), dry_run=True)
    assert "'x' has no timezone yet" in run("backfill", "x", *MAY).stderr
    for days in ("'2026-05-01', '2026-05-01'", "date '2026-05-01', date '2026-05-01'", "'yesterday', 'yesterday'"):
        refusal = session.refusal(f"select pgbeat.backfill('x', {days})")
        assert ("22023", True) == (refusal.pgcode, "without an offset, and 'x' has no timezone yet" in str(refusal))
    assert session.value("select pgbeat.backfill('x', '2026-05-01 00:00Z', '2026-05-02 00:00Z')")
    range_of(session)
    with_app = PgBeat(app, url=migrated_database)
    with_app.backfill("x", day, day)
    assert datetime(2026, 4, 30, 22, tzinfo=UTC) == range_of(session)[0]
    with_app.close()


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("may", "22023", "since is 'may', neither a date nor a date-time"),
        ("2026-02-30", "22023", "since is '2026-02-30', neither a date nor a date-time"),
        ("2026-13-01 00:00", "22023", "since is '2026-13-01 00:00', neither a date nor a date-time"),
        ("infinity", "22023", "since is infinity, outside the years 1 to 9999"),
    ],
)
def test_a_text_that_is_no_time_is_refused_by_name_and_value(
    session: Session, beat: PgBeat, text: str, code: str, said: str
) -> None:
    beat.schedule("x", "t", "0 22 * * *", timezone="UTC")

    refusal = session.refusal("select pgbeat.backfill('x', %s::text, '2026-05-31'::text)", text)

    assert (code, True) == (refusal.pgcode, said in str(refusal))


def test_an_unknown_name_and_a_row_without_a_schedule_are_refused_first(session: Session, beat: PgBeat) -> None:
    beat.schedule("on demand", "t")
    for days in ("'2026-05-01', '2026-05-31'", "date '2026-05-01', date '2026-05-31'"):
        unknown = session.refusal(f"select pgbeat.backfill('on demnad', {days})")
        assert ("P0002", True) == (unknown.pgcode, "Did you mean 'on demand'?" in str(unknown))
        assert "has no schedule" in str(session.refusal(f"select pgbeat.backfill('on demand', {days})"))
    with pytest.raises(InvalidPeriodicTask, match="has no schedule"):
        beat.backfill("on demand", date(2026, 5, 1), date(2026, 5, 31))
    for nothing in ("null, null", "null::date, null::date"):
        beat.schedule("x", "t", "0 22 * * *", timezone="UTC")
        assert "since is null" in str(session.refusal(f"select pgbeat.backfill('x', {nothing})"))


def test_what_is_neither_a_date_nor_a_datetime_is_refused(beat: PgBeat) -> None:
    beat.schedule("x", "t", "0 22 * * *", timezone="Pacific/Kiritimati")
    wrong: Any = "2026-05-01"

    with pytest.raises(InvalidPeriodicTask, match="since is '2026-05-01', neither a date nor a datetime"):
        beat.backfill("x", wrong, date(2026, 5, 31))
    for since, until in ((date.min, date(2026, 5, 1)), (date(2026, 5, 1), date.max)):
        with pytest.raises(InvalidPeriodicTask, match=r"outside the years|still to come"):
            beat.backfill("x", since, until)


@pytest.mark.parametrize("schedule", ["every 1d", "every 30s", "R/PT1H", "PT5M", "P1D", "every: 5m"])
def test_an_interval_that_has_no_occurrence_yet_says_why(
    session: Session, beat: PgBeat, run: Run, schedule: str
) -> None:
    beat.schedule("x", "t", schedule, timezone="UTC")
    since, until = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 31, tzinfo=UTC)
    said = (
        r"'x' has no occurrence up to 2026-05-31T00:00:00\+00:00: its schedule begins at .*; give the row an earlier an"
    )

    for dry_run in (False, True):
        with pytest.raises(InvalidPeriodicTask, match=said):
            beat.backfill("x", since, until, dry_run=dry_run)  # type: ignore[call-overload]
    assert (1, True) == (
        run("backfill", "x", *MAY).exit_code,
        "earlier anchor" in run("backfill", "x", *MAY).stderr,
    )
    refusal = session.refusal("select pgbeat.backfill('x', %s, %s)", since, until)
    assert "'x' has no occurrence up to 2026-05-31 00:00:00Z" in str(refusal)
    assert "give the row an earlier anchor" in str(refusal.diag.message_hint)
    beat.schedule("x", "t", schedule, timezone="UTC", anchor=datetime(2026, 4, 1, tzinfo=UTC))
    assert beat.backfill("x", since, until, dry_run=True).total >= 30
    assert session.value("select pgbeat.backfill('x', %s, %s)", since, until)


def test_a_daily_interval_of_today_has_none_up_to_now_and_says_so(beat: PgBeat, run: Run) -> None:
    beat.schedule("x", "t", "R/P1D", timezone="UTC")

    assert "'x' has no occurrence up to" in run("backfill", "x", "2026-05-01", "now").stderr


def test_the_examples_of_the_page_count_the_same(session: Session, beat: PgBeat, run: Run) -> None:
    """The numbers of docs/backfill.md, whose blocks are run by another test."""
    root = Path(__file__).parents[2]

    page = (root / "docs" / "backfill.md").read_text()
    (python,) = set(re.findall(r"date\((\d+), (\d+), (\d+)\), date\((\d+), (\d+), (\d+)\)", page))
    (sql,) = set(re.findall(r"backfill\('daily-sales', '([\d-]+)', '([\d-]+)'", page))
    (shell,) = set(re.findall(r"backfill daily-sales ([\d-]+) ([\d-]+)", page))
    days = tuple(date(*map(int, python[at : at + 3])).isoformat() for at in (0, 3))
    assert days == sql == shell
    beat.schedule("daily-sales", "t", "0 3 * * *", timezone="Europe/Berlin")
    (only,) = set(in_three_ways(session, beat, run, "daily-sales", *days))
    assert 31 == beat.backfill("daily-sales", *only, dry_run=True).total
