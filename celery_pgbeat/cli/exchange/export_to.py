"""`export --to`: rows as entries of another scheduler, and on stderr what it cannot have."""

from __future__ import annotations

import codecs
import sys
from collections import Counter

import click

from celery_pgbeat.cli.command_line.failure import Failure
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.values import ended, number, say


def export_to(to: str, managed_by: str | None, like: str | None) -> int:
    """Print the rows for another scheduler; return the exit code."""
    from celery_pgbeat.api.importing import CODE
    from celery_pgbeat.moving.answers import Refused
    from celery_pgbeat.moving.back.entry import entry_of
    from celery_pgbeat.moving.back.of_code import names_for_celery
    from celery_pgbeat.moving.registry import way_back
    from celery_pgbeat.settings.app_name import manager_of

    target, back = Target.current(), way_back(to)
    operators = target.operators()
    known = {} if target.app is None else {manager_of(target.app): names_for_celery(target.app)}
    unknown: Counter[str] = Counter()  # rows of code by the app that declares them
    now, taken, refused, of_celery = operators.clock(), [], 0, 0
    for row in operators.all_tasks(managed_by=managed_by, pattern=like):
        name, manager = row["name"], row["managed_by"]
        if manager.startswith(CODE) and manager not in known:
            unknown[manager.removeprefix(CODE)] += 1
            continue
        if name in known.get(manager, ()):
            of_celery += 1
            if not row["enabled"]:
                say(f"{name!r} is paused here, and runs there: beat_schedule in the code declares it.", err=True)
            continue
        entry = entry_of(row, now, target.timezone)
        answer = entry if isinstance(entry, Refused) else back.refusal(entry, target.timezone) or entry
        if isinstance(answer, Refused):
            refused += 1
            say(f"{name!r} is left out: {ended(answer.reason)}", err=True)
            continue
        taken.append(answer)
        if answer.lost:
            say(f"{name!r} loses what has no counterpart there: {', '.join(answer.lost)}.", err=True)
    for line in back.lines(taken):
        _check_letters(line)
        click.echo(line)
    if of_celery:
        say(f"Left out: {number(of_celery, 'row')} of code, which beat_schedule there declares too.", err=True)
    for app, count in unknown.items():
        say(
            f"Left out: {number(count, 'row')} of the code of the app {app!r}. Only that app knows which of them "
            f"Celery's own schedulers get from the code: name it with -A.",
            err=True,
        )
    return int(refused > 0 or bool(unknown))


def _check_letters(line: str) -> None:
    """Fail if stdout cannot write a line as it is: escaped, it would name another periodic task there."""
    encoding = sys.stdout.encoding
    try:
        line.encode("utf-8" if codecs.lookup(encoding).name == "ascii" else encoding)  # as click does
    except UnicodeEncodeError as error:
        raise Failure(
            f"stdout's encoding {encoding} has no {error.object[error.start : error.end]!r}: set PYTHONIOENCODING=utf-8"
        ) from None
