"""`add`: add a periodic task, or change one."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, get_args, get_type_hints

import click

from celery_pgbeat.cli.differences import columns_as_dict, print_difference
from celery_pgbeat.cli.failure import ApiCommand, Failure
from celery_pgbeat.cli.instants import read_instant
from celery_pgbeat.cli.output import as_json, print_json, row_as_dict
from celery_pgbeat.cli.target import Target
from celery_pgbeat.declare.columns import DEFAULTS, READERS, Columns
from celery_pgbeat.redaction import ARGUMENTS, MASK

JSON_COLUMNS = {"args": "array", "kwargs": "object", "options": "object"}
HELP = {
    "args": "Positional arguments, a JSON array.",
    "kwargs": "Keyword arguments, a JSON object.",
    "queue": "The queue; default where the app routes the task.",
    "priority": "The broker's priority, 0 to 255.",
    "options": 'Every other option of apply_async, a JSON object, such as {"expires": 60}.',
    "sensitive": "Show its arguments nowhere: in no log, event or list, and of the errors of its jobs only the class.",
    "timezone": "Whose clock counts, such as Europe/Berlin; default the app's zone, without an app UTC.",
    "anchor": "Where the grid of an interval starts, in ISO 8601.",
    "dst": "What it does where the clocks change: default, skip, once, all.",
    "start_at": "No run before this instant, in ISO 8601.",
    "end_at": "No run after this instant, in ISO 8601.",
    "max_runs": "Stop after so many scheduled runs.",
    "jitter": "Each run is up to so much later, such as 30s.",
    "overlap": "While a job is not final: skip, buffer_one, buffer_all, cancel_other, terminate_other, allow.",
    "catchup": "Which missed runs go out: none, latest, earliest, all.",
    "catchup_window": "How late a missed run may still go out, such as 1h.",
    "catchup_limit": "At most so many missed runs go out under --catchup all.",
    "min_gap": "A run that would start sooner than this after the last start is dropped, such as 55s.",
    "max_run_time": "How long a run may take, such as 30m, or 50% of the interval.",
    "blackout": "When nothing may start, such as 'cron: 0 0 * * sat P2D'; may be given several times.",
    "blackout_action": "What becomes of a run in a blackout window: defer, skip.",
    "group_name": "The group with which it is paused and limited.",
    "submitter": "Who wants it; free text.",
    "subject": "What it is for; free text.",
    "pause_after_failures": "Pause after so many failed jobs in a row.",
    "on_lost": "When a worker dies: give_up (the job is lost), rerun.",
    "tracking": "Who reports the end of a job: full (the workers), result (the result backend), send (nobody).",
}


def _column(name: str, hint: Any) -> click.Option:
    """Make the option of a column; the API checks its value."""
    words: dict[str, Any] = {"help": HELP.get(name), "default": None}
    if name in JSON_COLUMNS:
        words.update(metavar=f"JSON {JSON_COLUMNS[name]}", callback=_read_json)
    elif hint is bool:
        words.update(is_flag=True, is_eager=True)  # before the arguments are read, which an error would quote
    elif name == "blackout":
        words.update(metavar="WINDOW", multiple=True, callback=lambda _ctx, _param, value: list(value) or None)
    elif datetime in get_args(hint):
        words.update(metavar="INSTANT", callback=read_instant)
    elif int in get_args(hint):
        words.update(type=int, metavar="NUMBER")
    elif name in DEFAULTS:
        words["help"] = f"{words['help'] or ''}  [default: {DEFAULTS[name]}]"
    return click.Option([f"--{name.replace('_', '-')}"], **words)


def _read_json(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    wanted = JSON_COLUMNS[str(param.name)]
    shown = MASK if param.name in ARGUMENTS and ctx.params.get("sensitive") else repr(value)
    try:
        read = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{shown} is not JSON: {error}") from None
    if not isinstance(read, list if wanted == "array" else dict):
        raise click.BadParameter(f"{shown} is not a JSON {wanted}")
    return read


def with_columns(command: click.Command) -> click.Command:
    """Give a command an option for each column of a definition."""
    hints = get_type_hints(Columns)
    place = next(at for at, param in enumerate(command.params) if param.name == "keep_next_run")
    command.params[place:place] = [_column(name, hints[name]) for name in READERS]
    return command


@with_columns
@click.command(cls=ApiCommand)
@click.argument("name")
@click.option("--task", required=True, metavar="TASK", help="The Celery task, by the name that workers know.")
@click.option("--schedule", metavar="TEXT", help="When, such as '0 3 * * *' or 'every 5m'; default: only by `trigger`.")
@click.option("--keep-next-run", is_flag=True, help="Keep the next run even when the schedule changes.")
@click.option("--run-on-start", is_flag=True, help="Have the row run at once when it is new.")
@click.option("--managed-by", metavar="OWNER", default="api", show_default=True, help="Who declares this.")
@click.option("--take-over", is_flag=True, help="Change the row even if another owner manages it; it becomes ours.")
@as_json
def add(
    name: str,
    task: str,
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
    changed schedule has its next run planned anew.

    Exit codes: 0 created, changed or unchanged; 1 refused, or another owner manages it.
    """
    from celery_pgbeat.api.exchange import differences, record_of

    target = Target.current()
    beat, operators = target.beat(), target.operators()
    old = operators.definitions_of([name]).get(name)
    if old is not None and old["managed_by"] != managed_by and not take_over:
        raise Failure(f"{name!r} is managed by {old['managed_by']!r}: change it there, or add --take-over")
    given = {column: value for column, value in columns.items() if value is not None}
    row = beat.schedule(
        name, task, schedule, keep_next_run=keep_next_run, run_on_start=run_on_start, managed_by=managed_by, **given
    )
    changes = {} if old is None else differences(record_of(old), record_of(operators.definitions_of([name])[name]))
    done = "created" if old is None else "changed" if changes else "unchanged"
    if as_json:
        print_json({"done": done, "changes": columns_as_dict(changes), "row": row_as_dict(row)})
    elif changes:
        print_difference(name, "changed", changes)
    else:
        click.echo(f"{done.capitalize()} {name!r}.")
