"""The help of each command and the keys of its JSON in docs/shell.md, made from the commands and from their tests.

`python -m tests.docs.shell_page` writes it into the page.
"""

from __future__ import annotations

import re

import click

from celery_pgbeat.cli import main
from tests.docs import json_keys
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "shell.md"
PART = re.compile(r"(?<=<!-- made from the commands -->\n).*", re.DOTALL)
WIDTH = 100  # characters, whatever the terminal has


def rendered() -> str:
    """Return the part as it has to be."""
    context = click.Context(main, info_name="celery-pgbeat", max_content_width=WIDTH, terminal_width=WIDTH)
    commands = "".join(_section(context, name) for name in main.list_commands(context))
    return commands + json_keys.rendered()


def _section(context: click.Context, name: str) -> str:
    command = main.get_command(context, name)
    assert command is not None
    with click.Context(command, parent=context, info_name=name, max_content_width=WIDTH, terminal_width=WIDTH) as inner:
        return f"\n## {name}\n\n```\n{command.get_help(inner)}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(PART.sub(lambda _: rendered(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
