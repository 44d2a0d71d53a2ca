"""Who is at the command line, for tasks for people: the options --owner and --as."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import Any

import click

Decorated = Callable[..., Any]


def with_owner(command: Decorated) -> Decorated:
    """Give a command the option --owner, by default the user of the system."""
    return click.option(
        "--owner",
        metavar="NAME",
        default=getpass.getuser,
        show_default="your user name",
        help="Who it is, by the name that your application uses.",
    )(command)


def with_roles(command: Decorated) -> Decorated:
    """Give a command the option --role, which may be given several times."""
    return click.option(
        "--role",
        "targets",
        metavar="NAME",
        multiple=True,
        help="A role of the owner, for tasks whose target is a role. May be given several times.",
    )(command)
