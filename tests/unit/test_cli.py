"""The shell without a database: what it loads, what it says, how it fails."""

from __future__ import annotations

import json
import re
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
from celery_pgbeat.cli import COMMANDS, main, pgbeat
from celery_pgbeat.postgres.admin_queries import AdminQueries

AT = datetime(2026, 12, 7, 3, tzinfo=timezone.utc)
OUT_OF_REACH = "postgresql://shop:hush@127.0.0.1:1/shop"
JITTER = timedelta(seconds=40)
READ = {
    "page_of_tasks",
    "page_of_open_tasks",
    "page_of_jobs",
    "statuses_of",
    "clock",
}  # what operators' statements answer
STATUS: dict[str, Any] = {
    "state": "waiting",
    "last_state": "failed",
    "last_scheduled_for": AT - timedelta(hours=3),
    "lateness": None,
    "failures": 1,
}
QUIET: dict[str, Any] = {"clock": AT - timedelta(minutes=4), "page_of_jobs": [], "upcoming": []}


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
        """Run the shell on a Python API, or statements of operators, that give these answers, or raise them."""
        if answers:
            monkeypatch.setattr(AdminQueries, "statuses_of", lambda _, names: dict.fromkeys(names, STATUS))
            answers = {**QUIET, "changes": [], **answers}
        for method, answer in answers.items():
            monkeypatch.setattr(AdminQueries if method in READ else PgBeat, method, _answering(answer))
        url = ("--url", OUT_OF_REACH) if answers else ()
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
    assert all(name in result.output for name in COMMANDS)
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
        *(name for name in COMMANDS if name not in ("demo", "web", "job", "group", "backfill", "work")),
        *(f"job {name}" for name in ("show", "retry", "fail", "cancel", "resend")),
        *(f"work {name}" for name in ("list", "take", "done", "release")),
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


def test_the_version_is_printed(run: Callable[..., Result]) -> None:
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


def test_an_unexpected_error_of_ours_is_not_hidden(run: Callable[..., Result]) -> None:
    assert isinstance(run("trigger", "x", trigger=ZeroDivisionError()).exception, ZeroDivisionError)


def test_without_a_url_the_error_says_how_to_give_one(run: Callable[..., Result]) -> None:
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
    result = run("list", page_of_open_tasks=[stored(), stored(name="x" * 60, schedule=None, next_run_at=None)])

    heading, first, second = result.stdout.splitlines()
    assert heading.split("  ")[0] == "NAME"
    assert re.split("  +", first) == [
        "nightly",
        "waiting",
        "in 4 min",
        "2026-12-07 03:00:00Z",
        "failed",
        "3 h ago",
        "2026-12-07 00:00:00Z",
        "0 3 * * *",
        "shop.report",
        "sql",
        "-",
    ]
    assert second.startswith("x" * 60 + "  waiting  -  ")
    assert first.index("shop.report") == second.index("shop.report") == heading.index("TASK")
    assert result.stderr == ""


def test_a_full_page_says_how_to_get_the_next(run: Callable[..., Result]) -> None:
    result = run("list", "--limit", "2", page_of_open_tasks=[stored(name="a"), stored(name="b c")])

    assert result.stderr == "There may be more: --after 'b c'\n"


def test_a_name_cannot_speak_to_the_terminal(run: Callable[..., Result]) -> None:
    result = run("list", page_of_open_tasks=[stored(name="\x1b[31mred\n")])

    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred\\n" in result.stdout


def test_one_row_is_shown_with_its_state_first_and_without_unset_columns(run: Callable[..., Result]) -> None:
    assert (
        "state         waiting\n"
        "name          nightly\n"
        "task          shop.report\n"
        "runs          at 03:00\n"
        "schedule      0 3 * * *\n"
        "next run      2026-12-07 03:00:00Z (in 4 min)\n"
        "last job      none yet\n"
        'args          [{"__type__": "datetime", "__value__": "2026-12-07T03:00:00+00:00"}]\n'
        "max_run_time  30m\n"
        "managed_by    sql\n"
        "created_at    2026-12-07 03:00:00Z\n"
        "updated_at    2026-12-07 03:00:00Z\n"
    ) == run("show", "nightly", get=row()).stdout


@pytest.mark.parametrize("pause", [{"enabled": False}, {"group_paused": True}])
def test_a_run_that_came_during_a_pause_is_not_shown_as_the_next(run: Callable[..., Result], pause: Any) -> None:
    over, coming = {**pause, "next_run_at": AT - timedelta(minutes=9)}, {**pause, "next_run_at": AT}

    assert "\nnext run      none while it is paused\n" in run("show", "nightly", get=row(**over)).stdout
    assert "\nnext run      2026-12-07 03:00:00Z (in 4 min)\n" in run("show", "nightly", get=row(**coming)).stdout
    cells = run("list", page_of_open_tasks=[stored(**over)]).stdout.splitlines()[1]
    assert ["-", "-"] == re.split("  +", cells)[2:4]


def test_a_row_is_shown_with_its_last_job_and_its_problem(run: Callable[..., Result]) -> None:
    failed = job(state="failed", reason=None, started_at=AT, finished_at=AT + timedelta(seconds=3), error="KeyError: 1")

    shown = run("show", "nightly", get=row(problem="why"), page_of_jobs=[asdict(failed)]).stdout

    assert (
        f"last job      failed, scheduled for 2026-12-07 03:00:00Z (in 4 min), ran 3.00 s: {UUID(int=7)}\n"
        "error         KeyError: 1\n"
        "problem       why\n"
    ) in shown


def test_all_columns_of_a_row_are_shown_if_they_are_asked_for(run: Callable[..., Result]) -> None:
    lines = dict(line.split(maxsplit=1) for line in run("show", "nightly", "--all", get=row()).stdout.splitlines())

    assert ("1", "default", "skip") == (lines["planned_revision"], lines["dst"], lines["overlap"])


def test_json_has_every_column_in_plain_types(run: Callable[..., Result]) -> None:
    shown = json.loads(run("show", "nightly", "--json", get=row()).stdout)

    assert set(shown) == {*PeriodicTask.__dataclass_fields__, *STATUS, "description", "last_job"}
    assert (shown["next_run_at"], shown["max_run_time"], shown["queue"]) == ("2026-12-07T03:00:00+00:00", 1800, None)
    assert shown["args"] == [{"__type__": "datetime", "__value__": "2026-12-07T03:00:00+00:00"}]


def test_jobs_are_listed_with_the_reason_why_they_were_skipped(run: Callable[..., Result]) -> None:
    result = run("jobs", "nightly", page_of_jobs=[asdict(job())])

    assert "00000000-0000-0000-0000-000000000007" in result.stdout
    assert "skipped (overlap)" in result.stdout
    assert json.loads(run("jobs", "--json", page_of_jobs=[asdict(job())]).stdout)[0]["id"] == str(UUID(int=7))


@pytest.mark.parametrize(
    ("columns", "lateness", "duration"),
    [
        ({"started_at": AT + timedelta(seconds=2), "finished_at": AT + timedelta(seconds=5)}, 2, 3),
        ({"started_at": AT - timedelta(minutes=10)}, -600, 360),  # it runs, and it is four minutes to AT
        (
            {
                "started_at": AT + timedelta(seconds=42),
                "finished_at": AT + timedelta(seconds=42),
                "due_at": AT + JITTER,
            },
            2,
            0,
        ),
        ({"started_at": AT, "finished_at": AT, "origin": "backfill"}, None, 0),
        ({}, None, None),
    ],
)
def test_a_job_knows_how_late_it_started_and_how_long_it_took(
    run: Callable[..., Result], columns: dict[str, Any], lateness: int | None, duration: int | None
) -> None:
    (shown,) = json.loads(run("jobs", "--json", page_of_jobs=[asdict(job(**columns))]).stdout)

    assert (lateness, duration) == (shown["lateness"], shown["duration"])


def test_jobs_of_several_states_are_asked_for_with_commas_or_again(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def page(_self: Any, **filters: Any) -> list[Any]:
        asked.append((filters["states"], filters["pattern"]))
        return []

    monkeypatch.setattr(AdminQueries, "page_of_jobs", page)
    monkeypatch.setattr(AdminQueries, "clock", lambda _: AT)
    for words in (["--state", "running, failed", "--state", "lost"], ["--like", "*mail*"]):
        CliRunner().invoke(main, ["--url", OUT_OF_REACH, "jobs", *words])

    assert [(["running", "failed", "lost"], None), (None, "%mail%")] == asked


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
    runs = [run_of(after=["a", "b\n"]), run_of("by\nhand", planned_for=None)]

    assert (
        "NAME      DUE       NEXT RUN                   PLANNED FOR                EXPECTED\n"
        "nightly   in 4 min  2026-12-07 12:00:00+09:00  2026-12-07 12:00:00+09:00  after 'a' and 'b\\n'\n"
        "by\\nhand  in 4 min  2026-12-07 12:00:00+09:00  -                          -\n"
    ) == run("upcoming", "--timezone", "Asia/Tokyo", upcoming=runs).stdout
    assert {
        "name": "by\nhand",
        "next_run_at": "2026-12-07T03:00:00+00:00",
        "planned_for": None,
        "after": None,
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
        "jitter       5m\n"
        "run_count    1\n"
        "\n"
        "Europe/Berlin                  UTC                   MOVED FROM                     NOTE\n"
        "Mon 2026-12-07 04:00:00+01:00  2026-12-07 03:00:00Z  -                              -\n"
        "Mon 2026-12-07 06:00:00+01:00  2026-12-07 05:00:00Z  Mon 2026-12-07 04:00:00+01:00  why\n"
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
def test_a_row_without_coming_runs_says_why(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, columns: dict[str, Any], why: str
) -> None:
    monkeypatch.setitem(STATUS, "state", f"running, {why}" if columns else "running")
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
            "group resume 'the reports'",
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


def test_colour_is_for_terminals_only_and_not_for_those_who_want_none(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STATUS, "state", "problem")
    plain = run("list", page_of_open_tasks=[stored(problem="why")])
    words = ["--url", OUT_OF_REACH, "list"]

    assert "\x1b[" not in plain.output
    assert "\x1b[31mproblem" in CliRunner().invoke(main, words, color=True).output
    assert "\x1b[" not in CliRunner().invoke(main, words, color=True, env={"NO_COLOR": "1"}).output
