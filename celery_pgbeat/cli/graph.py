"""`graph`: which periodic tasks run after which."""

from __future__ import annotations

from shlex import quote

import click

from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.graph_dot import dot_of
from celery_pgbeat.cli.output.graph_lines import lines_of, runs_in_words
from celery_pgbeat.cli.output.states import OF_TASKS
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.terminal import EMPTY
from celery_pgbeat.cli.output.times import localised, with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, row_as_dict, say, text

COLUMNS = (
    Column("NAME", "name", lambda line: line.branch + text(line.node.name), whole=True),
    Column(
        "STATE",
        "state",
        lambda line: EMPTY if line.is_reference else localised(line.node.state),
        least=12,
        colours=OF_TASKS,
    ),
    Column(
        "RUNS",
        "after",
        lambda line: "see below" if line.is_reference else text(runs_in_words(line.node)),
        least=20,
    ),
)


@click.command(cls=ApiCommand)
@click.argument("name", required=False, shell_complete=periodic_task_names)
@click.option("--dot", "as_dot", is_flag=True, help="Print DOT instead of text, which Graphviz draws.")
@with_utc
@as_json
def graph(name: str | None, as_dot: bool, as_json: bool) -> None:
    """Show which periodic tasks run after which; with NAME, what comes before and after this one. Exit code 0.

    A task is below the last of those that its column after names. Under the others a line says `see below`.
    RUNS is its schedule, and what it runs after; `(finish)` is its after_condition, unless that is `success`.

    In DOT an edge is solid for `success` and dashed for `finish`: `celery-pgbeat graph --dot | dot -Tsvg > graph.svg`.
    """
    if as_dot and as_json:
        raise click.UsageError("Give --dot or --json, not both.")
    target = Target.current()
    found = target.beat().graph(name)
    if as_json:
        print_json([row_as_dict(node) for node in found.nodes])
    elif as_dot:
        click.echo(dot_of(found))
    elif found.edges:
        print_table(COLUMNS, lines_of(found))
    else:
        say(target.as_typed(_how_to_make_one(name)))


def _how_to_make_one(name: str | None) -> str:
    """Return a sentence: there is no dependency, and how to make one."""
    if name is None:
        return "No periodic task runs after another: `celery-pgbeat edit NAME after=OTHER` has NAME run after OTHER."
    command = f"celery-pgbeat edit {quote(name)} after=OTHER"
    return f"{name!r} runs after no other periodic task, and none after it: `{command}` has it run after OTHER."
