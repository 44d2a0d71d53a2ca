"""What SQL refuses when a row is written: only what Python refuses too, in the same words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import available_timezones

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from celery_pgbeat.declare import define
from celery_pgbeat.declare.options import read_options
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.interval.reader import NO_TIME_OF_DAY
from celery_pgbeat.schedules.kind import Kind
from celery_pgbeat.schedules.registry import KINDS
from celery_pgbeat.settings import Settings
from tests.harness.session import Session, reason
from tests.harness.wrong_texts import NIGHT, lists_of_windows, wrong_texts

REFUSED = {
    "0 0 * * * America/New_York": "a zone is no field: set timezone to 'America/New_York', or write "
    "CRON_TZ=America/New_York in front",
    "CRON: 0 0 0 * * * UTC": "a zone is no field: set timezone to 'UTC', or write CRON_TZ=UTC in front",
    "Cron(0 13 * * ? *)": "not a schedule: Cron(...) is Amazon's notation; write its fields without the year, and "
    "weekdays by name: 0 13 * * MON-FRI",
    "rate (5 minutes)": "not a schedule: rate(...) is Amazon's notation; write every 5m",
    "at(2026-12-09T09:00:00)": "not a schedule: at(...) is Amazon's notation; write the time alone: 2026-12-09T09:00",
    "every day at 3am": NO_TIME_OF_DAY,
    "every hour at minute 12": NO_TIME_OF_DAY,
    "every: Sunday": NO_TIME_OF_DAY,
    "every -1 day AT noon": NO_TIME_OF_DAY,
    "0 25 * * *": "hour 25 is not in 0-23",
    "60 * * * *": "minute 60 is not in 0-59",
    "* * 0 * *": "day 0 is not in 1-31",
    "* * 32 * *": "day 32 is not in 1-31",
    "* * * 13 *": "month 13 is not in 1-12",
    "* * * * 8": "weekday 8 is not in 0-7",
    "0-75 * * * *": "minute 75 is not in 0-59",
    "1,2,99 * * * *": "minute 99 is not in 0-59",
    "61 * * * * *": "second 61 is not in 0-59",
    "0 0 24 * * * 2027": "hour 24 is not in 0-23",
    "0 0 12 * * * 1969": "year 1969 is not in 1970-2199",
    "*/0 * * * *": "a step of 0 in minute",
    "0 0 */00 * *": "a step of 0 in day",
    "1,,2 * * * *": "minute '1,,2' has an empty element in its list",
    "foo * * * *": "minute 'foo' is not a number, a range, a list or a step",
    "* * * january *": "month 'january' is not a number, a name, a range, a list or a step",
    "*/x * * * *": "minute '*/x' is not a number, a range, a list or a step",
    "? * * * *": "minute '?' is not a number, a range, a list or a step",
    "0 0 30 2 *": "day 30 never occurs in month 2",
    "0 0 31 apr,jun,9 ?": "day 31 never occurs in month 4,6,9",
    "0 0 30-31 feb */2": "day 30 never occurs in month 2",
    "crontab: 0 0 30 2 mon": "day 30 never occurs in month 2",
    "cron: * * * *": "cron has 5, 6 or 7 fields, not 4",
    "* * * * * * * *": "cron has 5, 6 or 7 fields, not 8",
    "@reboot": "@reboot has no meaning here, beats come and go; use @hourly, or trigger the task",
    "@fortnightly": "'@fortnightly' is not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, "
    "@every <duration>",
    "every -20s": "an interval must be longer than 0",
    "every 0s": "an interval must be longer than 0",
    "@every 0h0m": "an interval must be longer than 0",
    "every 5 parsecs": "'parsecs' is not a unit of time: use ms, s, m, h, d or w",
    "every 2 months": "a month has no fixed length: write P1M or P1Y, which follow the calendar",
    "PT0S": "an interval must be longer than 0",
    "-PT5M": "an interval must be longer than 0",
    "PT5X": "'PT5X' is not an ISO 8601 duration such as PT5M or P1DT12H",
    "P1DT": "'P1DT' is not an ISO 8601 duration such as PT5M or P1DT12H",
    "R/PT0S": "an interval must be longer than 0",
    "R0/PT1H": "R0 never occurs: to run once, write a plain date-time",
    "R/2026-12-07": "the last part must be a duration such as PT1H, not '2026-12-07'",
    "R/2026-13-07/P1D": "month 13 is not in 1-12",
    "2026-12-32": "day 32 is not in 1-31",
    "2027-02-30 12:00": "day 30 never occurs in month 2",
    "2027-02-29": "day 29 never occurs in month 2 of 2027",
    "2100-02-29": "day 29 never occurs in month 2 of 2100",
    "2026-12-08T24:00:00Z": "hour 24 is not in 0-23",
    "Mon *-*-* 88:00": "hour 88 is not in 0-23",
    "*-13-* 09:00": "month 13 is not in 1-12",
    "*-*-* *:0/0": "a step of 0 in minute",
    "RRULE:FREQ=DAILY;INTERVAL=0": "INTERVAL 0 is not in 1-1000000000",
    "*-04-31": "day 31 never occurs in month 4",
    "it works": "not a schedule: write cron (*/5 * * * *), an interval (every 30s), ISO 8601 (R/PT1H, 2026-12-09), "
    "a calendar event (Mon..Fri 09:00), RRULE:... or solar: ...",
    "": "not a schedule: write cron (*/5 * * * *), an interval (every 30s), ISO 8601 (R/PT1H, 2026-12-09), "
    "a calendar event (Mon..Fri 09:00), RRULE:... or solar: ...",
    "30s": "not a schedule: did you mean 'every 30s'?",
    "300": "not a schedule: did you mean 'every 300s'?",
    "cron: 300": "not a schedule: did you mean 'every 300s'?",
    "0": "cron has 5, 6 or 7 fields, not 1",
    "*/5 * * * é": "'é' is not an ASCII character",
    "*" * 251: "longer than 250 characters",
}
FOREIGN_ZONES = {
    "CRON_TZ=Mars/Olympus 0 9 * * *": "Mars/Olympus",
    "Mon 09:00 Mars/Olympus": "Mars/Olympus",
    "DTSTART;TZID=Mars/Olympus:20261201T090000 RRULE:FREQ=DAILY": "Mars/Olympus",
}

ACCEPTED = [
    "*/5 * * * *",
    "0 9 * * mon-fri",
    "0 22-2 * * FRI-MON",
    "5/15 0 * * *",
    "*/100 * * * *",
    "30 0 12 L * ?",
    "0 0 12 LW * ? 2027",
    "0 0 15W * *",
    "0 0 L-3 * *",
    "0 0 * * mon#2",
    "0 0 * * 5L",
    "H H(1-5) * * *",
    "0 0 30 2 mon",
    "0 0 29 2 *",
    "0 0 30-2 2 *",
    "0 0 31 1,2 *",
    "  */5   *  * * *  ",
    "@hourly",
    "@Yearly",
    "CRON_TZ=Europe/Berlin 0 9 * * *",
    "TZ=UTC 0 9 * * *",
    "cron: 0 9 * * *",
    "crontab: 0 9 * * *",
    "every 30s",
    "every 5 minutes",
    "@every 1h30m",
    "every minute",
    "every minute 0s",
    "every PT5M",
    "every: 90 s",
    "PT5M",
    "P1DT12H",
    "P1M",
    "R/PT1H",
    "R5/2026-12-07/P1D",
    "R/2026-12-07T12:00:00Z/2026-12-07T13:00:00Z/PT1M",
    "2026-12-08T12:00:00",
    "2026-12-08 12:00:00+02:00",
    "2020-01-01",
    "2028-02-29",
    "2000-02-29",
    "Mon..Fri *-*-* 09:00",
    "Mon,Wed 09:00",
    "*-*~1",
    "Sat *-*-1..7 18:00:00 Europe/Berlin",
    "*-*-* *:0/10 utc",
    "99-1-1",
    "quarterly",
    "calendar: daily",
    "RRULE:FREQ=MONTHLY;BYDAY=-1FR",
    "FREQ=WEEKLY;INTERVAL=10",
    "rrule: FREQ=DAILY",
    "DTSTART:20261201T090000\nRRULE:FREQ=DAILY",
    "RDATE:20261209,20261210",
]

REFUSED_WINDOWS = {
    "": "'' is not a schedule and a duration, such as cron: 0 0 * * * PT5H",
    "cron: 0 0 * * *": "'cron: 0 0 * * *' is not a schedule and a duration, such as cron: 0 0 * * * PT5H",
    "P1D": "'P1D' is not a schedule and a duration, such as cron: 0 0 * * * PT5H",
    "weekend": "'weekend' is not a schedule and a duration, such as cron: 0 0 * * * PT5H",
    f"{NIGHT};": "'' is not a schedule and a duration, such as cron: 0 0 * * * PT5H",
    f"{NIGHT}; ;{NIGHT}": "'' is not a schedule and a duration, such as cron: 0 0 * * * PT5H",
    "0 0 * * * 5h": "a duration must be in ISO 8601: write PT5H instead of '5h'",
    "cron: 0 22 * * fri 58H": "a duration must be in ISO 8601: write PT58H instead of '58H'",
    "daily 2d": "a duration must be in ISO 8601: write P2D instead of '2d'",
    "5h": "'5h' is not a schedule and a duration, such as cron: 0 0 * * * PT5H",
    "it's over": '"it\'s over" is not a schedule and a duration, such as cron: 0 0 * * * PT5H',
    "0 25 * * * PT5H": "hour 25 is not in 0-23",
    f"{NIGHT};  0 25 * * *   PT5H": "hour 25 is not in 0-23",
    f"{NIGHT};\n\t0 25 * * * PT5H": "hour 25 is not in 0-23",
    f"window: nobody; {NIGHT}; 0 0 30 2 * P1D": "day 30 never occurs in month 2",
    "cron: 0 0 * * * PT0S": "an interval must be longer than 0",
    "cron: 0 0 * * * -PT5M": "an interval must be longer than 0",
    "cron: 0 0 * * * +PT5M": "'+PT5M' is not an ISO 8601 duration such as PT5M or P1DT12H",
    "cron: 0 0 * * * P1DT": "'P1DT' is not an ISO 8601 duration such as PT5M or P1DT12H",
    "Mon *-*-* 88:00 PT5H": "hour 88 is not in 0-23",
    "2027-02-29 P1D": "day 29 never occurs in month 2 of 2027",
    "every 5 parsecs PT1M": "'parsecs' is not a unit of time: use ms, s, m, h, d or w",
    "every 0s PT1M": "an interval must be longer than 0",
    "RRULE:FREQ=DAILY;INTERVAL=0 PT5H": "INTERVAL 0 is not in 1-1000000000",
    "FREQ=DAILY;BYHOUR=0 PT5H": "'FREQ=DAILY' is not a schedule and a duration, such as cron: 0 0 * * * PT5H",
    "night PT5H": "not a schedule: write cron (*/5 * * * *), an interval (every 30s), ISO 8601 (R/PT1H, 2026-12-09), "
    "a calendar event (Mon..Fri 09:00), RRULE:... or solar: ...",
    f"{'*' * 251} PT5H": "longer than 250 characters",
    f"RDATE:{','.join(['20261209'] * 450)} P1D": "longer than 4,000 characters",
    "window:": "there is no blackout window named ''",
    " WINDOW : ": "there is no blackout window named ''",
    "; ".join(f"{hour} 3 * * * PT1M" for hour in range(21)): "there are 21 windows, more than 20",
}
ACCEPTED_WINDOWS = [
    [],
    [NIGHT],
    ["cron: 0 0 * * sat P2D; cron: 0 0 * * * PT5H"],
    ["0 0 * * sat P2D;0 0 * * * PT5H"],
    ["  0 0 * * sat   P2D\n;\n  0 0 * * * pt5h\n"],
    ["window: weekend"],
    ["Window:weekend ; window : the night"],
    ["window: Müller", NIGHT],
    ["RRULE:FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0 PT5H", NIGHT],
    [" rrule:FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0 PT5H"],
    ["\nDTSTART:20261201T000000\nRRULE:FREQ=DAILY PT5H"],
    ["\u2003RRULE:FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0 PT5H"],
    ["0 0 * * *\u2003PT5H"],
    ["2026-12-05 P2D", "2026-12-08T12:00 P1D"],
    ["Sat *-*-* 00:00 P2D", "calendar: daily PT1H"],
    ["R/2026-11-07/P7D P2D", "P2D PT1H"],
    ["CRON_TZ=Europe/Berlin 0 0 * * sat P2D"],
    ["every 1h PT1M", "@hourly PT1M"],
    [*(f"{hour} 3 * * * PT1M" for hour in range(1, 19)), "0 3 * * * PT1M; 19 3 * * * PT1M; window: a", "window: b"],
]


@pytest.fixture
def session(shared_database: str) -> Iterator[Session]:
    """A session; the database is shared, because to copy one takes longer than most of these tests."""
    made = Session(shared_database)
    yield made
    made.rows("set session_replication_role = replica; delete from pgbeat.periodic_task; delete from pgbeat.blackout")
    made.connection.close()


def refusal_of(session: Session, **columns: Any) -> str:
    """Insert a row that must be refused with SQLSTATE 22023; return the message."""
    values = {"name": "wrong", "task": "app.probe", **columns}
    error = session.refusal(
        f"insert into pgbeat.periodic_task ({', '.join(values)}) values ({', '.join(['%s'] * len(values))})",
        *values.values(),
    )
    assert error.pgcode == "22023", error
    return reason(error)


def judged(
    session: Session, texts: list[str], function: str = "validate_schedule", collation: str = ""
) -> list[str | None]:
    """Return what SQL says of each text, None where it lets it pass."""
    session.rows(
        """create or replace function pg_temp.judge(given text) returns text language plpgsql as $$
        begin
            perform pgbeat.{function}(given);
            return null;
        exception when invalid_parameter_value then
            return sqlerrm;
        end $$""".replace("{function}", function)
    )
    rows = session.rows(f"select pg_temp.judge(given {collation}) as said from unnest(%s::text[]) as given", texts)
    return [row["said"] for row in rows]


def judged_windows(session: Session, lists: list[list[str]], field: str = "blackout") -> list[str | None]:
    """Return what SQL says of each list of windows, None where it lets it pass."""
    session.rows(
        """create or replace function pg_temp.judge_windows(field text, given jsonb) returns text language plpgsql as $$
        begin
            perform pgbeat.validate_windows(field, array(select jsonb_array_elements_text(given)));
            return null;
        exception when invalid_parameter_value then
            return sqlerrm;
        end $$"""
    )
    rows = session.rows(
        "select pg_temp.judge_windows(%s, given) as said from jsonb_array_elements(%s::jsonb) as given",
        field,
        json.dumps(lists),
    )
    return [row["said"] for row in rows]


def declared(**columns: Any) -> str | None:
    """Declare a row in Python; return why it is refused, None where it is not."""
    try:
        define("a", "app.probe", None, columns, Settings())
    except (InvalidPeriodicTask, InvalidSchedule) as error:
        return str(error)
    return None


def in_python(text: str) -> str | None:
    try:
        parse(text)
    except InvalidSchedule as error:
        return str(error)
    return None


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_a_schedule_that_can_never_work_is_refused_in_pythons_words(session: Session, text: str, why: str) -> None:
    message = refusal_of(session, schedule=text)

    assert message.endswith(f": {why}")
    assert in_python(text) == message


@pytest.mark.parametrize(("text", "zone"), FOREIGN_ZONES.items())
def test_a_schedule_in_a_zone_that_does_not_exist_is_refused(session: Session, text: str, zone: str) -> None:
    message = refusal_of(session, schedule=text)

    assert message == f"'{zone}': there is no time zone of that name"
    assert (in_python(text) or "").startswith(f"{message}; ")


def test_a_schedule_that_python_reads_is_stored(session: Session) -> None:
    assert [None] * len(ACCEPTED) == [in_python(text) for text in ACCEPTED]
    assert [None] * len(ACCEPTED) == judged(session, ACCEPTED)


@pytest.mark.parametrize("kind", KINDS.all, ids=lambda kind: kind.name)
def test_sql_knows_each_kind_of_schedule(session: Session, kind: Kind) -> None:
    bare = kind.example.removeprefix(f"{kind.name}: ")
    texts = [kind.example, *(f"{prefix}: {bare}" for prefix in kind.prefixes)]

    assert [None] * len(texts) == judged(session, texts), (
        f"SQL refuses {kind.name!r}, a kind that the registry in schedules/registry.py has: "
        f"add it to kind_of and to validate_schedule_in in definitions/internal/kinds.sql"
    )


def test_the_letters_of_a_turkish_database_are_those_of_any_other(session: Session) -> None:
    if not session.value("select count(*) from pg_collation where collname = 'tr-x-icu'"):
        pytest.skip("this Postgres was built without ICU")
    texts = [*ACCEPTED, "MINUTELY", "ISO: PT5M", "EVERY 5 MINUTES", "0 0 1 APR FRI#2", "FRI 09:00", "0 0 * * FRIL"]

    assert [None] * len(texts) == judged(session, texts, collation='collate "tr-x-icu"')


@pytest.mark.parametrize("text", ["solar: sunset 52.52 13.40", "*-02~30", "P1.5D", "\t*/0 * * * *"])
def test_what_sql_cannot_tell_for_sure_is_left_to_python(session: Session, text: str) -> None:
    session.insert("a", schedule=text)


def test_a_recurrence_set_may_be_longer_than_other_texts(session: Session) -> None:
    dates = ",".join(["20261209"] * 300)
    assert judged(session, [f"RDATE:{dates}"]) == [None]

    text = f"RDATE:{','.join(['20261209'] * 500)}"
    message = refusal_of(session, schedule=text)

    assert message.endswith("longer than 4,000 characters")
    assert in_python(text) == message


def test_a_recurrence_set_may_begin_with_blanks_and_still_be_longer_than_other_texts(session: Session) -> None:
    text = f"\n\tRDATE:{','.join(['20261209'] * 300)}"

    assert in_python(text) is None
    assert judged(session, [text]) == [None]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(wrong_texts.filter(lambda text: "\0" not in text), min_size=20, max_size=60))
def test_sql_refuses_nothing_that_python_reads(session: Session, texts: list[str]) -> None:
    texts = [text for text in texts if text.encode("utf-8", "replace").decode() == text]

    refused_by_sql_alone = [
        (text, said)
        for text, said in zip(texts, judged(session, texts), strict=True)
        if said is not None and in_python(text) is None
    ]

    assert refused_by_sql_alone == []


@pytest.mark.parametrize(("text", "why"), REFUSED_WINDOWS.items())
def test_a_window_that_can_never_work_is_refused_in_pythons_words(session: Session, text: str, why: str) -> None:
    message = refusal_of(session, blackout=[text])

    assert message.endswith(f": {why}")
    assert declared(blackout=[text]) == message


def test_windows_are_counted_over_all_texts_and_named_ones_are_not(session: Session) -> None:
    texts = ["; ".join(f"{minute} {hour} * * * PT1M; window: a" for minute in range(7)) for hour in range(3)]

    message = refusal_of(session, blackout=texts)

    assert message.endswith(": there are 21 windows, more than 20")
    assert declared(blackout=texts) == message


def test_a_window_in_a_zone_that_does_not_exist_is_refused(session: Session) -> None:
    message = refusal_of(session, blackout=["CRON_TZ=Mars/Olympus 0 0 * * * PT5H"])

    assert message == "'Mars/Olympus': there is no time zone of that name"
    assert (declared(blackout=["CRON_TZ=Mars/Olympus 0 0 * * * PT5H"]) or "").startswith(f"{message}; ")


def test_windows_that_python_reads_are_stored(session: Session) -> None:
    assert [None] * len(ACCEPTED_WINDOWS) == [declared(blackout=texts) for texts in ACCEPTED_WINDOWS]
    assert [None] * len(ACCEPTED_WINDOWS) == judged_windows(session, ACCEPTED_WINDOWS)
    session.insert("a", blackout=ACCEPTED_WINDOWS[4])

    assert ACCEPTED_WINDOWS[4] == session.task("a")["blackout"]


@pytest.mark.parametrize(
    "text",
    ["* * * * * PT1M", "cron: 0 0 * * *\té PT5H", "solar: x 1 2 PT1H", f"RRULE:FREQ=DAILY; {NIGHT}", "window: nobody"],
)
def test_what_sql_cannot_tell_of_a_window_is_left_to_python(session: Session, text: str) -> None:
    session.insert("a", blackout=[text])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{NULL}", "blackout[1] is NULL, not text"),
        ("{window: a,NULL}", "blackout[2] is NULL, not text"),
        ("{{window: a},{window: b}}", "blackout has 2 dimensions, not 1"),
    ],
)
def test_an_array_that_is_no_list_of_texts_is_refused(session: Session, given: str, message: str) -> None:
    assert message == refusal_of(session, blackout=given)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(lists_of_windows(), min_size=20, max_size=60))
def test_sql_refuses_no_window_that_python_reads(session: Session, lists: list[list[str]]) -> None:
    lists = [texts for texts in lists if storable("".join(texts))]

    refused_by_sql_alone = [
        (texts, said)
        for texts, said in zip(lists, judged_windows(session, lists), strict=True)
        if said is not None and declared(blackout=texts) is None
    ]

    assert refused_by_sql_alone == []


def storable(text: str) -> bool:
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text


def refusal_of_named(session: Session, name: str, windows: list[str] | None, zone: str | None = None) -> str:
    """Judge a named window that must be refused with SQLSTATE 22023; return the message."""
    error = session.refusal(
        "select pgbeat.validate_blackout(row(%s, %s::text[], %s)::pgbeat.blackout)", name, windows, zone
    )
    assert error.pgcode == "22023", error
    return reason(error)


@pytest.mark.parametrize("text", [text for text in REFUSED_WINDOWS if "nobody" not in text])
def test_a_named_window_is_judged_by_the_same_rules(session: Session, text: str) -> None:
    assert refusal_of_named(session, "night", [text]).endswith(f": {REFUSED_WINDOWS[text]}")


@pytest.mark.parametrize("text", ["window: weekend", f"{NIGHT}; Window : weekend", "window:Müller"])
def test_a_named_window_does_not_refer_to_another(session: Session, text: str) -> None:
    message = refusal_of_named(session, "night", [text])

    assert message == f"'{text}': a named window holds windows, not the names of others"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("", [NIGHT], None), "name has 0 characters, not 1 to 200"),
        (("n" * 201, [NIGHT], None), "name has 201 characters, not 1 to 200"),
        (("night", None, None), "windows is null, not an array of text"),
        (("night", [NIGHT, None], None), "windows[2] is NULL, not text"),
        (("night", [NIGHT], "Mars/Olympus"), "'Mars/Olympus': there is no time zone of that name"),
    ],
)
def test_a_wrong_column_of_a_named_window_is_refused(session: Session, columns: Any, message: str) -> None:
    assert message == refusal_of_named(session, *columns)


def test_a_named_window_that_python_reads_is_stored(session: Session) -> None:
    own = [texts for texts in ACCEPTED_WINDOWS if "window" not in "".join(texts).lower()]

    assert len(own) > 10
    assert [None] * len(own) == judged_windows(session, own, "windows")
    session.rows("insert into pgbeat.blackout (name, windows) values (%s, %s), ('never', '{}')", "n" * 200, [NIGHT])


@pytest.mark.parametrize(
    "zone",
    [
        "+02:00",
        "CEST",
        "UTC+3",
        "posix/Europe/Berlin",
        "Mars/Olympus",
        "Europe/Berlin2",
        "",
        "<+03>-3",
        "America/Argentina",
    ],
)
def test_what_is_no_iana_zone_is_refused(session: Session, zone: str) -> None:
    message = refusal_of(session, schedule="@daily", timezone=zone)

    assert message == f"'{zone}': there is no time zone of that name"
    with pytest.raises(InvalidSchedule) as refused:
        parse("@daily", zone)
    assert str(refused.value).startswith(f"{message}; ")


def test_no_zone_that_python_and_postgres_know_is_refused(session: Session) -> None:
    known = {row["name"] for row in session.rows("select name from pg_timezone_names")} & available_timezones()
    zones = [*sorted(known - {"localtime"}), "utc", "Etc/GMT-14", "EST5EDT", "America/Argentina/Buenos_Aires"]

    said = judged(session, zones, "validate_timezone")

    assert len(zones) > 300
    assert [None] * len(zones) == said


def test_a_wrong_value_is_refused_on_update_too_and_the_row_stays_as_it_was(session: Session) -> None:
    before = session.insert("a", schedule="@daily")

    error = session.refusal("update pgbeat.periodic_task set schedule = '0 25 * * *', task = 'app.other'")

    assert (error.pgcode, reason(error)) == ("22023", "'0 25 * * *': hour 25 is not in 0-23")
    assert before == session.task("a")


def test_the_good_rows_of_a_script_stand_beside_the_one_that_is_refused(session: Session) -> None:
    for number in range(10):
        session.insert(f"good-{number}", schedule="@hourly")
    refusal_of(session, schedule="Mon *-*-* 88:00")
    refusal_of(session, args='{"no": "list"}')
    session.insert("unknown task", task="app.nobody_knows", schedule="@hourly")

    assert session.value("select count(*) from pgbeat.periodic_task") == 11


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"args": '{"a": 1}'}, 'args is {"a": 1}, not a JSON array'),
        ({"args": "null"}, "args is null, not a JSON array"),
        ({"args": None}, "args is null, not a JSON array"),
        ({"kwargs": "[1]"}, "kwargs is [1], not a JSON object"),
        ({"kwargs": '"text"'}, 'kwargs is "text", not a JSON object'),
        ({"options": "[]"}, "options is [], not a JSON object"),
        ({"name": ""}, "name has 0 characters, not 1 to 200"),
        ({"name": "n" * 201}, "name has 201 characters, not 1 to 200"),
        ({"name": None}, "name is null, not 1 to 200 characters"),
        ({"task": ""}, "task is empty"),
        ({"task": None}, "task is null"),
        ({"enabled": None}, "enabled is null, not true or false"),
        ({"managed_by": None}, "managed_by is null, not a text"),
        ({"managed_by": "x" * 1001}, "managed_by has 1001 characters, more than 1000"),
        ({"pause_reason": "x" * 1001}, "pause_reason has 1001 characters, more than 1000"),
        ({"paused_by": "x" * 1001}, "paused_by has 1001 characters, more than 1000"),
        ({"start_at": "infinity"}, "start_at is infinity, outside the years 1 to 9999"),
        ({"end_at": "-infinity"}, "end_at is -infinity, outside the years 1 to 9999"),
        ({"anchor": "10000-01-01 00:00+00"}, "anchor is 10000-01-01T00:00:00+00:00, outside the years 1 to 9999"),
        ({"paused_until": "infinity"}, "paused_until is infinity, outside the years 1 to 9999"),
        ({"next_run_at": "infinity"}, "next_run_at is infinity, outside the years 1 to 9999"),
        ({"priority": 256}, "priority 256 is not in 0-255"),
        ({"priority": -1}, "priority -1 is not in 0-255"),
        (
            {"overlap": None},
            "overlap is null, not one of skip, buffer_one, buffer_all, cancel_other, terminate_other, allow",
        ),
    ],
)
def test_a_column_of_the_wrong_shape_is_refused_by_its_name(
    session: Session, columns: dict[str, Any], message: str
) -> None:
    assert message == refusal_of(session, **columns)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("dst", "ignore"),
        ("dst", ""),
        ("overlap", "it's"),
        ("catchup", "some"),
        ("blackout_action", "wait"),
        ("on_lost", "cry"),
        ("tracking", "none"),
        ("max_runs", 0),
        ("catchup_limit", 0),
        ("catchup_limit", -5),
        ("pause_after_failures", 0),
        ("pause_after_failures", -1),
        ("priority", 256),
    ],
)
def test_a_value_that_a_column_does_not_know_is_refused_in_pythons_words(
    session: Session, column: str, value: Any
) -> None:
    message = refusal_of(session, **{column: value})

    assert message.startswith(f"{column} ")
    assert declared(**{column: value}) == message


@pytest.mark.parametrize("column", ["dst", "overlap", "catchup", "blackout_action", "on_lost", "tracking"])
def test_sql_and_python_know_the_same_values_and_the_table_takes_them(session: Session, column: str) -> None:
    known = refusal_of(session, **{column: "?"}).rpartition("not one of ")[2].split(", ")

    for value in known:
        session.insert(value, **{column: value})
    assert [None] * len(known) == [declared(**{column: value}) for value in known]


@pytest.mark.parametrize(
    ("column", "duration", "why"),
    [
        ("jitter", timedelta(microseconds=-1), "it must be at least 0"),
        ("jitter", timedelta(days=366, microseconds=1), "it must be at most 366 days"),
        ("catchup_window", timedelta(days=-3), "it must be at least 0"),
        ("catchup_window", timedelta(days=36_001), "it must be at most 36000 days"),
        ("max_run_time", timedelta(0), "it must be more than 0"),
        ("max_run_time", timedelta(seconds=-1), "it must be more than 0"),
        ("max_run_time", timedelta(days=367), "it must be at most 366 days"),
    ],
)
def test_a_duration_out_of_range_is_refused_in_pythons_words(
    session: Session, column: str, duration: timedelta, why: str
) -> None:
    message = refusal_of(session, **{column: duration})

    assert message == f"{column} is {session.value('select %s::text', duration)}; {why}"
    assert declared(**{column: duration}) == f"{column} is {duration!r}; {why}"


@pytest.mark.parametrize(
    ("column", "duration"),
    [
        ("jitter", timedelta(0)),
        ("jitter", timedelta(days=366)),
        ("catchup_window", timedelta(0)),
        ("catchup_window", timedelta(days=36_000)),
        ("max_run_time", timedelta(microseconds=1)),
        ("max_run_time", timedelta(days=366)),
    ],
)
def test_a_duration_at_the_end_of_its_range_is_stored(session: Session, column: str, duration: timedelta) -> None:
    assert declared(**{column: duration}) is None
    assert duration == session.insert("a", **{column: duration})[column]


def test_a_year_as_postgres_has_it_is_a_duration(session: Session) -> None:
    session.insert("a", jitter="1 year", max_run_time="12 mons", catchup_window="100 years")


def test_an_end_before_the_start_is_refused_in_pythons_words(session: Session) -> None:
    session.rows("set timezone = 'UTC'")
    start, end = datetime(2026, 12, 8, tzinfo=timezone.utc), datetime(2026, 12, 7, 12, 30, tzinfo=timezone.utc)

    message = refusal_of(session, start_at=start, end_at=end)

    assert message == "end_at 2026-12-07T12:30:00+00:00 is before start_at 2026-12-08T00:00:00+00:00"
    assert declared(start_at=start, end_at=end) == message
    session.insert("a", start_at=start, end_at=start)


def test_arguments_are_counted_as_text_and_refused_above_64_kb(session: Session) -> None:
    most = 65536 - len("{}")
    session.insert("strings", args=json.dumps(["x" * (most - len('[""]'))]))
    session.insert("numbers", args=json.dumps([1] * (most // 3)))

    message = refusal_of(session, args=json.dumps(["x" * (most - len('[""]') + 1)]))

    assert message == (
        "args and kwargs have 65537 bytes together, more than 65536: store the data elsewhere and pass its key"
    )


OPTIONS = {
    "MessageGroupId": "tenant-1", "argsrepr": "(***)", "compression": "gzip", "confirm_timeout": 1.5, "countdown": 10,
    "delivery_mode": 1, "eta": "2030-01-01T00:00:00+00:00", "exchange": "events", "exchange_type": "topic",
    "expires": 60, "headers": {"tenant": 1}, "ignore_result": True, "kwargsrepr": "{***}", "reply_to": "answers",
    "retry": False, "retry_policy": {"max_retries": 1}, "routing_key": "a.b", "serializer": "json", "shadow": "shown",
    "soft_time_limit": 30, "time_limit": 60, "timeout": 5,
}  # fmt: skip


def test_every_known_option_is_stored(session: Session) -> None:
    session.insert("a", options=json.dumps(OPTIONS))

    assert sorted(OPTIONS) == sorted(session.value("select pgbeat.known_options()"))
    assert OPTIONS == session.task("a")["options"]


def test_an_option_may_be_null_which_is_what_the_app_says(session: Session) -> None:
    session.insert("a", options=json.dumps(dict.fromkeys(OPTIONS)))

    assert dict.fromkeys(OPTIONS) == session.task("a")["options"]


@pytest.mark.parametrize("option", sorted(OPTIONS))
@pytest.mark.parametrize("value", [-1, 3, 1.5, "text", True, [1], {"a": 1}])
def test_sql_refuses_no_value_of_an_option_that_python_takes(session: Session, option: str, value: Any) -> None:
    try:
        read_options("options", {option: value})
    except InvalidPeriodicTask as error:
        message = str(error)
    else:
        session.insert("a", options=json.dumps({option: value}))
        return

    refused = refusal_of(session, options=json.dumps({option: value}))

    assert message.rpartition(", not ")[2] == refused.rpartition(", not ")[2]
    assert refused.startswith(f"options['{option}'] is ")


def test_a_header_that_is_ours_is_refused(session: Session) -> None:
    message = refusal_of(session, options='{"headers": {"pgbeat": 1}}')

    assert message == "options['headers'] has a header 'pgbeat', which is ours: use another name"


@pytest.mark.parametrize(
    "option",
    ["task_id", "producer", "connection", "publisher", "link", "link_error", "chain", "chord", "group_id", "root_id",
     "parent_id", "add_to_parent", "expire"],
)  # fmt: skip
def test_an_option_that_is_unknown_or_not_a_rows_to_set_is_refused(session: Session, option: str) -> None:
    message = refusal_of(session, options=json.dumps({"expires": 60, option: 1}))

    assert message == f"options has '{option}', which a periodic task cannot set"


@pytest.mark.parametrize("option", ["queue", "priority"])
def test_an_option_that_is_a_column_is_refused_with_a_hint(session: Session, option: str) -> None:
    error = session.refusal(
        "insert into pgbeat.periodic_task (name, task, options) values ('a', 'app.probe', %s)", json.dumps({option: 1})
    )

    assert reason(error) == f"options has '{option}', which is a column"
    assert error.diag.message_hint == f"Set the column {option} instead."


def test_only_json_is_a_serializer(session: Session) -> None:
    message = refusal_of(session, options='{"serializer": "pickle"}')

    assert message == "options['serializer'] is 'pickle', not 'json', the only one allowed"


def test_a_session_with_its_own_settings_gets_the_same_errors(session: Session) -> None:
    session.rows("set standard_conforming_strings = off")
    session.rows("set search_path = ''")

    assert refusal_of(session, schedule="it's 5 * * *") == (
        '"it\'s 5 * * *": minute "it\'s" is not a number, a range, a list or a step'
    )
    assert refusal_of(session, schedule="2027-02-29").endswith("day 29 never occurs in month 2 of 2027")
    session.insert("a", schedule="Mon..Fri 09:00", timezone="Europe/Berlin", options='{"expires": 60}')


@pytest.mark.parametrize("option", ["eta", "expires"])
@pytest.mark.parametrize("text", ["tomorrow", "12:00", "2026-12-07T09", "1765098000", "2026-12-07T09:00:00+1"])
def test_an_instant_among_the_options_is_refused_in_the_words_of_python(
    session: Session, option: str, text: str
) -> None:
    with pytest.raises(InvalidPeriodicTask) as refused:
        read_options("options", {option: text})

    error = session.refusal(
        "insert into pgbeat.periodic_task (name, task, schedule, options) values ('a', 't', '@daily', %s)",
        json.dumps({option: text}),
    )
    assert ("22023", str(refused.value)) == (error.pgcode, error.diag.message_primary)


@pytest.mark.parametrize(
    "text", ["2026-12-07", "2026-12-07T09:00", "2026-12-07 09:00:00.123456+01:00", "2026-12-07T09:00:00Z"]
)
def test_an_instant_among_the_options_is_taken(session: Session, text: str) -> None:
    options = {"eta": text, "expires": text}
    assert options == read_options("options", options)

    session.insert("a", options=json.dumps(options))

    assert options == session.value("select options from pgbeat.periodic_task")
