"""The table of operations, and what is made of it."""

from __future__ import annotations

import inspect
from pathlib import Path
from textwrap import dedent

import click
import pytest

from celery_pgbeat import operations
from celery_pgbeat.api import PgBeat
from celery_pgbeat.cli import main
from celery_pgbeat.cli.command_line.operation_command import command_of
from celery_pgbeat.operations import OPERATIONS, Operation
from celery_pgbeat.web.actions.operation import action_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_an_operation_is_a_method_with_these_arguments(operation: Operation) -> None:
    parameters = inspect.signature(getattr(PgBeat, operation.name)).parameters

    assert ("id" if operation.subject == "job" else "name") == list(parameters)[1]
    assert {one.name for one in operation.arguments} <= parameters.keys()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_an_operation_is_a_command(operation: Operation) -> None:
    command: click.Command | None = main
    context = click.Context(main)
    for word in operation.command.words.split():
        assert isinstance(command, click.Group)
        command = command.get_command(context, word)

    assert command is not None
    assert operation.command.name == command.name


def test_the_example_of_the_recipe_is_a_command_and_a_page() -> None:
    recipes = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    entry = dedent(recipes[recipes.index("   of_task(") :].partition("   ```")[0]).strip().removesuffix(",")
    postpone = eval(entry, vars(operations))
    command, action = command_of(postpone), action_of(postpone, postpone.page)

    assert ("postpone", [("name", True), ("by", True)]) == (
        command.name,
        [(param.name, param.required) for param in command.params][:2],
    )
    assert ("Postpone", ["by"]) == (action.title, [field.name for field in action.fields])
