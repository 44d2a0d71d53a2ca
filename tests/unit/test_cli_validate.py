"""`celery-pgbeat validate`: what the text of a schedule means."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from celery import Celery
from celery.bin.base import CLIContext
from click.testing import CliRunner, Result

from celery_pgbeat.cli import main, pgbeat
from celery_pgbeat.schedules import parse

SPRING = ("--timezone", "Europe/Berlin", "--after", "2027-03-27", "--count", "3")


def validate(*arguments: str) -> Result:
    """Run the command without app and database."""
    return CliRunner().invoke(main, ["validate", *arguments])


def test_a_schedule_is_shown_with_its_meaning_and_its_next_occurrences() -> None:
    result = validate("30 2 * * *", *SPRING)

    assert (0, "") == (result.exit_code, result.stderr)
    assert (
        "kind         cron\n"
        "text         30 2 * * *\n"
        "description  at 02:30 (Europe/Berlin)\n"
        "timezone     Europe/Berlin\n"
        "\n"
        "Europe/Berlin                  UTC                   NOTE\n"
        "Sat 2027-03-27 02:30:00+01:00  2027-03-27 01:30:00Z  -\n"
        "Sun 2027-03-28 03:00:00+02:00  2027-03-28 01:00:00Z  the clocks go forward from 02:00 to 03:00: "
        "02:30 does not exist, so it runs right after\n"
        "Mon 2027-03-29 02:30:00+02:00  2027-03-29 00:30:00Z  -\n"
        "\n"
        "Croniter would run at other instants, first Sun 2027-10-31 02:30:00+01:00 instead of "
        "Mon 2027-11-01 02:30:00+01:00: docs/schedule-reference.md has the reasons.\n"
    ) == result.stdout


def test_neither_celery_nor_a_driver_is_loaded_for_it() -> None:
    code = (
        "import sys\n"
        "from celery_pgbeat.cli import main\n"
        "main(['validate', '@daily'], standalone_mode=False)\n"
        "print([name for name in ('celery', 'kombu', 'sqlalchemy', 'psycopg2') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert "[]" == done.stdout.splitlines()[-1]


def test_a_schedule_is_shown_as_json() -> None:
    shown = json.loads(validate("02:30", *SPRING, "--json").stdout)

    assert {
        "kind": "calendar",
        "text": "*-*-* 02:30:00",
        "description": "at 02:30 (Europe/Berlin)",
        "timezone": "Europe/Berlin",
        "dst": "default",
        "anchor": None,
        "occurrences": [{"utc": "2027-03-29T00:30:00+00:00", "local": "2027-03-29T02:30:00+02:00", "note": None}],
        "skipped": [],
        "finished": False,
        "croniter": None,
    } == {**shown, "occurrences": shown["occurrences"][1:2], "skipped": []}
    assert 1 == len(shown["skipped"])


def test_a_night_without_a_run_is_named_below_the_table() -> None:
    last = validate("02:30", *SPRING).stdout.splitlines()[-1]

    assert (
        "On Sun 2027-03-28 the clocks go forward from 02:00 to 03:00: 02:30 does not exist, so nothing runs for it."
        == last
    )


def test_the_options_of_a_row_count_when_its_schedule_is_shown() -> None:
    hashed = json.loads(validate("H H * * *", "--name", "nightly", "--json").stdout)
    skipped = validate("30 2 * * *", *SPRING, "--dst", "skip").stdout

    assert parse("H H * * *", name="nightly").text == hashed["text"]
    assert "so nothing runs for it" in skipped


def test_what_croniter_makes_of_a_cron_text_is_shown() -> None:
    agreeing = json.loads(validate("0 9 * * 1-5", "--json").stdout)["croniter"]
    other = json.loads(validate("0 0 1 6-6 *", "--after", "2026-12-01", "--json").stdout)["croniter"]
    unreadable = validate("0 0 LW * *").stdout.splitlines()[-1]

    assert {"agrees": True} == agreeing
    assert {
        "agrees": False,
        "error": None,
        "here": {"utc": "2027-06-01T00:00:00+00:00", "local": "2027-06-01T00:00:00+00:00"},
        "there": {"utc": "2027-01-01T00:00:00+00:00", "local": "2027-01-01T00:00:00+00:00"},
    } == other
    assert "Croniter cannot read this text: [0 0 lw * *] is not acceptable." == unreadable


@pytest.mark.parametrize(
    ("after", "begins"), [((), "now"), (("--after", "2027-03-27T12:00+01:00"), "at 2027-03-27 11:00:00Z")]
)
def test_an_interval_says_where_its_grid_begins(after: tuple[str, ...], begins: str) -> None:
    result = validate("every 5m", *after)

    assert f"grid         begins {begins}; for a row: at its anchor, " in result.stdout


def test_a_grid_begins_at_a_whole_second() -> None:
    shown = json.loads(validate("every 5m", "--json").stdout)
    first, second = (datetime.fromisoformat(shown["occurrences"][n]["utc"]) for n in (0, 1))

    assert first - timedelta(minutes=5) == datetime.fromisoformat(shown["anchor"])
    assert (timedelta(minutes=5), 0) == (second - first, first.microsecond)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2020-01-01", "Finished: it never occurs again; the last time was Wed 2020-01-01 00:00:00Z."),
        ("R5/2027-03-25/P1D", "Then it is finished: it never occurs again."),
        ("CRON_TZ=UTC 0 0 0 1 1 * 2199", "Then it is finished: it never occurs again."),
    ],
)
def test_a_schedule_that_ends_says_so(text: str, end: str) -> None:
    result = validate(text, "--after", "2027-03-27" if "R5" in text else "2120-01-01")

    assert (0, end) == (result.exit_code, result.stdout.splitlines()[-1])


def test_a_moment_that_never_comes_says_so() -> None:
    result = validate("2027-03-28 02:30", *SPRING, "--dst", "skip")

    assert (0, "It never occurs.") == (result.exit_code, result.stdout.splitlines()[-1])


def test_a_recurrence_set_is_shown_on_one_line_that_can_be_used_again() -> None:
    shown = validate("DTSTART:20261207T090000\nRRULE:FREQ=DAILY").stdout.splitlines()[1]

    assert "text         DTSTART:20261207T090000 RRULE:FREQ=DAILY" == shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["0 25 * * *"], "Error: '0 25 * * *': hour 25 is not in 0-23\n  0 25 * * *\n    ^\n"),
        (
            ["DTSTART:20261207T090000\nRRULE:FREQ=DAILY;BYHOUR=99"],
            "Error: 'DTSTART:20261207T090000\\nRRULE:FREQ=DAILY;BYHOUR=99': BYHOUR 99 is not in 0-23\n"
            "  RRULE:FREQ=DAILY;BYHOUR=99\n"
            "                   ^\n",
        ),
        (
            ["@daily", "--timezone", "Mars/Base"],
            "Error: 'Mars/Base': there is no time zone of that name; write an IANA name such as Europe/Berlin, not an "
            "offset or an abbreviation\n  Mars/Base\n  ^\n",
        ),
        (["0 0 *\t*"], "Error: '0 0 *\\t*': cron has 5, 6 or 7 fields, not 4\n  0 0 *\\t*\n  ^\n"),
    ],
)
def test_what_is_refused_is_pointed_at(arguments: list[str], said: str) -> None:
    result = validate(*arguments)

    assert (1, "", said) == (result.exit_code, result.stdout, result.stderr)


def test_only_the_surroundings_of_a_fault_in_a_long_text_are_shown() -> None:
    rule = "RRULE:FREQ=DAILY;BYMINUTE=" + ",".join(map(str, range(60)))

    *_, shown, caret = validate(f"{rule};BYHOUR=99;BYSECOND={','.join(map(str, range(60)))}").stderr.splitlines()

    assert ("  …", "…") == (shown[:3], shown[-1])
    assert len(shown) < 90
    assert "BYHOUR=99" == shown[caret.index("^") :][:9]


def test_blackout_windows_are_shown_with_their_openings_and_closings() -> None:
    arguments = ("--window", "cron: 0 0 * * sat P2D", *SPRING[:-1], "1")

    assert (
        "kind         blackout windows\n"
        "text         cron: 0 0 * * 6 P2D\n"
        "description  at 00:00 on Saturday (Europe/Berlin) for 2 days\n"
        "timezone     Europe/Berlin\n"
        "\n"
        "OPENS, Europe/Berlin           CLOSES, Europe/Berlin          OPENS, UTC            CLOSES, UTC\n"
        "Sat 2027-03-27 00:00:00+01:00  Mon 2027-03-29 00:00:00+02:00  2027-03-26 23:00:00Z  2027-03-28 22:00:00Z\n"
    ) == validate(*arguments).stdout
    (shown,) = json.loads(validate(*arguments, "--json").stdout)["occurrences"]
    assert {"utc": "2027-03-28T22:00:00+00:00", "local": "2027-03-29T00:00:00+02:00"} == shown["closes"]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2027-03-27 P1D", "Then they are finished: they never open again."),
        ("2020-03-27 P1D", "Finished: they never open again."),
    ],
)
def test_windows_that_never_open_again_say_so(text: str, end: str) -> None:
    assert end == validate("--window", text, *SPRING).stdout.splitlines()[-1]


def test_a_window_without_its_option_gets_a_suggestion() -> None:
    result = validate("0 0 * * sat P2D")

    assert 1 == result.exit_code
    assert "It is a valid blackout window: add --window." == result.stderr.splitlines()[-1]


def test_a_duration_of_a_window_that_is_written_as_an_interval_gets_a_suggestion() -> None:
    as_schedule, as_window = validate("0 22 * * fri 58h"), validate("0 22 * * fri 58h", "--window")

    advice = "a duration must be in ISO 8601: write PT58H instead of '58h'"
    assert f"If it is a blackout window: {advice}, and add --window." == as_schedule.stderr.splitlines()[-1]
    assert f"Error: '0 22 * * fri 58h': {advice}" == as_window.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["300"], "did you mean 'every 300s'?"),
        (["@daily", "--timezone", "Berlin"], "did you mean 'Europe/Berlin'?"),
        (["@daily", "--timezone", "+02:00"], "'Etc/GMT-2', which is always +02:00"),
    ],
)
def test_an_invalid_text_gets_a_suggestion(arguments: list[str], said: str) -> None:
    result = validate(*arguments)

    assert (1, True) == (result.exit_code, said in result.stderr)


def test_under_celery_a_schedule_is_shown_in_the_zone_of_the_app() -> None:
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.timezone = "Asia/Tokyo"

    result = CliRunner().invoke(
        pgbeat, ["validate", "@daily", "--json"], obj=CLIContext(app, no_color=True, workdir=None)
    )

    assert "Asia/Tokyo" == json.loads(result.stdout)["timezone"]


def test_the_page_about_schedules_shows_what_is_printed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text(encoding="utf-8")
    shown = validate("30 2 * * *", "--timezone", "Europe/Berlin", "--after", "2027-03-26", "--count", "4")

    assert f"```\n{shown.stdout}```" in page
    assert f"```\n{validate('0 25 * * *').stderr}```" in page
