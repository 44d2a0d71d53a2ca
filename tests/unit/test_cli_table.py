"""Tables of the shell: they fit a terminal of any width, and nothing of them is cut in a pipe."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from celery_pgbeat.cli.output.table import MOST_BENEATH, Column, Table, lay_out
from celery_pgbeat.cli.output.terminal import columns_of, cut, wrapped
from celery_pgbeat.cli.output.values import lines_of

WIDTHS = (40, 80, 100, 120, 200)
LETTERS = st.text(st.characters(exclude_categories=("C", "Z", "M")), min_size=1, max_size=150)


def column(heading: str, **options: Any) -> Column:
    return Column(heading, heading.lower(), lambda row: row[heading], **options)


NAME = column("NAME", whole=True)
STATE = column("STATE", least=8, colours={"problem": "red"})
TASK = column("TASK", rank=1, least=10)
QUEUE = column("QUEUE", rank=2)
MANAGER = column("MANAGER", rank=4)
ERROR = column("ERROR", beneath=True)
ALL = (NAME, STATE, TASK, QUEUE, MANAGER, ERROR)


def row(name: str = "nightly", **cells: str) -> dict[str, str]:
    empty = dict.fromkeys(("STATE", "TASK", "QUEUE", "MANAGER", "ERROR"), "-")
    return {**empty, "NAME": name, **cells}


def lines(table: Table) -> list[str]:
    return [table.heading.plain, *(line.plain for of_row in table.rows for line in of_row)]


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def shown(rows: Sequence[dict[str, str]], width: int | None = None, columns: Sequence[Column] = ALL) -> list[str]:
    return lines(lay_out(columns, rows, width))


@given(st.lists(st.fixed_dictionaries({one.heading: LETTERS | st.just("-") for one in ALL}), max_size=5))
def test_no_line_is_longer_than_the_terminal_is_wide(rows: list[dict[str, str]]) -> None:
    for width in WIDTHS:
        assert max(map(columns_of, shown(rows, width))) <= width


@given(st.lists(st.fixed_dictionaries({one.heading: LETTERS | st.just("-") for one in ALL}), max_size=5))
def test_in_a_pipe_nothing_is_cut_and_each_row_is_a_line(rows: list[dict[str, str]]) -> None:
    _, *printed = shown(rows)

    assert len(rows) == len(printed)
    for line, cells in zip(printed, rows, strict=True):
        assert list(cells.values()) == [cell for cell in line.split("  ") if cell.strip()] or all(
            cell in line for cell in cells.values()
        )


@given(st.lists(LETTERS.filter(lambda name: columns_of(name) <= 80), min_size=1, max_size=5))
def test_a_name_that_fits_on_a_line_is_never_cut(names: list[str]) -> None:
    printed = shown([row(name, STATE="waiting for a place", TASK="a.b" * 20) for name in names], 80)

    assert all(any(line.startswith(name) for line in printed) for name in names)


def test_a_long_name_has_a_line_of_its_own_above_the_rest_of_its_row() -> None:
    assert [
        "NAME     STATE    TASK",
        "nightly  waiting  a",
        "x" * 60,
        "         paused   b",
    ] == shown([row(STATE="waiting", TASK="a"), row("x" * 60, STATE="paused", TASK="b")], 70, (NAME, STATE, TASK))


def test_a_long_text_is_below_its_row_and_not_below_a_row_without() -> None:
    assert [
        "NAME     STATE",
        "nightly  failed",
        "    a mishap with many words that say what the matter was with it, and more of",
        "    them",
        "weekly   waiting",
    ] == shown(
        [
            row(
                STATE="failed", ERROR="a mishap with many words that say what the matter was with it, and more of them"
            ),
            row("weekly", STATE="waiting"),
        ],
        80,
    )


def test_nothing_is_below_a_row_whose_text_is_empty() -> None:
    printed = shown([row(STATE="failed", ERROR="word " * 20), row("weekly", STATE="unknown", ERROR="")], 80)

    assert ["weekly   unknown"] == printed[4:]


def test_a_very_long_text_below_a_row_is_cut() -> None:
    _, _, *beneath = shown([row(STATE="failed", ERROR="word " * 200)], 80)

    assert MOST_BENEATH == len(beneath)
    assert beneath[-1].endswith(" …")


def test_the_least_important_columns_go_first() -> None:
    rows = [row(STATE="waiting", TASK="shop.tasks.report", QUEUE="a-slow-queue", MANAGER="code:shop")]
    headings = {width: shown(rows, width)[0].split() for width in (80, 50, 40)}

    assert {
        80: ["NAME", "STATE", "TASK", "QUEUE", "MANAGER"],
        50: ["NAME", "STATE", "TASK", "QUEUE"],
        40: ["NAME", "STATE", "TASK"],
    } == headings


def test_a_column_without_a_value_is_left_out_on_a_terminal_and_kept_in_a_pipe() -> None:
    assert "NAME  STATE" == shown([row("a", STATE="b")], 80)[0]
    assert ["NAME", "STATE", "TASK", "QUEUE", "MANAGER", "ERROR"] == shown([row("a", STATE="b")])[0].split()


def test_coloured_cells_stand_in_line_with_plain_ones() -> None:
    table = lay_out((STATE, NAME), [row("1", STATE="problem x"), row("2", STATE="plain")], None)

    styled = [table.heading.styled, *(line.styled for of_row in table.rows for line in of_row)]
    assert ["STATE      NAME", "problem x  1", "plain      2"] == [click.unstyle(line) for line in styled]
    assert ["\x1b[31mproblem x\x1b[0m" in line for line in styled] == [False, True, False]


@pytest.mark.parametrize(("text", "width", "expected"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("雪雪", 3, "雪…")])
def test_a_cut_text_takes_as_many_columns_as_there_are(text: str, width: int, expected: str) -> None:
    assert expected == cut(text, width)


@given(LETTERS, st.integers(4, 60))
def test_a_wrapped_text_fits(text: str, width: int) -> None:
    assert all(columns_of(line) <= width for line in wrapped(f"{text} {text}", width))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_sentence_fits_the_terminal_and_breaks_no_command(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    sentence = (
        "Nothing is sent: start a beat with `celery -A shop beat` on one node, or better on two or three of them."
    )
    monkeypatch.setenv("COLUMNS", str(width))

    lines = lines_of(sentence, Terminal(), indent=4)

    assert max(map(len, lines)) <= width - 4
    assert sentence == " ".join(lines)
    assert 1 == sum("`celery -A shop beat`" in line for line in lines)
    assert [sentence] == lines_of(sentence, io.StringIO())
