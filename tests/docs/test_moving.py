"""docs/moving.md: its commands exist, and its table lists the kinds as they are."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from celery_pgbeat.cli import main
from celery_pgbeat.moving.places import BACK, PLACES
from celery_pgbeat.moving.registry import kind_named
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "moving.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMAND = re.compile(r"(?:celery-pgbeat|celery -A shop pgbeat) ((?:import|export) [^|>#\n]*)")
COMMANDS = sorted({found.strip() for block in blocks(PAGE) for found in COMMAND.findall(block.text)})


@pytest.mark.parametrize("words", COMMANDS)
def test_each_command_of_the_page_has_these_options(words: str) -> None:
    name, *arguments = shlex.split(words)
    context = click.Context(main)
    command = main.get_command(context, name)
    assert command is not None

    with click.Context(command, parent=context) as inner:
        command.parse_args(inner, arguments)  # an error says what is wrong


def test_the_page_lists_each_kind_and_which_can_be_cut_over() -> None:
    table = TEXT[TEXT.index("| `--from` |") : TEXT.index("## The steps")]
    lines = [line for line in table.splitlines() if line.startswith("| [")]
    rows = {kind: line for line in lines for kind in re.findall(r"`([\w-]+)`", line.split("|")[1])}

    assert PLACES.keys() == rows.keys()
    assert {kind for kind in PLACES if kind_named(kind).switch_off is not None} == {
        kind for kind, line in rows.items() if line.endswith("| yes |")
    }


def test_the_page_lists_each_way_back() -> None:
    table = TEXT[TEXT.index("| `--to` |") :]

    assert all(f"| `{kind}` |" in table for kind in BACK)


def test_each_section_says_first_what_becomes_of_overlap() -> None:
    first, *sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)
    described = [section for section in sections if re.match(r"[^\n]*\n\nOverlap: `skip` is our default", section)]

    assert "**The default of `overlap` here is `skip`" in first
    assert len(PLACES) - len(["system-crontab"]) == len(described)
