"""`import --from`: the report of what becomes of each entry of another scheduler, and writing it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.exchange.differences import columns_as_dict, print_difference
from celery_pgbeat.cli.exchange.due_together import warn_of_due_together
from celery_pgbeat.cli.options.confirmation import confirm
from celery_pgbeat.cli.output.known_tasks import tasks_of, warn_of_unknown
from celery_pgbeat.cli.output.progress import Progress
from celery_pgbeat.cli.output.values import ended, print_json, say, text

if TYPE_CHECKING:
    from celery_pgbeat.moving.kind import Kind, Request
    from celery_pgbeat.moving.move import Move, Row

APPLY_ONLY = "--cut-over switches entries off when they are imported: give --apply too"
MADE_UP = "What was due since an entry's last run there is made up, by catchup, once for a new row."
OTHER_DATABASE = (
    "--cut-over needs entries in tables in the database of pgbeat, which are looked for there if SOURCE is left out. "
    "Otherwise switch them off yourself"
)


def move_in(
    kind: Kind,
    request: Request,
    *,
    apply: bool,
    cut_over: bool,
    make_up: bool,
    overlap: str,
    managed_by: str | None,
    take_over: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Show what becomes of each entry of a source, and with `apply` write it."""
    from celery_pgbeat.moving.kind import OVERDUE
    from celery_pgbeat.moving.move import Move

    if cut_over and not apply:
        raise click.UsageError(APPLY_ONLY)
    if cut_over and (kind.switch_off is None or request.source is not None):
        raise click.UsageError(OTHER_DATABASE)
    target = Target.current()
    with Move(
        kind,
        request,
        target.operators(),
        target.beat().settings,
        target.app_timezone,
        overlap=overlap,
        managed_by=managed_by,
        take_over=take_over,
    ) as move:
        rows = move.compare()
        notes = [*([] if kind.own_overlap else [_of_overlap(overlap)]), *kind.differences]
        if make_up:
            notes = [MADE_UP if note == OVERDUE else note for note in notes]
        summary = _summary(rows)
        if not as_json:
            _print(rows, notes)
            if request.read:
                say(f"Read: {', '.join(request.read)}.")
        tasks = {row.columns["task"][1] for row in rows if "task" in row.columns}
        warn_of_unknown(tasks, tasks_of(target.app) if tasks else ())
        warn_of_due_together(row.columns for row in rows if row.kind == "added")
        if apply:
            _apply(move, summary, yes, cut_over=cut_over, make_up=make_up)
    if as_json:
        print_json(
            {"applied": apply, "read": request.read, "differences": notes, "rows": [_as_dict(row) for row in rows]}
        )
        return
    written = "; written, and what is taken is switched off there." if cut_over else "; written."
    rest = written if apply else "; nothing was written, --apply writes it."
    click.echo(f"{summary}{rest}")


def _apply(move: Move, summary: str, yes: bool, *, cut_over: bool, make_up: bool) -> None:
    confirm(f"{summary}. Write this{', and switch the entries off there' if cut_over else ''}?", yes)
    progress = Progress("rows written")
    move.apply(cut_over=cut_over, make_up=make_up, each=progress)
    progress.clear()


def _print(rows: list[Row], notes: list[str]) -> None:
    from celery_pgbeat.moving.answers import Refused

    for row in rows:
        answer = row.answer
        if isinstance(answer, Refused):
            click.echo(click.style(f"! {text(answer.name)}", fg="red"))
            say(f"refused: {ended(answer.reason)}", indent=4)
            continue
        if row.kind == "changed":
            print_difference(answer.name, row.kind, row.columns)
        else:
            _print_row(answer.name, row)
        for change in answer.changes:
            say(f"changed: {ended(change)}", indent=4)
        if answer.paused and row.kind == "added":
            say("paused, as it is switched off there.", indent=4)
    if rows:
        click.echo("For all rows:")
    for note in notes if rows else ():
        say(f"- {note}", indent=2)


def _print_row(name: str, row: Row) -> None:
    if row.kind == "equal":
        click.echo(f"= {text(name)}")
        return
    shown = [row.columns[column][1] for column in ("task", "schedule", "timezone") if column in row.columns]
    click.echo(click.style(f"+ {text(name)}", fg="green") + f"  {', '.join(map(text, shown))}")


def _summary(rows: list[Row]) -> str:
    from celery_pgbeat.moving.answers import Taken

    counts = Counter(row.kind for row in rows)
    changed = sum(isinstance(row.answer, Taken) and bool(row.answer.changes) for row in rows)
    taken = len(rows) - counts[None]
    return (
        f"{taken} taken ({counts['added']} new, {counts['changed']} to change, {counts['equal']} equal), {changed} of "
        f"them changed in meaning, {counts[None]} refused"
    )


def _of_overlap(overlap: str) -> str:
    if overlap == "allow":
        return (
            "A run is sent also while the last one is not finished (overlap allow), as there; our own default is skip: "
            "--overlap skip."
        )
    return f"While the last run is not finished, overlap is {overlap}; the other scheduler does not look."


def _as_dict(row: Row) -> dict[str, Any]:
    from celery_pgbeat.moving.answers import Refused

    refused = isinstance(row.answer, Refused)
    return {
        "name": row.answer.name,
        "taken": not refused,
        "reason": row.answer.reason if isinstance(row.answer, Refused) else None,
        "changes": [] if isinstance(row.answer, Refused) else list(row.answer.changes),
        "kind": row.kind,
        "columns": columns_as_dict(row.columns),
    }
