"""The table of operations, and what is made of it."""

from __future__ import annotations

import inspect

import click
import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.cli import main
from celery_pgbeat.operations import OPERATIONS, Operation


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
