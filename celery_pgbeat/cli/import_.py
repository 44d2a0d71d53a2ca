"""`import`: write the definitions of a file, after showing what they change."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TextIO

import click

from celery_pgbeat.cli.confirmation import confirm, with_yes
from celery_pgbeat.cli.differences import columns_as_dict, print_difference
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.known_tasks import tasks_of, warn_of_unknown
from celery_pgbeat.cli.output import as_json, number, print_json
from celery_pgbeat.cli.progress import Progress
from celery_pgbeat.cli.target import Target

if TYPE_CHECKING:
    from celery_pgbeat.api.importing import Difference, Importer

KINDS = ("added", "changed", "removed")


@click.command("import", cls=ApiCommand)
@click.argument("file", type=click.File(encoding="utf-8-sig", errors="surrogateescape"))
@click.option("--dry-run", is_flag=True, help="Show what differs; write nothing.")
@click.option("--managed-by", metavar="OWNER", help="Only this owner's lines and rows; lines without an owner get it.")
@click.option("--take-over", is_flag=True, help="Change rows of other owners too; they become the line's owner's.")
@click.option("--prune", is_flag=True, help="Remove the rows that are not in FILE, of each owner in it.")
@with_yes
@as_json
def import_(
    file: TextIO, dry_run: bool, managed_by: str | None, take_over: bool, prune: bool, yes: bool, as_json: bool
) -> None:
    """Write the definitions of FILE (- for stdin) into the tables. FILE is as `export` prints it.

    The command first shows what differs, column by column: + new, ~ changed, - removed. Then it writes all of it in one
    transaction, or nothing. Pauses, next runs and jobs stay. A line without a timezone keeps that of the row. A line
    without managed_by is managed by api. Rows that code declares are left out: the beats of that app write them.

    Exit codes: 0 done, or nothing to do; 1 a line is wrong, or a row has another owner, and nothing was written.
    """
    from celery_pgbeat.api.importing import Importer

    target = Target.current()
    with Importer(
        target.operators(), target.beat().settings, target.timezone, managed_by, take_over=take_over, prune=prune
    ) as importer:
        counts, found = _compare(importer, file, target.app, as_json)
        summary = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS) + f", {importer.equal} equal"
        applied = bool(counts) and not dry_run
        if applied:
            confirm(f"{summary}. Write this?", yes)
            progress = Progress("rows written")
            importer.apply(progress)
            progress.clear()
    if as_json:
        print_json(
            {
                "applied": applied,
                "equal": importer.equal,
                "left_out": importer.left_out,
                "declared_by_code": importer.declared_by_code,
                "differences": found,
            }
        )
        return
    if importer.left_out:
        click.echo(f"Left out: {number(importer.left_out, 'line')} that {managed_by!r} does not own.", err=True)
    if importer.declared_by_code:
        lines = number(importer.declared_by_code, "line")
        click.echo(f"Left out: {lines} of rows that code declares; the beats of its app write them.", err=True)
    click.echo(f"{summary}{'' if applied or not counts else '; nothing was written'}.")


def _compare(importer: Importer, file: TextIO, app: Any, as_json: bool) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Count the differences by kind, and print each (for JSON, collect them); warn of tasks that the app lacks."""
    counts: Counter[str] = Counter()
    kept: list[dict[str, Any]] = []
    tasks: set[str] = set()
    progress = Progress("lines read")
    for difference in importer.compare(file, progress):
        counts[difference.kind] += 1
        tasks |= {
            new for column, (_, new) in difference.columns.items() if column == "task" and difference.kind != "removed"
        }
        if as_json:
            kept.append(_as_dict(difference))
        else:
            progress.clear()
            print_difference(_name(difference), difference.kind, difference.columns)
    progress.clear()
    warn_of_unknown(tasks, tasks_of(app) if tasks else ())
    return counts, kept


def _as_dict(difference: Difference) -> dict[str, Any]:
    return {
        "what": difference.what,
        "name": difference.name,
        "kind": difference.kind,
        "columns": columns_as_dict(difference.columns),
    }


def _name(difference: Difference) -> str:
    from celery_pgbeat.api.shared_lines import COLUMNS

    return f"{difference.what} {difference.name}" if difference.what in COLUMNS else difference.name
