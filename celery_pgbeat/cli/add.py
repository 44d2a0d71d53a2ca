"""`add`: add a periodic task, or change one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from celery_pgbeat.cli.command_line.completion import group_names, one_of, periodic_task_names, task_names, zone_names
from celery_pgbeat.cli.command_line.failure import ApiCommand, Failure
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.exchange.differences import columns_as_dict, print_difference
from celery_pgbeat.cli.options.instants import read_coming_instant
from celery_pgbeat.cli.options.json_values import JSON_KINDS, json_value
from celery_pgbeat.cli.output.known_tasks import tasks_of, warn_of_unknown
from celery_pgbeat.cli.output.next_run import next_run_of, print_filled_in, print_next_run
from celery_pgbeat.cli.output.no_beat import warn_without_beat
from celery_pgbeat.cli.output.values import as_json, print_json, row_as_dict
from celery_pgbeat.columns import Column
from celery_pgbeat.declare.columns import GIVEN
from celery_pgbeat.texts.redaction import ARGUMENTS, MASK

METAVARS = {"blackout": "WINDOW", "target": "NAME", "after": "NAME"}
COMPLETIONS = {"timezone": zone_names, "group_name": group_names}


def _option(column: Column) -> click.Option:
    """Make the option of a column; the API checks its value."""
    words: dict[str, Any] = {"help": column.help, "default": None}
    if column.type in JSON_KINDS:
        words.update(metavar=f"JSON {JSON_KINDS[column.type]}", callback=_read_json)
    elif column.type is bool:
        words.update(is_flag=True, is_eager=True)  # before the arguments are read, which an error would quote
    elif column.type == list[str]:
        words.update(metavar=METAVARS[column.name], multiple=True)
        words.update(callback=lambda _ctx, _param, value: list(value) or None)
        words["help"] += " May be given several times."
    elif column.type is datetime:
        words.update(metavar="INSTANT", callback=read_coming_instant)
        words["help"] += " In ISO 8601, or such as tomorrow or 2d (from now on)."
    elif column.type is int:
        words.update(type=int, metavar="NUMBER")
    elif column.default is not None:
        words["help"] += f"  [default: {column.default}]"
    complete = COMPLETIONS.get(column.name) or (one_of(list(column.choices)) if column.choices else None)
    if complete is not None:
        words["shell_complete"] = complete
    return click.Option([f"--{column.name.replace('_', '-')}"], **words)


def _read_json(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    is_hidden = param.name in ARGUMENTS and ctx.params.get("sensitive")
    return json_value(GIVEN[str(param.name)], value, MASK if is_hidden else repr(value))


def with_columns(command: click.Command) -> click.Command:
    """Give a command an option for each column of a definition."""
    place = next(at for at, param in enumerate(command.params) if param.name == "keep_next_run")
    command.params[place:place] = [_option(column) for column in GIVEN.values()]
    return command


@with_columns
@click.command(cls=ApiCommand)
@click.argument("name", shell_complete=periodic_task_names)
@click.option(
    "--task",
    metavar="TASK",
    help="The Celery task, by the name that workers know; required unless --kind is human.",
    shell_complete=task_names,
)
@click.option("--schedule", metavar="TEXT", help="When, such as '0 3 * * *' or 'every 5m'; default: only by `trigger`.")
@click.option("--keep-next-run", is_flag=True, help="Keep the next run even when the schedule changes.")
@click.option("--run-on-start", is_flag=True, help="Have the row run at once when it is new.")
@click.option("--managed-by", metavar="MANAGER", default="api", show_default=True, help="Who declares this.")
@click.option("--take-over", is_flag=True, help="Change the row even if it has another manager; it becomes ours.")
@as_json
def add(
    name: str,
    task: str | None,
    schedule: str | None,
    keep_next_run: bool,
    run_on_start: bool,
    managed_by: str,
    take_over: bool,
    as_json: bool,
    **columns: Any,
) -> None:
    """Declare the periodic task NAME: add it, or change what differs. An equal one is left untouched.

    The whole definition is declared: what is left out becomes the default. A pause, the next run and the jobs stay; a
    changed schedule gets a new next run. A row without a timezone gets that of its app, from the first beat
    that plans it. What was filled in is printed, with the next run. With the app (-A) the call is checked against its
    task. If no beat is alive to send it, a line on stderr says so.

    Exit codes: 0 created, changed or unchanged; 1 refused, or the row has another manager.
    """
    from celery_pgbeat.api.exchange import differences
    from celery_pgbeat.declare.definition import record_of

    target = Target.current()
    beat, operators = target.beat(), target.operators()
    if task is None and columns["kind"] != "human":
        raise click.UsageError("Missing option '--task'.")
    known = tasks_of(target.app)
    old = operators.definitions_of([name]).get(name)
    if old is not None and old["managed_by"] != managed_by and not take_over:
        raise Failure(f"{name!r} is managed by {old['managed_by']!r}: change it there, or add --take-over")
    given = {column: value for column, value in columns.items() if value is not None}
    row = beat.schedule(
        name,
        task,
        schedule,
        keep_next_run=keep_next_run,
        run_on_start=run_on_start,
        managed_by=managed_by,
        take_over=take_over,
        **given,
    )
    changes = {} if old is None else differences(record_of(old), record_of(operators.definitions_of([name])[name]))
    done = "created" if old is None else "changed" if changes else "unchanged"
    if as_json:
        next_run = next_run_of(row)
        shown = {"row": row_as_dict(row), "timezone": next_run.zone, "next_run_at": next_run.instant}
        print_json({"done": done, "changes": columns_as_dict(changes), **shown})
        return
    if changes:
        print_difference(name, "changed", changes)
    else:
        click.echo(f"{done.capitalize()} {name!r}.")
    if done != "unchanged":
        print_filled_in(row, given)
        print_next_run(row)
    if row.kind != "human":
        warn_of_unknown([str(task)], known)
    warn_without_beat(beat)
