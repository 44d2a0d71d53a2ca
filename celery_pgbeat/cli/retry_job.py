"""`job retry`: run a job that has not succeeded again."""

from __future__ import annotations

from datetime import timedelta

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.ids import IdBeginning, id_of_job
from celery_pgbeat.cli.options.waiting import report, with_wait
from celery_pgbeat.cli.output.values import as_json, row_as_dict, text

ARGUMENTS = {"job": "the arguments of that job", "periodic task": "the arguments that the periodic task has now"}


@click.command("retry", cls=ApiCommand)
@click.argument("id", metavar="ID", type=IdBeginning())
@click.option("--force", is_flag=True, help="Start it even while another job of its periodic task is not final.")
@with_wait
@as_json
def retry_job(id: str, force: bool, wait: bool, timeout: timedelta | None, as_json: bool) -> None:
    """Run a job that has failed again.

    A job in state error (on_error = 'ask') runs again itself, under its own id. A job that ended without success is
    submitted again, as a new manual job of its periodic task. That one has the arguments of the job where the history
    has them: of a manual job, and of a lost one that never started. Otherwise it has those that the periodic task has
    now; the output says which.

    Of the ID the first characters will do, if no other job's id begins with them.

    Exit codes: 0 submitted; 1 there is no such job, or it is refused: it is neither final nor in state error, has
    succeeded, or another job is in the way. With --wait: 0 only if the job that runs now has succeeded; 1 also if it
    ended in another state, or you pressed Ctrl-C; 3 also if it was not final within --timeout.
    """
    beat = Target.current().beat()
    made = beat.retry_job(id_of_job(id), force)
    sentence = text(f"Retried {made.periodic_task!r}: job {made.job}, with {ARGUMENTS[made.arguments_of]}")
    report(beat, row_as_dict(made), sentence, wait=wait, timeout=timeout, as_json=as_json)
