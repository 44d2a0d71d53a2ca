"""`export --to`: rows as entries of another scheduler, and on stderr what it cannot have."""

from __future__ import annotations

import click

from celery_pgbeat.cli.output import ended, number, say
from celery_pgbeat.cli.target import Target


def export_to(to: str, managed_by: str | None, like: str | None) -> int:
    """Print the rows for another scheduler; return the exit code."""
    from celery_pgbeat.api.importing import CODE
    from celery_pgbeat.moving.answers import Refused
    from celery_pgbeat.moving.back.entry import entry_of
    from celery_pgbeat.moving.registry import way_back

    target, back = Target.current(), way_back(to)
    operators = target.operators()
    now, taken, refused, of_code = operators.clock(), [], 0, 0
    for row in operators.all_tasks(managed_by=managed_by, pattern=like):
        if row["managed_by"].startswith(CODE):
            of_code += 1
            continue
        entry = entry_of(row, now, target.timezone)
        answer = entry if isinstance(entry, Refused) else back.refusal(entry, target.timezone) or entry
        if isinstance(answer, Refused):
            refused += 1
            say(f"{answer.name!r} is left out: {ended(answer.reason)}", err=True)
            continue
        taken.append(answer)
        if answer.lost:
            say(f"{answer.name!r} loses what has no counterpart there: {', '.join(answer.lost)}.", err=True)
    for line in back.lines(taken):
        click.echo(line)
    if of_code:
        say(f"Left out: {number(of_code, 'row')} of code, which declares them there too.", err=True)
    return int(refused > 0)
