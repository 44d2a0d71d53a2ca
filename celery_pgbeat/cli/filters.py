"""Options that several commands share."""

from __future__ import annotations

import click


def _read_pattern(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    return None if value is None else value.replace("*", "%")


with_like = click.option(
    "--like",
    metavar="PATTERN",
    callback=_read_pattern,
    help="Only names like this: * and % stand for any text, _ for any character.",
)
with_managed_by = click.option(
    "--managed-by", metavar="OWNER", help="Only rows of this owner, such as sql, api or code:shop."
)
with_task = click.option("--task", metavar="NAME", help="Only those of this Celery task.")
with_queue = click.option("--queue", metavar="NAME", help="Only those for this queue.")
