"""Makes the command of an operation from the table of operations."""

from __future__ import annotations

from typing import Any

import click

from celery_pgbeat.cli.completion import group_names, periodic_task_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.ids import IdBeginning, id_of_job
from celery_pgbeat.cli.no_beat import warn_without_beat
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target
from celery_pgbeat.operations import Argument, Operation

BY_BEAT = "If no beat is alive, a line on stderr says so."
BEGINNING = "Of the ID the first characters will do, if no other job's id begins with them."
EXIT_CODES = "Exit codes: 0 done; 1 there is no such {}, or it is refused."


def command_of(operation: Operation) -> click.Command:
    """Return the command of an operation: its subject, an option for each argument, and what it prints."""

    @as_json
    def run(as_json: bool, **given: Any) -> None:
        beat = Target.current().beat()
        method = getattr(beat, operation.name)
        if operation.subject == "job":
            job = id_of_job(given.pop("id"))
            name = method(job, **given)
            answer: Any = {"job": job, "periodic_task": name, "state": operation.command.state}
            sentence = operation.command.said.format(name=name, job=job)
        else:
            name = given.pop("name")
            answer = method(name, **given)
            sentence = operation.command.said.format(name=name)
        print_result(answer, sentence, as_json)
        if operation.by_beat:
            warn_without_beat(beat)

    for argument in reversed(operation.arguments):
        run = _option(argument)(run)
    return click.command(operation.command.name, cls=ApiCommand, help=_help(operation))(_subject(operation)(run))


def _subject(operation: Operation) -> Any:
    if operation.subject == "job":
        return click.argument("id", metavar="ID", type=IdBeginning())
    names = group_names if operation.subject == "group" else periodic_task_names
    return click.argument("name", shell_complete=names)


def _option(argument: Argument) -> Any:
    kind: dict[str, Any] = {"is_flag": True} if argument.type is bool else {"type": argument.type}
    name = f"--{argument.name.replace('_', '-')}"
    return click.option(name, help=argument.help, required=argument.is_required, **kind)


def _help(operation: Operation) -> str:
    by_beat = f" {BY_BEAT}" if operation.by_beat else ""
    beginning = [BEGINNING] if operation.subject == "job" else []
    exit_codes = EXIT_CODES.format(operation.subject)
    return "\n\n".join([operation.summary, operation.effect + by_beat, *beginning, exit_codes])
