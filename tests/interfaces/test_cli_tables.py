"""What the shell shows of rows with long names in every state: on terminals of several widths, in a pipe, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import pytest
from click.testing import CliRunner, Result

from celery_pgbeat.cli import main
from celery_pgbeat.cli.output.job_columns import COLUMNS as OF_JOBS
from celery_pgbeat.cli.output.table import Column
from celery_pgbeat.cli.output.terminal import columns_of
from tests.harness.cli_shapes import SHAPES, WITH_WORDS, fault
from tests.harness.every_state import ERROR, FINAL, LONG, fill
from tests.harness.session import Session
from tests.harness.shell import Run

WIDTHS = (80, 100, 120, 200)
WAITING, BACKFILLED = LONG("waiting"), LONG("backfilled")
TABLES = ("list", "jobs", "upcoming", "overdue", "nodes", "group list", "backfill list")
PAIRS = (("show", WAITING), ("show", WAITING, "--all"), ("show", LONG("problem")), ("upcoming", WAITING))


@pytest.fixture(scope="module")
def session(shared_database: str) -> Iterator[Session]:
    """A database with the rows, which the tests only read."""
    made = Session(shared_database)
    fill(made)
    yield made
    made.connection.close()


@pytest.fixture
def run(session: Session, shared_database: str) -> Run:
    return lambda *words: CliRunner().invoke(main, ["--url", shared_database, *words])


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make a function that lets stdout be a terminal of a width."""
    modules = [import_module(f"celery_pgbeat.cli.{name}") for name in ("output.table", "output.values", "top")]

    def of_width(width: int) -> None:
        for module in modules:
            monkeypatch.setattr(module, "terminal_width", lambda _stream=None: width)

    return of_width


def columns_of_command(command: str) -> Sequence[Column]:
    module = {"group list": "groups", "backfill list": "backfills"}.get(command, command)
    return OF_JOBS if command == "jobs" else import_module(f"celery_pgbeat.cli.{module}").COLUMNS


def printed(result: Result) -> list[str]:
    assert 0 == result.exit_code, result.output
    return result.stdout.splitlines()


def keys(value: Any) -> set[str]:
    """Return every key at whatever depth."""
    if isinstance(value, list):
        return set().union(*map(keys, value))
    return set() if not isinstance(value, dict) else set(value) | set().union(*map(keys, value.values()))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "words", [*(name.split() for name in TABLES), *PAIRS, ("top", "--once"), ("explain", "short")], ids=" ".join
)
def test_no_line_is_longer_than_the_terminal_is_wide(
    run: Run, terminal: Callable[[int], None], words: tuple[str, ...], width: int
) -> None:
    terminal(width)

    lines = printed(run(*words))

    assert len(lines) > (1 if words[0] != "explain" else 0)
    if words[0] != "explain":  # a sentence, which the terminal may break
        assert max(map(columns_of, lines)) <= width


@pytest.mark.parametrize("words", [*(name.split() for name in TABLES), ("top", "--once")], ids=" ".join)
def test_in_a_pipe_names_ids_and_errors_are_uncut(run: Run, session: Session, words: tuple[str, ...]) -> None:
    lines = printed(run(*words))

    assert not any("…" in line for line in lines)
    if words[0] == "top":
        assert any(line.startswith(LONG("overdue")) for line in lines)
        return
    found = json.loads(run(*words, "--json").stdout)
    assert len(found) == len(lines) - 1, "one line for each row"
    for line, row in zip(lines[1:], found, strict=True):
        texts = [row.get(key) for key in ("id", "name", "periodic_task", "error", "worker", "reason", "problem")]
        assert all(str(text) in line for text in texts if text is not None and words[0] != "overdue"), line
        assert row.get("name", "") in line


@pytest.mark.parametrize("command", TABLES)
def test_json_has_a_key_for_each_column(run: Run, command: str) -> None:
    assert {column.key for column in columns_of_command(command)} <= keys(
        json.loads(run(*command.split(), "--json").stdout)
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("upcoming NAME", ("upcoming", WAITING)),
        ("validate --window", ("validate", "cron: 0 0 * * sat P2D", "--window")),
        ("backfill --dry-run", ("backfill", WAITING, "2026-05-01", "2026-05-02", "--dry-run")),
        ("show", ("show", WAITING)),  # with a last job
    ],
)
def test_json_that_depends_on_the_words_has_its_shape(run: Run, words: str, line: tuple[str, ...]) -> None:
    assert fault({**SHAPES, **WITH_WORDS}[words], json.loads(run(*line, "--json").stdout)) is None


def test_the_states_of_the_list_are_those_of_the_view_and_of_top(run: Run, session: Session) -> None:
    listed = {row["name"]: row["state"] for row in json.loads(run("list", "--json").stdout)}
    view = {row["name"]: row["state"] for row in session.rows("select name, state from pgbeat.status")}
    top = {row["name"] for row in json.loads(run("top", "--rows", "100", "--json").stdout)["overdue"]}

    assert view == listed
    assert {name for name, state in view.items() if state == "overdue"} == top
    assert LONG("overdue") in top


def test_overdue_is_the_view(run: Run, session: Session) -> None:
    found = json.loads(run("overdue", "--json").stdout)

    assert {row["name"] for row in session.rows("select name from pgbeat.overdue")} == {row["name"] for row in found}
    assert found == sorted(found, key=lambda row: row["due_at"])
    assert 1 == len(json.loads(run("overdue", "--limit", "1", "--json").stdout))


def test_nothing_overdue_is_said(shared_database: str) -> None:
    CliRunner().invoke(main, ["--url", shared_database, "--schema", "quiet", "migrate"])

    result = CliRunner().invoke(main, ["--url", shared_database, "--schema", "quiet", "overdue"])

    assert (0, "Nothing is overdue.\n") == (result.exit_code, result.stdout)


def test_a_job_is_found_by_the_beginning_of_its_id(run: Run, session: Session) -> None:
    id = str(session.value("select id from pgbeat.job where state = 'failed'"))

    for beginning in (id, id[:12], id[:8].upper()):
        lines = printed(run("job", beginning))
        assert ("state          failed", f"error          {ERROR}") == tuple(lines[:2])
        assert f"job            {id}" in lines
    assert id == json.loads(run("job", id[:8], "--json").stdout)["id"]


def test_a_job_that_is_not_there_or_not_the_only_one_is_an_error(run: Run, session: Session) -> None:
    session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) select ('0123456' || n || '-0000-0000-0000-000000000000')::uuid, 'twins', now(), 'manual', "
        "'revoked', 't', now() - interval '1 d', now() from generate_series(1, 2) n"
    )
    unknown, several, wrong = run("job", "0123456f"), run("job", "0123456"), run("job", "nightly")

    assert (1, "Error: There is no job 0123456f…; jobs are kept for pgbeat_retention\n") == (
        unknown.exit_code,
        unknown.stderr,
    )
    assert (1, True) == (
        several.exit_code,
        "begin with 0123456: 01234561-0000-0000-0000-000000000000, " in several.stderr,
    )
    assert (2, True) == (wrong.exit_code, "'nightly' is not an id, nor the beginning of one" in wrong.stderr)
    session.rows("delete from pgbeat.finished_job where periodic_task = 'twins'")


@pytest.mark.parametrize("command", ["jobs", "backfill list"])
def test_an_unknown_name_is_an_error_that_suggests_a_near_one(run: Run, command: str) -> None:
    unknown, without = run(*command.split(), "shrot"), run(*command.split(), "short")

    assert (1, "Error: No periodic task is named 'shrot'. Did you mean 'short'?\n") == (
        unknown.exit_code,
        unknown.stderr,
    )
    assert (0, "") == (without.exit_code, without.stderr)


def test_the_jobs_of_a_row_that_was_removed_are_listed(run: Run, session: Session) -> None:
    session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) values (gen_random_uuid(), 'gone', now(), 'manual', 'revoked', 't', now(), now())"
    )

    assert 2 == len(printed(run("jobs", "gone")))
    assert 0 == run("jobs", "gone", "--state", "failed").exit_code
    session.rows("delete from pgbeat.finished_job where periodic_task = 'gone'")


def test_jobs_of_several_states_are_listed(run: Run) -> None:
    found = json.loads(run("jobs", "--state", "failed,lost", "--state", "running", "--json").stdout)

    assert {"failed", "lost", "running"} == {job["state"] for job in found}
    assert set(FINAL) <= {job["state"] for job in json.loads(run("jobs", "--json").stdout)}


def test_names_are_matched_with_stars_and_with_percent_signs(run: Run) -> None:
    for pattern in ("*running*", "%running%"):
        assert [LONG("job-running")] == [
            row["name"] for row in json.loads(run("list", "--like", pattern, "--json").stdout)
        ]


def test_a_second_time_that_equals_the_first_is_not_shown(
    run: Run, session: Session, terminal: Callable[[int], None]
) -> None:
    def plan(expression: str) -> None:
        session.rows(f"update pgbeat.periodic_task set planned_for = {expression} where next_run_at is not null")

    plan("next_run_at")
    assert "PLANNED FOR" in printed(run("upcoming"))[0], "a pipe always has the same columns"
    terminal(200)
    assert "PLANNED FOR" not in printed(run("upcoming"))[0]

    plan("next_run_at - interval '1 min'")

    assert "PLANNED FOR" in printed(run("upcoming"))[0]


def test_a_running_backfill_is_cancelled_by_the_beginning_of_its_id(run: Run, session: Session) -> None:
    id = str(session.value("select id from pgbeat.backfill where state = 'running'"))

    assert 1 == run("backfill", "cancel", "0000000").exit_code
    assert "Cancelled the backfill" in printed(run("backfill", "cancel", id[:8]))[0]
