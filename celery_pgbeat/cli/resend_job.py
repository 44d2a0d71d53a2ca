"""`job resend`: have the message of a job sent again that the broker has lost."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.ids import IdBeginning, id_of_job
from celery_pgbeat.cli.no_beat import warn_without_beat
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("resend", cls=ApiCommand)
@click.argument("id", metavar="ID", type=IdBeginning())
@as_json
def resend_job(id: str, as_json: bool) -> None:
    """Have the message of a sent job sent again at once, under the same id, because the broker has lost it.

    If the message is there after all, the guard starts one of the two. If no beat is alive, a line on stderr says so.

    Of the ID the first characters will do, if no other job's id begins with them.

    Exit codes: 0 done; 1 there is no such job, or it is refused.
    """
    job = id_of_job(id)
    beat = Target.current().beat()
    name = beat.resend_job(job)
    answer = {"job": job, "periodic_task": name, "state": "pending"}
    print_result(answer, f"A beat sends a job of {name!r} again: {job}", as_json)
    warn_without_beat(beat)
