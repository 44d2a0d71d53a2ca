"""Makes the command of an operation from the table of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from celery_pgbeat.cli.command_line.completion import group_names, periodic_task_names
from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.groups import rules_of, warn_of_a_new_name
from celery_pgbeat.cli.options.ids import IdBeginning, id_of_job
from celery_pgbeat.cli.options.owners import with_owner, with_roles
from celery_pgbeat.cli.output.no_beat import warn_without_beat
from celery_pgbeat.cli.output.values import as_json, print_result
from celery_pgbeat.operations import Argument, Operation

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat

BY_BEAT = "If no beat is alive, a line on stderr says so."
MAY_BE_NEW = "If no periodic task names the group yet, stderr says so: `group remove` removes one with a misspelt name."
BEGINNING = "Of the ID the first characters will do, if no other job's id begins with them."
NO_NUMBER = "none"


def command_of(operation: Operation) -> click.Command:
    """Return the command of an operation: its subject, its arguments, and what it prints."""

    @as_json
    def run(as_json: bool, **given: Any) -> None:
        beat = Target.current().beat()
        answer, known = (_of_job if operation.subject == "job" else _of_name)(operation, beat, given)
        if operation.may_be_new:
            warn_of_a_new_name(beat, known["name"])
        print_result(answer, operation.command.said.format(**known), as_json)
        if operation.by_beat:
            warn_without_beat(beat)

    for argument in reversed(operation.arguments):
        run = _param(argument)(run)
    return click.command(operation.command.name, cls=ApiCommand, help=_help(operation))(_subject(operation)(run))


def _of_job(operation: Operation, beat: PgBeat, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Carry it out; return what the command prints as JSON, and what its sentence names."""
    job = id_of_job(given.pop("id"))
    name = getattr(beat, operation.name)(job, **given)
    state = operation.command.state.format(**given)
    return {"job": job, "periodic_task": name, "state": state, **given}, {"name": name, "job": job, **given}


def _of_name(operation: Operation, beat: PgBeat, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    answer = getattr(beat, operation.name)(**given)
    if operation.subject == "group":
        given["rules"] = rules_of(answer) or "its jobs wait for nothing"
    return answer, given


def _subject(operation: Operation) -> Any:
    if operation.subject == "job":
        return click.argument("id", metavar="ID", type=IdBeginning())
    names = group_names if operation.subject == "group" else periodic_task_names
    return click.argument("name", shell_complete=names)


def _param(argument: Argument) -> Any:
    if argument.is_user or argument.name == "targets":
        return with_owner if argument.is_user else with_roles
    if argument.is_required and argument.type is int:
        return click.argument(argument.name, metavar=f"NUMBER|{NO_NUMBER}", callback=_read_number)
    if argument.is_required and not argument.choices:
        return click.argument(argument.name)
    return _option(argument)


def _option(argument: Argument) -> Any:
    name = f"--{argument.name.replace('_', '-')}"
    if argument.choices:
        (default, meaning), (other, other_meaning) = argument.choices.items()
        either = f"{other_meaning.capitalize()}; without this {meaning}."
        return click.option(f"--{other}", argument.name, flag_value=other, default=default, help=either)
    if argument.type is bool:
        return click.option(name, is_flag=True, help=argument.help)
    if argument.type is list:  # of groups
        several = f"{argument.help} May be given several times."
        return click.option(name, multiple=True, metavar="GROUP", help=several, shell_complete=group_names)
    return click.option(name, type=argument.type, help=argument.help)


def _read_number(_context: click.Context, _parameter: click.Parameter, value: str) -> int | None:
    if value == NO_NUMBER:
        return None
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor {NO_NUMBER!r}") from None


def _help(operation: Operation) -> str:
    effect = [operation.effect, BY_BEAT if operation.by_beat else "", MAY_BE_NEW if operation.may_be_new else ""]
    beginning = [BEGINNING] if operation.subject == "job" else []
    missing = "" if operation.may_be_new else f", or there is no such {operation.subject}"
    exit_codes = f"Exit codes: 0 done; 1 refused{missing}."
    return "\n\n".join([operation.summary, " ".join(filter(None, effect)), *beginning, exit_codes])
