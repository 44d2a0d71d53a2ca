"""The grammar of the command line, without a database: options, instants, patterns, groups of commands."""

from __future__ import annotations

import sys
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import click
import pytest
from celery import Celery
from celery.bin.base import CLIContext
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from celery_pgbeat import __version__
from celery_pgbeat.api import PgBeat
from celery_pgbeat.cli import COMMANDS, SECTIONS, main, pgbeat
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.texts.name_patterns import like
from celery_pgbeat.texts.typed_instants import parse_instant

NOON = datetime(2026, 12, 24, 12, tzinfo=timezone.utc)
OUT_OF_REACH = "postgresql://shop:hush@127.0.0.1:1/shop"


@pytest.fixture(autouse=True)
def _no_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGBEAT_URL", raising=False)


def run(*words: str, **given: Any) -> Result:
    return CliRunner().invoke(main, list(words), **given)


def celery_run(app: Celery, *words: str) -> Result:
    return CliRunner().invoke(pgbeat, list(words), obj=CLIContext(app, no_color=True, workdir=None))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with an app, in Tokyo."""
    name = f"shop_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(
        "from celery import Celery\napp = Celery('shop', broker='memory://', set_as_current=False)\n"
        f"app.conf.update(pgbeat_url={OUT_OF_REACH!r}, timezone='Asia/Tokyo')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


# --- the options of the target


@pytest.mark.parametrize(
    "words",
    [
        ("--url", OUT_OF_REACH, "list"),
        ("list", "--url", OUT_OF_REACH),
        ("list", f"--url={OUT_OF_REACH}", "--json"),
        ("group", "--url", OUT_OF_REACH, "list"),
        ("group", "list", "--url", OUT_OF_REACH),
        ("backfill", "--url", OUT_OF_REACH, "nightly", "2026-05-01", "2026-05-02"),
        ("backfill", "nightly", "2026-05-01", "2026-05-02", "--url", OUT_OF_REACH),
        ("--url", "postgresql://other.invalid/x", "list", "--url", OUT_OF_REACH),
    ],
)
def test_the_url_may_stand_before_or_after_the_command_and_the_last_one_counts(words: tuple[str, ...]) -> None:
    result = run(*words)

    assert 3 == result.exit_code
    assert "127.0.0.1" in result.stderr


@pytest.mark.parametrize("words", [("--schema", "other", "sql"), ("sql", "--schema", "other")])
def test_the_schema_may_stand_before_or_after_the_command(words: tuple[str, ...]) -> None:
    assert "where nspname = 'other'" in run(*words).stdout


def test_the_app_may_stand_before_or_after_the_command(shop: str) -> None:
    for words in (("-A", shop, "list"), ("list", "-A", shop), ("list", f"--app={shop}")):
        result = run(*words)
        assert (3, True) == (result.exit_code, "127.0.0.1" in result.stderr), result.output


def test_under_celery_the_app_and_the_url_may_stand_after_the_command(shop: str) -> None:
    app = Celery("none", broker="memory://", set_as_current=False)

    for words in (("-A", shop, "list"), ("list", "-A", shop), ("list", "--url", OUT_OF_REACH)):
        result = celery_run(app, *words)
        assert (3, True) == (result.exit_code, "127.0.0.1" in result.stderr), result.output


def test_the_demo_takes_no_schema_wherever_it_stands() -> None:
    for words in (("--schema", "x", "demo"), ("demo", "--schema", "x")):
        result = run(*words)
        assert (2, True) == (result.exit_code, "leave --schema out" in result.stderr)


@pytest.mark.parametrize("words", [(), ("list",), ("group",), ("group", "limit"), ("backfill",), ("backfill", "list")])
def test_h_is_help_everywhere(words: tuple[str, ...]) -> None:
    short, long = run(*words, "-h"), run(*words, "--help")

    assert (0, long.output) == (short.exit_code, short.output)


def test_celery_pgbeat_has_a_version_too() -> None:
    result = celery_run(Celery("shop", set_as_current=False), "--version")

    assert (0, f"celery-pgbeat, version {__version__}\n") == (result.exit_code, result.output)


# --- hints are as they have to be typed


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        ((), "celery-pgbeat migrate"),
        (("--schema", "other"), "celery-pgbeat --schema other migrate"),
        (("--url", "postgresql://me:hush@db/x"), "celery-pgbeat --url postgresql://me:***@db/x migrate"),
        (("-A", "shop.app"), "celery-pgbeat -A shop.app migrate"),
    ],
)
def test_a_hint_has_the_options_that_were_given_but_no_password(words: tuple[str, ...], typed: str) -> None:
    @click.command()
    def hint() -> None:
        click.echo(Target.current().as_typed("run `celery-pgbeat migrate`"))

    parameters = [*main.params]
    result = CliRunner().invoke(click.Command("hint", callback=hint.callback, params=parameters), list(words))

    assert f"run `{typed}`\n" == result.output.replace("'", "")


def test_under_celery_a_hint_is_a_celery_command() -> None:
    @click.command(params=list(pgbeat.params))
    @click.pass_context
    def hint(ctx: click.Context) -> None:
        Target.of(ctx).celery_app = Celery("shop", set_as_current=False)
        click.echo(Target.current().as_typed("run `celery-pgbeat migrate`"))

    root = click.Group("celery", params=[click.Option(["-A", "--app"])], commands={"pgbeat": hint})
    result = CliRunner().invoke(root, ["-A", "shop", "pgbeat", "--schema", "other"])

    assert "run `celery -A shop pgbeat --schema other migrate`\n" == result.output


# --- instants


@pytest.mark.parametrize(
    ("text", "past", "ahead"),
    [
        ("now", timedelta(0), timedelta(0)),
        ("2d", -timedelta(days=2), timedelta(days=2)),
        ("1h", -timedelta(hours=1), timedelta(hours=1)),
        ("90m", -timedelta(minutes=90), timedelta(minutes=90)),
        ("1h30m", -timedelta(minutes=90), timedelta(minutes=90)),
        ("5 minutes", -timedelta(minutes=5), timedelta(minutes=5)),
        ("in 2d", timedelta(days=2), timedelta(days=2)),
        ("1h ago", -timedelta(hours=1), -timedelta(hours=1)),
        ("  2 days AGO ", -timedelta(days=2), -timedelta(days=2)),
    ],
)
def test_a_duration_is_counted_from_now(text: str, past: timedelta, ahead: timedelta) -> None:
    assert NOON + past == parse_instant(text, NOON, NOON.date)
    assert NOON + ahead == parse_instant(text, NOON, NOON.date, ahead=True)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-12-24", datetime(2026, 12, 24)),
        ("2026-12-24T18:00", datetime(2026, 12, 24, 18)),
        ("2026-12-24 18:00:05", datetime(2026, 12, 24, 18, 0, 5)),
        ("2026-12-24T18:00:00Z", datetime(2026, 12, 24, 18, tzinfo=timezone.utc)),
        ("yesterday", datetime(2026, 12, 24)),
        ("Today", datetime(2026, 12, 25)),
        ("tomorrow", datetime(2026, 12, 26)),
    ],
)
def test_dates_and_days_have_no_zone_of_their_own(text: str, read: datetime) -> None:
    found = parse_instant(text, NOON, lambda: date(2026, 12, 25))  # it is a day later where the caller is

    assert (read, read.tzinfo) == (found, found.tzinfo)


@pytest.mark.parametrize("text", ["soon", "", "2", "in", "ago", "in -2d", "-2d", "2 moons", "2026-13-01", "in 2d ago"])
def test_an_invalid_instant_is_refused_with_the_valid_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an instant: write ISO 8601 .*, now, today, yesterday, tomorrow, "):
        parse_instant(text, NOON, NOON.date)


def test_a_duration_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(ValueError, match="is not an instant"):
        parse_instant("36500d", datetime(1, 1, 2, tzinfo=timezone.utc), NOON.date)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("pause", "x", "--until", "soon"), "--until"),
        (("jobs", "--since", "soon"), "--since"),
        (("jobs", "--until", "soon"), "--until"),
        (("upcoming", "--after", "soon"), "--after"),
        (("validate", "@daily", "--after", "soon"), "--after"),
        (("add", "x", "--task", "y", "--start-at", "soon"), "--start-at"),
        (("backfill", "x", "soon", "now"), "SINCE"),
    ],
)
def test_each_command_that_asks_for_an_instant_lists_the_forms(words: tuple[str, ...], option: str) -> None:
    result = run(*words)

    assert 2 == result.exit_code
    assert f"{option}" in result.stderr
    assert "'soon' is not an instant: write ISO 8601" in result.stderr


def test_a_bare_duration_ends_a_pause_in_the_future(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[datetime] = []

    def pause(_self: PgBeat, _name: str, _reason: str | None, until: datetime) -> Any:
        asked.append(until)
        raise ZeroDivisionError

    monkeypatch.setattr(PgBeat, "pause", pause)
    run("pause", "x", "--until", "2d")

    assert timedelta(days=2) == pytest.approx(asked[0] - datetime.now(timezone.utc), abs=timedelta(minutes=1))


def test_today_is_the_day_where_the_app_is(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from celery_pgbeat.cli.options import instants

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(2026, 12, 24, 20, tzinfo=timezone.utc).astimezone(tz)  # the 25th in Tokyo

    monkeypatch.setattr(instants, "datetime", Clock)
    for words in (("-A", shop, "validate", "@hourly"), ("validate", "@hourly", "--after", "today", "-A", shop)):
        result = run(*words, *(() if "--after" in words else ("--after", "today")), "--count", "1")
        assert "Fri 2026-12-25 01:00:00+09:00" in result.stdout, result.output


# --- patterns and numbers of names


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("*", "%"),
        ("a?c", "a_c"),
        ("50%_*", r"50\%\_%"),
        (r"what\?*", "what?%"),
        (r"a\\*", r"a\\%"),
        (r"c:\x*", r"c:\\x%"),
    ],
)
def test_a_pattern_becomes_one_of_like(pattern: str, shown: str) -> None:
    assert shown == like(pattern)


@pytest.mark.parametrize("command", ["pause", "resume", "trigger", "remove"])
def test_names_or_all_but_not_neither_nor_both(command: str) -> None:
    none, both = run("--url", OUT_OF_REACH, command), run("--url", OUT_OF_REACH, command, "x", "--all")

    assert (2, True) == (none.exit_code, "Give a NAME, a pattern, or --all." in none.stderr)
    assert (2, True) == (both.exit_code, "Give names or --all, not both." in both.stderr)


# --- commands


def test_every_command_is_in_one_part_of_the_help() -> None:
    shown = [name for names in SECTIONS.values() for name in names]

    assert sorted(COMMANDS) == sorted(shown)


def test_the_parts_of_the_help_come_in_order() -> None:
    lines = run("--help").output.splitlines()

    assert [f"{title}:" for title in SECTIONS] == [line for line in lines if line.rstrip(":") in SECTIONS]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("lst",), "list"),
        (("upcomming",), "upcoming"),
        (("group", "lsit"), "list"),
    ],
)
def test_an_unknown_command_gets_a_suggestion(words: tuple[str, ...], meant: str) -> None:
    result = run(*words)

    assert 2 == result.exit_code
    assert f"Did you mean '{meant}'?" in result.stderr


def test_a_word_that_is_like_no_command_is_answered_with_the_way_to_the_list() -> None:
    assert "No such command 'xyzzy'; celery-pgbeat --help lists them." in run("xyzzy").stderr


@pytest.mark.parametrize(
    "words",
    [
        ("backfill", "nightly", "2026-05-01", "2026-05-02"),
        ("backfill", "--dry-run", "nightly", "2026-05-01", "2026-05-02"),
        ("backfill", "--mode", "all", "nightly", "2026-05-01", "2026-05-02"),
        ("backfill", "start", "nightly", "2026-05-01", "2026-05-02"),
        ("backfill", "start", "list", "2026-05-01", "2026-05-02"),
        ("backfill", "--", "-odd-", "2026-05-01", "2026-05-02"),
    ],
)
def test_a_backfill_may_be_started_with_and_without_the_word(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    asked: list[str] = []

    def backfill(_self: PgBeat, name: str, *_: Any, **__: Any) -> Any:
        asked.append(name)
        raise ZeroDivisionError

    monkeypatch.setattr(PgBeat, "backfill", backfill)
    run(*words)

    assert [next(word for word in words if word in ("nightly", "list", "-odd-"))] == asked


# --- "did you mean" for values


def test_a_misspelt_state_gets_a_suggestion() -> None:
    for words in (("jobs", "--state", "runing"), ("backfill", "list", "--state", "runing")):
        result = run(*words)
        assert (2, True) == (result.exit_code, "Did you mean 'running'?" in result.stderr)


def test_a_misspelt_option_gets_a_suggestion() -> None:
    assert "--schema" in run("list", "--shema", "x").stderr
    assert "--overlap" in run("add", "x", "--task", "y", "--overlapp", "skip").stderr


# --- completion


def completed(*words: str, group: click.Group = main) -> list[str]:
    complete = ShellComplete(group, {}, "celery-pgbeat", "_CELERY_PGBEAT_COMPLETE")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("up",), ["upcoming"]),
        (("gr",), ["graph", "group"]),
        (("group", ""), ["list", "define", "limit", "pause", "resume", "finish", "remove"]),
        (("jobs", "--state", "s"), ["sent", "succeeded", "skipped"]),
        (("add", "x", "--overlap", "buffer"), ["buffer_one", "buffer_all"]),
        (("add", "x", "--catchup", "l"), ["latest"]),
        (("add", "x", "--on-lost", "r"), ["rerun"]),
        (("add", "x", "--timezone", "europe/ber"), ["Europe/Berlin"]),
        (("validate", "@daily", "--timezone", "Asia/Tok"), ["Asia/Tokyo"]),
        (("list", "--man"), ["--managed-by"]),
    ],
)
def test_commands_options_and_values_are_completed(words: tuple[str, ...], found: list[str]) -> None:
    assert found == completed(*words)


def test_without_a_database_no_name_is_completed_and_nothing_fails() -> None:
    assert [] == completed("--url", OUT_OF_REACH, "pause", "n")
    assert [] == completed("pause", "n")
    assert [] == completed("pause", "n", "-A", "no_such_app_anywhere", "n")
