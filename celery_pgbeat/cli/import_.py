"""`import`: write the definitions of a file, or of another scheduler, after showing what they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.exchange.differences import columns_as_dict, print_difference
from celery_pgbeat.cli.exchange.due_together import OF_TIMES, warn_of_due_together
from celery_pgbeat.cli.options.confirmation import confirm, with_yes
from celery_pgbeat.cli.output.known_tasks import tasks_of, warn_of_unknown
from celery_pgbeat.cli.output.progress import Progress
from celery_pgbeat.cli.output.values import as_json, number, print_json
from celery_pgbeat.columns import PUBLIC
from celery_pgbeat.moving.places import PLACES

if TYPE_CHECKING:
    from celery_pgbeat.api.importing import Difference, Importer

KINDS = ("added", "changed", "removed")


@click.command("import", cls=ApiCommand)
@click.argument("source", metavar="FILE|SOURCE", required=False)
@click.option("--dry-run", is_flag=True, help="Show what differs; write nothing. The default with --from.")
@click.option("--managed-by", metavar="MANAGER", help="Only lines and rows of this manager; lines without one get it.")
@click.option("--take-over", is_flag=True, help="Change rows of other managers too; each gets the manager of its line.")
@click.option("--prune", is_flag=True, help="Remove the rows that are not in FILE, of each manager in it.")
@click.option("--from", "kind", type=click.Choice(list(PLACES)), help="Import from this scheduler; see below.")
@click.option("--apply", is_flag=True, help="With --from: write it.")
@click.option("--cut-over", is_flag=True, help="With --from: switch the entries off there, in the same transaction.")
@click.option(
    "--make-up",
    is_flag=True,
    help="With --from: new rows make up what was due since their last run there; stop the old beat first.",
)
@click.option(
    "--overlap",
    type=click.Choice(list(PUBLIC["overlap"].choices)),
    default="allow",
    show_default=True,
    help="With --from: of the rows that have no such rule there.",
)
@click.option("--task", metavar="TASK", help="With --from: the Celery task that runs commands; it gets them.")
@click.option("--key-prefix", metavar="TEXT", help="With --from redbeat: of its keys; default: the app's, or redbeat:")
@click.option("--trust-pickle", is_flag=True, help="With --from: load pickles, which runs whatever code they hold.")
@with_yes
@as_json
def import_(
    source: str | None,
    dry_run: bool,
    managed_by: str | None,
    take_over: bool,
    prune: bool,
    kind: str | None,
    apply: bool,
    cut_over: bool,
    make_up: bool,
    overlap: str,
    task: str | None,
    key_prefix: str | None,
    trust_pickle: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Write the definitions of FILE (- for stdin) into the tables. FILE is as `export` prints it.

    The command first shows what differs, column by column: + new, ~ changed, - removed. Then it writes all of it in one
    transaction, or nothing. Pauses, next runs and jobs stay. A line without a timezone keeps that of the row. A line
    without managed_by is managed by api. Rows that code declares are left out: the beats of that app write them.

    With --from the definitions come from another scheduler, whose entries are at SOURCE. The command shows what becomes
    of each: taken, changed in meaning, or refused with the reason. Only --apply writes. docs/moving.md says what SOURCE
    is for each scheduler, and what differs.

    Exit codes: 0 done, or nothing to do; 1 a line is wrong, or a row has another manager, and nothing was written. With
    --from a refused entry is no error; 1 means that SOURCE cannot be read.
    """
    if kind is not None:
        if dry_run and apply:
            raise click.UsageError("--dry-run and --apply contradict each other.")
        if prune:
            raise click.UsageError("--prune is for FILE: rows that are not at SOURCE stay.")
        _move_in(
            kind,
            source,
            {"task": task, "key_prefix": key_prefix, "trust_pickle": trust_pickle},
            apply=apply,
            cut_over=cut_over,
            make_up=make_up,
            overlap=overlap,
            managed_by=managed_by,
            take_over=take_over,
            yes=yes,
            as_json=as_json,
        )
        return
    from celery_pgbeat.moving.readers.text_files import lines_of

    if source is None:
        raise click.UsageError("Missing argument 'FILE': a file as `export` prints it, - for stdin, or --from.")
    if apply or cut_over or make_up:
        raise click.UsageError("--apply, --cut-over and --make-up need --from: a FILE is written without them.")
    reads = click.File(encoding="utf-8-sig", errors="surrogateescape")
    file = cast("TextIO", reads.convert(source, None, click.get_current_context()))
    _import_file(lines_of(file, source), dry_run, managed_by, take_over, prune, yes, as_json)


def _move_in(kind: str, source: str | None, given: dict[str, Any], **flags: Any) -> None:
    from celery_pgbeat.cli.exchange.move_in import move_in
    from celery_pgbeat.moving.kind import Request
    from celery_pgbeat.moving.registry import kind_named

    target = Target.current()
    operators = target.operators()
    request = Request(source, operators.database, operators.clock(), target.app, **given)
    move_in(kind_named(kind), request, **flags)


def _import_file(
    lines: Iterator[str], dry_run: bool, managed_by: str | None, take_over: bool, prune: bool, yes: bool, as_json: bool
) -> None:
    from celery_pgbeat.api.importing import Importer

    target = Target.current()
    with Importer(
        target.operators(), target.beat().settings, target.timezone, managed_by, take_over=take_over, prune=prune
    ) as importer:
        counts, found = _compare(importer, lines, target.app, as_json)
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
        left = number(importer.declared_by_code, "line")
        click.echo(f"Left out: {left} of rows that code declares; the beats of its app write them.", err=True)
    click.echo(f"{summary}{'' if applied or not counts else '; nothing was written'}.")


def _compare(
    importer: Importer, lines: Iterator[str], app: Any, as_json: bool
) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Count the differences by kind, and print each (for JSON, collect them); warn of tasks that the app lacks."""
    counts: Counter[str] = Counter()
    kept: list[dict[str, Any]] = []
    tasks: set[str] = set()
    added = []
    progress = Progress("lines read")
    for difference in importer.compare(lines, progress):
        counts[difference.kind] += 1
        if difference.kind == "added":
            added.append({column: difference.columns.get(column) for column in OF_TIMES})
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
    warn_of_due_together(added)
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
