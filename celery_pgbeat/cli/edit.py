"""`edit`: change some columns of a periodic task."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.exchange.differences import columns_as_dict, print_difference
from celery_pgbeat.cli.options.instants import read_coming_instant
from celery_pgbeat.cli.output.next_run import print_next_run
from celery_pgbeat.cli.output.values import as_json, print_json
from celery_pgbeat.columns import DECLARED, Column
from celery_pgbeat.texts.suggestions import did_you_mean

if TYPE_CHECKING:
    from celery_pgbeat.api import PeriodicTask

NOTHING = ("", "null")  # what a column is set to its default by
ELSEWHERE = {  # columns that another command changes
    "name": "a row keeps its name; `export`, `import` and `remove` give it another",
    "managed_by": "`add --take-over` changes it",
    "enabled": "`pause` and `resume` change it",
    "paused_until": "`pause --until` changes it",
    "pause_reason": "`pause --reason` changes it",
    "next_run_at": "`trigger` starts a job now, `replan` has it planned again; SQL may set the column",
}
SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@click.command(cls=ApiCommand)
@click.argument("name", shell_complete=periodic_task_names)
@click.argument("changes", nargs=-1, required=True, metavar="COLUMN=VALUE...")
@click.option("--dry-run", is_flag=True, help="Show what would change; write nothing.")
@as_json
def edit(name: str, changes: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Change the columns of the periodic task NAME that are named, and no others.

    The columns are the options of `add`, with _ for -, and task and schedule: edit nightly 'schedule=0 4 * * *'
    max_run_time=1h. JSON in args, kwargs and options; `column=` or `column=null` sets the default. What is printed is
    the value before and after, and the next run.

    A row that code declares keeps the change until the code changes that very column.

    Exit codes: 0 changed, or nothing differs; 1 refused, or there is no such row.
    """
    from celery_pgbeat.api.exchange import differences
    from celery_pgbeat.declare.definition import record_of
    from celery_pgbeat.declare.update import changes_of

    given = dict(_read_change(change) for change in changes)
    target = Target.current()
    beat, operators = target.beat(), target.operators()
    row = beat.get(name)
    old = record_of(operators.definitions_of([name])[name])
    if dry_run:
        new = {**old, **changes_of(row, given, beat.settings, target.app_timezone)}
    else:
        row = beat.update(name, **given)
        new = record_of(operators.definitions_of([name])[name])
    changed = differences(old, new)
    if as_json:
        print_json({"name": name, "applied": not dry_run, "changes": columns_as_dict(changed)})
    elif changed:
        print_difference(name, "changed", changed)
        _print_rest(row, dry_run)
    else:
        click.echo(f"{name!r} already has these values.")


def _print_rest(row: PeriodicTask, dry_run: bool) -> None:
    if dry_run:
        click.echo("Nothing was written.")
        return
    print_next_run(row)
    if row.managed_by.startswith("code:"):
        click.echo(
            f"{row.managed_by} declares this row: the change stays until the code changes that column.", err=True
        )


def _read_change(change: str) -> tuple[str, Any]:
    """Return the column and the value of COLUMN=VALUE."""
    name, sign, value = change.partition("=")
    if not sign:
        raise click.BadParameter(f"{change!r} is not COLUMN=VALUE", param_hint="COLUMN=VALUE")
    column = DECLARED.get(name)
    if name in ELSEWHERE:
        raise click.BadParameter(f"{name} is not changed by edit: {ELSEWHERE[name]}", param_hint=name)
    if column is None:
        known = [each for each in DECLARED if each not in ("name", "managed_by")]
        raise click.BadParameter(f"there is no column {name!r} to change{did_you_mean(name, known)}", param_hint=name)
    return name, None if value in NOTHING else _reader(column)(column.name, value)


def _reader(column: Column) -> Callable[[str, str], Any]:
    if column.type in (list[Any], dict[str, Any]):
        return _read_json
    if column.type == list[str]:
        return lambda name, value: _read_json(name, value) if value.startswith("[") else [value]
    readers: dict[Any, Callable[[str, str], Any]] = {bool: _read_switch, int: _read_number, datetime: _read_instant}
    return readers.get(column.type, lambda _name, value: value)


def _read_json(name: str, value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"the value is not JSON: {error}", param_hint=name) from None


def _read_switch(name: str, value: str) -> bool:
    if value.lower() not in SWITCHES:
        raise click.BadParameter(f"{value!r} is not true or false", param_hint=name)
    return SWITCHES[value.lower()]


def _read_number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a whole number", param_hint=name) from None


def _read_instant(name: str, value: str) -> datetime | None:
    try:
        return read_coming_instant(click.get_current_context(), click.Argument([name]), value)
    except click.BadParameter as error:
        raise click.BadParameter(error.message, param_hint=name) from None
