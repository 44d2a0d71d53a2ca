"""The help of each command and the keys of its JSON in docs/shell.md, made from the commands and from their tests.

`python -m tests.docs.shell_page` writes it into the page.
"""

from __future__ import annotations

import re

import click

from celery_pgbeat.cli import main
from tests.docs import json_keys
from tests.docs.pages import ROOT, noted

PAGE = ROOT / "docs" / "shell.md"
NOTE = "Made from the code by `python -m tests.docs.shell_page`. `celery-pgbeat --help` says the same."
PART = re.compile(r"(?<=<!-- made from the commands -->\n).*", re.DOTALL)
WIDTH = 100  # characters, whatever the terminal has


def rendered() -> str:
    """Return the part as it has to be."""
    context = click.Context(
        main,
        info_name="celery-pgbeat",
        max_content_width=WIDTH,
        terminal_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    commands = "".join([_section(main, context, name, name) for name in main.list_commands(context)])
    return commands + json_keys.rendered()


def _section(group: click.Group, context: click.Context, name: str, title: str) -> str:
    """Return the help of a command, and after that of a group of commands the help of each."""
    command = group.get_command(context, name)
    assert command is not None
    command._help_option = None  # click keeps that of the first context in the process, which may lack -h
    with click.Context(command, parent=context, info_name=name, max_content_width=WIDTH, terminal_width=WIDTH) as inner:
        text = f"\n## {title}\n\n```\n{command.get_help(inner)}\n```\n"
        if isinstance(command, click.Group):
            names = command.list_commands(inner)
            text += "".join(_section(command, inner, one, f"{title} {one}") for one in names)
        return text


if __name__ == "__main__":
    PAGE.write_text(noted(PART.sub(lambda _: rendered(), PAGE.read_text(encoding="utf-8")), NOTE), encoding="utf-8")
