"""Definitions as lines of a file, and what the shell shows of them; without a database."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from io import StringIO
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from celery_pgbeat.api.exchange import DURATIONS, EMPTY, INSTANTS, differences, line_of, spoken_value
from celery_pgbeat.api.importing import Importer
from celery_pgbeat.cli import main
from celery_pgbeat.cli.exchange.differences import print_difference
from celery_pgbeat.cli.options import confirmation
from celery_pgbeat.cli.output.progress import Progress
from celery_pgbeat.columns import DECLARED
from celery_pgbeat.declare.columns import READERS
from celery_pgbeat.declare.definition import record_of
from celery_pgbeat.declare.duration import read_duration
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.settings import Settings

ROW: dict[str, Any] = {**EMPTY, "name": "nightly", "task": "shop.report", "schedule": None, "managed_by": "api"}


def test_a_record_has_every_column_of_a_definition() -> None:
    assert set(DECLARED) == set(record_of(ROW))
    assert {"anchor", "start_at", "end_at"} == INSTANTS
    assert {"jitter", "catchup_window", "min_gap", "max_run_time"} <= DURATIONS


def test_a_line_leaves_out_what_is_at_its_default() -> None:
    assert '{"name": "nightly", "task": "shop.report", "managed_by": "api"}' == line_of(ROW)
    assert {"overlap": "allow", "start_at": "2026-12-07T03:00:00+00:00", "args": ["ü"]}.items() <= json.loads(
        line_of(
            {
                **ROW,
                "overlap": "allow",
                "start_at": datetime(2026, 12, 7, 4, tzinfo=timezone(timedelta(hours=1))),
                "args": '["ü"]',
            }
        )
    ).items()


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36_000)))
def test_a_duration_is_written_so_that_it_is_read_as_the_same(duration: timedelta) -> None:
    written = json.loads(line_of({**ROW, "catchup_window": duration}))["catchup_window"]

    assert duration == read_duration("catchup_window", written)


def test_a_value_that_is_not_a_duration_stays_as_it_is() -> None:
    assert ["1m30s", 90, None, 0] == [
        spoken_value("jitter", 90.0),
        spoken_value("priority", 90),
        spoken_value("jitter", None),
        spoken_value("jitter", 0),
    ]


def test_only_what_differs_is_a_difference() -> None:
    assert {} == differences(ROW, dict(ROW))
    assert {"overlap": ("skip", "allow"), "max_runs": (None, 5)} == differences(
        ROW, {**ROW, "overlap": "allow", "max_runs": 5}
    )


def test_a_difference_is_coloured_on_a_terminal_and_cannot_speak_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("added", "changed", "removed"):
        print_difference("a\x1b[31m", kind, {"subject": (None, "\x07"), "jitter": (90.0, None)})

    assert [
        "+ a\\x1b[31m",
        "    subject: \\x07",
        "    jitter: nothing",
        "~ a\\x1b[31m",
        "    subject: nothing -> \\x07",
        "    jitter: 1m30s -> nothing",
        "- a\\x1b[31m",
        "    subject: nothing -> \\x07",
        "    jitter: 1m30s -> nothing",
    ] == click.unstyle(capsys.readouterr().out).splitlines()


def test_every_column_has_an_option_with_help() -> None:
    shown = CliRunner().invoke(main, ["add", "--help"], terminal_width=200).output

    assert [] == [column for column in READERS if f"--{column.replace('_', '-')} " not in shown]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)
COLUMN = st.sampled_from([*DECLARED, "colour"])
A_LINE = st.builds(lambda given: {"name": "x", "task": "y", **given}, st.dictionaries(COLUMN, ANYTHING)) | ANYTHING


class Nothing:
    """The statements of operators on an empty table."""

    def definitions_of(self, names: list[str]) -> dict[str, Any]:
        for name in names:
            assert "\0" not in name  # which a driver refuses in its own way
            name.encode()
        return {}


@given(st.lists(A_LINE.map(json.dumps) | st.text(max_size=9), max_size=4), st.sampled_from([None, "api"]))
def test_whatever_a_file_holds_it_is_refused_or_understood(lines: list[str], owner: str | None) -> None:
    importer = Importer(Nothing(), Settings(), managed_by=owner)  # type: ignore[arg-type]
    with importer, suppress(InvalidPeriodicTask):
        assert {"added"} >= {difference.kind for difference in importer.compare(lines)}


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_once_it_takes_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.5, 1.5, 1.5, 1.6])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress("lines read")

    for done in (10, 20, 30):
        progress(done)
    progress.clear()
    progress.clear()

    assert "\r\x1b[K20 lines read\r\x1b[K" == sys.stderr.getvalue()  # type: ignore[attr-defined]


def test_progress_is_silent_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    progress = Progress("lines read")
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)

    progress(10)
    progress.clear()

    assert "" == capsys.readouterr().err


def test_no_question_is_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "is_terminal", lambda: False)

    confirmation.confirm("Really?", yes=False)


@pytest.mark.parametrize("words", [["add"], ["add", "x"], ["remove"], ["import"], ["import", "/no/such/file"]])
def test_a_missing_argument_is_wrong_usage(words: list[str]) -> None:
    assert 2 == CliRunner().invoke(main, words).exit_code


@pytest.mark.parametrize(
    "words",
    [
        ["add", "x", "--task", "t"],
        ["remove", "x"],
        ["export"],
        ["import", "-"],
        ["nodes"],
        ["doctor"],
        ["top", "--once"],
    ],
)
def test_a_database_out_of_reach_is_exit_code_three(words: list[str]) -> None:
    result = CliRunner().invoke(
        main, ["--url", "postgresql://shop:hush@127.0.0.1:1/shop", *words], input='{"name": "a", "task": "b"}'
    )

    assert 3 == result.exit_code
    assert "hush" not in result.output
