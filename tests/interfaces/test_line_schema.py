"""The JSON Schema of a line of `export`: what it accepts, and that it agrees with what `import` reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from celery_pgbeat.api import PgBeat
from celery_pgbeat.api.line_schema import line_schema
from celery_pgbeat.cli import main
from celery_pgbeat.columns import DECLARED
from tests.harness.rows import sql

VALIDATOR = Draft202012Validator(line_schema(), format_checker=Draft202012Validator.FORMAT_CHECKER)
FULL: dict[str, Any] = {
    "name": "full",
    "task": "app.probe",
    "args": [1, "ü", None],
    "kwargs": {"a": {"b": [1.5]}},
    "queue": "slow",
    "priority": 9,
    "options": {"expires": 60},
    "sensitive": True,
    "schedule": "every 1h",
    "timezone": "Europe/Berlin",
    "anchor": "2026-01-01T00:00:00+00:00",
    "dst": "once",
    "start_at": "2026-01-01T00:00:00+00:00",
    "end_at": "2100-01-01T00:00:00+00:00",
    "max_runs": 5,
    "jitter": "30s",
    "overlap": "allow",
    "catchup": "all",
    "catchup_window": "1h",
    "catchup_limit": 7,
    "min_gap": "55s",
    "max_run_time": "30m",
    "blackout": ["cron: 0 0 * * sat P2D"],
    "blackout_action": "skip",
    "group_name": "reports",
    "submitter": "ops",
    "subject": "the report",
    "pause_after_failures": 3,
    "on_lost": "rerun",
    "on_error": "ask",
    "tracking": "result",
    "managed_by": "ops",
}
# What only a task for people may have, which may not have all the rest.
AFTER: dict[str, Any] = {"name": "after", "task": "app.probe", "after": ["full"], "after_condition": "finish"}
FOR_PEOPLE: dict[str, Any] = {"name": "people", "kind": "human", "target": ["finance", "ann"], "due_in": "4h"}


def read_by_import(url: str, line: Any) -> bool:
    """Return whether `import --dry-run` takes a line."""
    words = ("--url", url, "import", "-", "--dry-run")
    return CliRunner().invoke(main, words, input=json.dumps(line)).exit_code == 0


def test_the_command_prints_the_schema_and_needs_no_database() -> None:
    result = CliRunner().invoke(main, ["export", "--json-schema"])

    Draft202012Validator.check_schema(json.loads(result.stdout))
    assert (0, line_schema()) == (result.exit_code, json.loads(result.stdout))


def test_every_line_of_an_export_is_valid(beat: PgBeat, migrated_database: str) -> None:
    words = ("--url", migrated_database, "import", "-")
    for line in (FULL, FOR_PEOPLE, AFTER):
        assert 0 == CliRunner().invoke(main, words, input=json.dumps(line)).exit_code
    beat.schedule("plain", "app.probe")
    windows = "insert into pgbeat.blackout values ('night', array['cron: 0 0 * * * PT5H'], 'Europe/Berlin')"
    sql(migrated_database, windows)
    beat.limit_group("reports", 3)

    lines = [json.loads(line) for line in beat.export()]

    assert 6 == len(lines)
    assert set(DECLARED) == {*lines[2], *lines[3], *lines[4]}
    assert [] == [error.message for line in lines for error in VALIDATOR.iter_errors(line)]


@pytest.mark.parametrize("column", sorted(set(DECLARED) - {"name", "task"}))
def test_the_schema_and_import_agree_on_a_null_and_on_a_wrong_type(migrated_database: str, column: str) -> None:
    for value, is_right in ((None, True), ([{}] if column != "args" else 1, False)):
        line = {"name": "x", "task": "app.probe", column: value}
        assert (is_right, is_right) == (VALIDATOR.is_valid(line), read_by_import(migrated_database, line)), line


@pytest.mark.parametrize(
    "line",
    [
        {"name": "x"},
        {"name": "x", "kind": "task"},
        {"name": "x", "kind": "human", "target": []},
        {"task": "x"},
        {"name": "", "task": "x"},
        {"name": "x" * 201, "task": "x"},
        {"name": "x", "task": "x", "colour": "red"},
        {"name": "x", "task": "x", "overlap": "skipp"},
        {"name": "x", "task": "x", "priority": 256},
        {"name": "x", "task": "x", "max_runs": 0},
        {"name": "x", "task": "x", "start_at": "tomorrow"},
        {"group": "x", "max_active": 0},
        {"group": "x", "limit": 3},
        {"window": "x"},
        {"window": "x", "windows": "cron: 0 0 * * * PT5H"},
        [],
    ],
)
def test_what_the_schema_refuses_import_refuses_too(migrated_database: str, line: Any) -> None:
    assert not VALIDATOR.is_valid(line)
    assert not read_by_import(migrated_database, line)
