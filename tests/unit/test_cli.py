"""The shell door without a database: what it loads, what it says, how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import click
import pytest
from celery import Celery
from celery.bin.base import CLIContext
from celery.bin.celery import celery
from click.testing import CliRunner, Result

from celery_pgbeat import __version__, errors
from celery_pgbeat.api import Job, PeriodicTask, PgBeat, Upcoming
from celery_pgbeat.cli import COMMANDS, FLAT_NAMES, main, output, pgbeat
from celery_pgbeat.cli.list import state_of
from celery_pgbeat.postgres.admin_queries import AdminQueries

AT = datetime(2026, 12, 7, 3, tzinfo=timezone.utc)
OUT_OF_REACH = "postgresql://shop:hush@127.0.0.1:1/shop"
READ = {"page_of_tasks", "page_of_jobs"}  # what operators' statements answer, not the Python door


def row(**columns: Any) -> PeriodicTask:
    values: dict[str, Any] = {
        **dict.fromkeys(PeriodicTask.__dataclass_fields__),
        "name": "nightly",
        "task": "shop.report",
        "args": [AT],
        "kwargs": {},
        "options": {},
        "sensitive": False,
        "schedule": "0 3 * * *",
        "enabled": True,
        "next_run_at": AT,
        "managed_by": "sql",
        "max_run_time": timedelta(minutes=30),
        "run_count": 0,
        "dst": "default",
        "overlap": "skip",
        "catchup": "latest",
        "blackout_action": "defer",
        "on_lost": "give_up",
        "tracking": "full",
        "revision": 1,
        "planned_revision": 1,
        "created_at": AT,
        "updated_at": AT,
    }
    return PeriodicTask(**{**values, **columns})


def stored(**columns: Any) -> dict[str, Any]:
    """A row as a driver reads it."""
    return {**asdict(row(args="[]", kwargs="{}", options="{}")), **columns}


def job(**columns: Any) -> Job:
    values: dict[str, Any] = {
        **dict.fromkeys(Job.__dataclass_fields__),
        "id": UUID(int=7),
        "periodic_task": "nightly",
        "scheduled_for": AT,
        "origin": "schedule",
        "state": "skipped",
        "reason": "overlap",
    }
    return Job(**{**values, **columns})


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.delenv("PGBEAT_URL", raising=False)
    monkeypatch.setattr(AdminQueries, "refused_declarations", lambda *_, **__: [])

    def invoke(*arguments: str, **answers: Any) -> Result:
        """Run the shell door on a Python door, or statements of operators, that give these answers, or raise them."""
        for method, answer in answers.items():
            monkeypatch.setattr(AdminQueries if method in READ else PgBeat, method, _answering(answer))
        url = ("--url", OUT_OF_REACH) if READ & answers.keys() else ()
        return CliRunner().invoke(main, [*url, *arguments])

    return invoke


def _answering(answer: Any) -> Callable[..., Any]:
    def method(*_: Any, **__: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return method


def test_finding_the_commands_loads_nothing_heavy() -> None:
    heavy = ("sqlalchemy", "celery", "kombu", "psycopg2", "psycopg", "croniter")
    code = f"import sys, celery_pgbeat.cli; print([name for name in {heavy} if name in sys.modules])"

    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert found.stdout.strip() == "[]"


def test_celery_knows_our_commands_by_its_plugins() -> None:
    assert isinstance(celery, click.Group)
    assert "pgbeat" in celery.commands


def test_the_help_names_every_command_and_the_exit_codes(run: Callable[..., Result]) -> None:
    result = run("--help")

    assert result.exit_code == 0
    assert all(name in result.output for name in COMMANDS if name not in FLAT_NAMES)
    assert "3 unhealthy" in " ".join(result.output.split())


def test_the_help_loads_no_command() -> None:
    code = (
        "import sys\n"
        "from celery_pgbeat.cli import COMMANDS, main\n"
        "main(['--help'], standalone_mode=False)\n"
        "print([name for name in COMMANDS if f'celery_pgbeat.cli.{name}' in sys.modules])"
    )

    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert found.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in COMMANDS if name not in ("demo", "group", "backfill")),
        *(f"group {name}" for name in ("list", "limit", "pause", "resume", "remove")),
        *(f"backfill {name}" for name in ("start", "list", "cancel")),
    ],
)
def test_every_command_has_its_help_and_prints_json(run: Callable[..., Result], name: str) -> None:
    result = run(*name.split(), "--help")

    assert result.exit_code == 0
    assert "--json" in result.output


def test_an_unknown_command_is_wrong_usage(run: Callable[..., Result]) -> None:
    result = run("lits")

    assert result.exit_code == 2
    assert "No such command 'lits'. Did you mean 'list'?" in result.stderr


def test_the_version_is_told(run: Callable[..., Result]) -> None:
    assert run("--version").output == f"celery-pgbeat, version {__version__}\n"


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (errors.UnknownPeriodicTask("No periodic task is named 'x'."), 1),
        (errors.JobInTheWay("A job of 'x' is not final yet"), 1),
        (errors.SchemaMissing("run celery-pgbeat migrate"), 1),
        (errors.InvalidSetting("pgbeat_lease is 'x'"), 2),
        (errors.DatabaseUnavailable("Postgres at ... is not usable"), 3),
    ],
)
def test_an_error_is_one_line_on_stderr_with_its_exit_code(
    run: Callable[..., Result], error: Exception, exit_code: int
) -> None:
    result = run("trigger", "x", trigger=error)

    assert (result.exit_code, result.stdout, result.stderr) == (exit_code, "", f"Error: {error}\n")


def test_an_error_of_ours_that_nobody_foresaw_is_not_hidden(run: Callable[..., Result]) -> None:
    assert isinstance(run("trigger", "x", trigger=ZeroDivisionError()).exception, ZeroDivisionError)


def test_without_a_url_the_way_to_give_one_is_said(run: Callable[..., Result]) -> None:
    result = run("list")

    assert result.exit_code == 2
    assert "pgbeat_url is not set" in result.stderr
    assert "PGBEAT_URL" in result.stderr


@pytest.mark.parametrize("command", [["list"], ["migrate"], ["jobs"], ["upcoming"], ["trigger", "x"], ["health"]])
def test_a_database_out_of_reach_is_exit_code_three_without_the_password(
    run: Callable[..., Result], command: list[str]
) -> None:
    result = run("--url", OUT_OF_REACH, *command)

    assert result.exit_code == 3
    assert "127.0.0.1" in result.output
    assert "hush" not in result.output


def test_a_health_check_says_what_it_cannot_know(run: Callable[..., Result]) -> None:
    result = run("--url", OUT_OF_REACH, "health", "--json")

    found = json.loads(result.stdout)
    assert found["healthy"] is False
    assert [False, None, None, None] == [check["ok"] for check in found["checks"].values()]


def test_an_app_that_cannot_be_loaded_is_wrong_usage(run: Callable[..., Result]) -> None:
    result = run("-A", "no_such_app_anywhere", "list")

    assert result.exit_code == 2
    assert "The Celery app 'no_such_app_anywhere' cannot be loaded: ModuleNotFoundError" in result.stderr


def test_under_celery_the_app_says_which_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGBEAT_URL", raising=False)
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.pgbeat_url = OUT_OF_REACH

    result = CliRunner().invoke(pgbeat, ["list"], obj=CLIContext(app, no_color=True, workdir=None))

    assert result.exit_code == 3
    assert "127.0.0.1" in result.stderr


def test_a_list_is_a_readable_table(run: Callable[..., Result]) -> None:
    result = run("list", page_of_tasks=[stored(), stored(name="x" * 60, schedule=None, next_run_at=None)])

    heading, first, second = result.stdout.splitlines()
    assert heading.split("  ")[0] == "NAME"
    assert first.split() == [
        "nightly",
        "shop.report",
        "0",
        "3",
        "*",
        "*",
        "*",
        "2026-12-07",
        "03:00:00Z",
        "waiting",
        "sql",
    ]
    assert second.startswith("x" * 47 + "…")
    assert first.index("shop.report") == second.index("shop.report") == heading.index("TASK")
    assert result.stderr == ""


def test_a_full_page_says_how_to_get_the_next(run: Callable[..., Result]) -> None:
    result = run("list", "--limit", "2", page_of_tasks=[stored(name="a"), stored(name="b c")])

    assert result.stderr == "There may be more: --after 'b c'\n"


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({}, "waiting"),
        ({"enabled": False}, "paused"),
        ({"enabled": False, "paused_until": AT}, "paused until 2026-12-07 03:00:00Z"),
        ({"problem": "why"}, "problem"),
        ({"next_run_at": None, "planned_revision": 0}, "to be planned"),
        ({"next_run_at": None}, "finished"),
        ({"next_run_at": None, "schedule": None}, "on demand"),
    ],
)
def test_a_state_is_a_word_or_two(columns: dict[str, Any], state: str) -> None:
    assert state_of(row(**columns)) == state


def test_a_name_cannot_speak_to_the_terminal(run: Callable[..., Result]) -> None:
    result = run("list", page_of_tasks=[stored(name="\x1b[31mred\n")])

    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred\\n" in result.stdout


def test_one_row_is_shown_with_what_is_known_of_it(run: Callable[..., Result]) -> None:
    lines = dict(line.split(maxsplit=1) for line in run("show", "nightly", get=row()).stdout.splitlines())

    assert lines["schedule"] == "0 3 * * *"
    assert lines["max_run_time"] == "0:30:00"
    assert "queue" not in lines


def test_json_has_every_column_in_plain_types(run: Callable[..., Result]) -> None:
    shown = json.loads(run("show", "nightly", "--json", get=row()).stdout)

    assert set(shown) == set(PeriodicTask.__dataclass_fields__)
    assert (shown["next_run_at"], shown["max_run_time"], shown["queue"]) == ("2026-12-07T03:00:00+00:00", 1800, None)
    assert shown["args"] == [{"__type__": "datetime", "__value__": "2026-12-07T03:00:00+00:00"}]


def test_jobs_are_listed_with_the_reason_why_they_were_skipped(run: Callable[..., Result]) -> None:
    result = run("jobs", "nightly", page_of_jobs=[asdict(job())])

    assert "00000000-0000-0000-0000-000000000007" in result.stdout
    assert "skipped (overlap)" in result.stdout
    assert json.loads(run("jobs", "--json", page_of_jobs=[asdict(job())]).stdout)[0]["id"] == str(UUID(int=7))


def test_jobs_know_their_states(run: Callable[..., Result]) -> None:
    result = run("jobs", "--state", "happy")

    assert result.exit_code == 2
    assert "'happy' is not one of 'pending'" in result.stderr


def test_a_refusal_without_a_place_points_nowhere(run: Callable[..., Result]) -> None:
    refusal = errors.InvalidSchedule("every 1ms", "interval", "faster than pgbeat_min_interval")

    assert "Error: 'every 1ms': faster than pgbeat_min_interval\n" == run("trigger", "x", trigger=refusal).stderr


def run_of(name: str = "nightly", **columns: Any) -> Upcoming:
    return Upcoming(**{"name": name, "next_run_at": AT, "planned_for": AT, **columns})


def test_what_runs_next_is_a_table(run: Callable[..., Result]) -> None:
    runs = [run_of(), run_of("by\nhand", planned_for=None)]

    assert (
        "NAME      NEXT RUN, Asia/Tokyo           PLANNED FOR, Asia/Tokyo\n"
        "nightly   Mon 2026-12-07 12:00:00+09:00  Mon 2026-12-07 12:00:00+09:00\n"
        "by\\nhand  Mon 2026-12-07 12:00:00+09:00  -\n"
    ) == run("upcoming", "--timezone", "Asia/Tokyo", upcoming=runs).stdout
    assert {
        "name": "by\nhand",
        "next_run_at": "2026-12-07T03:00:00+00:00",
        "planned_for": None,
    } == json.loads(run("upcoming", "--json", upcoming=runs).stdout)[1]


def test_a_full_page_of_what_runs_next_says_so(run: Callable[..., Result]) -> None:
    result = run("upcoming", "--limit", "1", upcoming=[run_of()])

    assert "There may be more: give a higher --limit\n" == result.stderr


def test_the_coming_runs_of_one_row_are_shown_with_what_moved_them(run: Callable[..., Result]) -> None:
    later = AT + timedelta(hours=2, microseconds=5000)
    nightly = row(timezone="Europe/Berlin", dst="default", jitter=timedelta(minutes=5), max_runs=3, run_count=1)

    result = run("upcoming", "nightly", get=nightly, upcoming=[run_of(), run_of(next_run_at=later, note="why")])

    assert (
        "name         nightly\n"
        "state        waiting\n"
        "kind         cron\n"
        "text         0 3 * * *\n"
        "description  at 03:00 (Europe/Berlin)\n"
        "timezone     Europe/Berlin\n"
        "max_runs     3\n"
        "jitter       0:05:00\n"
        "run_count    1\n"
        "\n"
        "Europe/Berlin                      UTC                       PLANNED FOR, Europe/Berlin     NOTE\n"
        "Mon 2026-12-07 04:00:00+01:00      2026-12-07 03:00:00Z\n"
        "Mon 2026-12-07 06:00:00.005+01:00  2026-12-07 05:00:00.005Z  Mon 2026-12-07 04:00:00+01:00  why\n"
    ) == result.stdout


def test_the_coming_runs_of_one_row_are_json_with_its_meaning(run: Callable[..., Result]) -> None:
    shown = json.loads(
        run("upcoming", "nightly", "--json", get=row(dst="default"), upcoming=[run_of(note="why")]).stdout
    )

    assert ("cron", "at 03:00", "waiting") == (shown["kind"], shown["description"], shown["state"])
    assert [
        {
            "utc": "2026-12-07T03:00:00+00:00",
            "local": "2026-12-07T03:00:00+00:00",
            "planned_for": "2026-12-07T03:00:00+00:00",
            "note": "why",
        }
    ] == shown["runs"]


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"enabled": False}, "paused"),
        ({"problem": "why", "schedule": "nonsense"}, "problem"),
        ({"schedule": None, "next_run_at": None}, "on demand"),
        ({"next_run_at": None}, "finished"),
        ({}, "its bounds and blackout windows leave no occurrence"),
    ],
)
def test_a_row_without_coming_runs_says_why(run: Callable[..., Result], columns: dict[str, Any], why: str) -> None:
    result = run("upcoming", "nightly", get=row(dst="default", **columns), upcoming=[])

    assert (0, f"No further run: {why}.") == (result.exit_code, result.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("given", "until"), [("2026-12-07T03:00:00Z", AT), ("2026-12-07", AT.replace(hour=0, tzinfo=None)), (None, None)]
)
def test_a_pause_takes_an_instant(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, given: str | None, until: datetime | None
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(PgBeat, "pause", lambda _self, *args: asked.append(args) or row(paused_until=until and AT))

    result = run("pause", "x", "--reason", "why", *(["--until", given] if given else []))

    assert asked == [("x", "why", until)]
    assert result.stdout == f"Paused 'x' until {'2026-12-07 03:00:00Z' if until else 'you resume it'}.\n"


def test_a_pause_until_no_instant_is_wrong_usage(run: Callable[..., Result]) -> None:
    result = run("pause", "x", "--until", "soon")

    assert result.exit_code == 2
    assert "'soon' is not an instant: write ISO 8601" in result.stderr


def test_a_resumed_and_a_triggered_row_are_confirmed(run: Callable[..., Result]) -> None:
    assert run("resume", "x", get=row(enabled=False), resume=row()).stdout == "Resumed 'nightly'.\n"
    assert run("trigger", "x", trigger=UUID(int=7)).stdout == f"Triggered 'x': job {UUID(int=7)}\n"
    assert json.loads(run("trigger", "x", "--json", trigger=UUID(int=7)).stdout) == {
        "periodic_task": "x",
        "job": str(UUID(int=7)),
    }


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, "'nightly' was not paused."),
        (
            {"group_paused": True, "group_name": "the reports"},
            "'nightly' was not paused, but its group 'the reports' is paused. Resume it with: celery-pgbeat "
            "resume-group 'the reports'",
        ),
        ({"problem": "no zone\nX"}, "'nightly' was not paused, but it cannot be planned: no zone\\nX"),
        (
            {"next_run_at": None, "schedule": None},
            "'nightly' was not paused, but it has no schedule. Start it with: celery-pgbeat trigger nightly",
        ),
        ({"next_run_at": None}, "'nightly' was not paused, but it is finished: its schedule has no further run."),
        ({"next_run_at": None, "planned_revision": 0}, "'nightly' was not paused."),
    ],
)
def test_a_resume_says_if_nothing_was_paused_and_what_else_keeps_the_row_still(
    run: Callable[..., Result], columns: dict[str, Any], said: str
) -> None:
    still = row(**columns)

    assert f"{said}\n" == run("resume", "x", get=still, resume=still).stdout


def test_colour_is_for_terminals_only(run: Callable[..., Result]) -> None:
    plain = run("list", page_of_tasks=[stored(problem="why")])
    coloured = CliRunner().invoke(main, ["--url", OUT_OF_REACH, "list"], color=True)

    assert "\x1b[" not in plain.output
    assert "\x1b[31mproblem" in coloured.output


def test_coloured_cells_stand_in_line_with_plain_ones(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("A", "B"), [("red x", "1"), ("plain", "2")], {"red": "red"})

    lines = [click.unstyle(line) for line in capsys.readouterr().out.splitlines()]
    assert ["A      B", "red x  1", "plain  2"] == lines
