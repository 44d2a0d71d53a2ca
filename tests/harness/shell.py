"""The shell in the process of the test."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import CliRunner, Result

from celery_pgbeat.cli import main

Run = Callable[..., Result]


def shell_on(url: str) -> Run:
    """Return the command with that database: `run("list", "--json")`."""
    return lambda *words, **given: CliRunner().invoke(main, ["--url", url, *words], **given)
