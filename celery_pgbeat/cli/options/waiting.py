"""`--wait`: follow one job until it is final, or waits for a decision."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args
from uuid import UUID

import click

from celery_pgbeat.choices import FinalState
from celery_pgbeat.cli.command_line.failure import UNHEALTHY, Failure
from celery_pgbeat.cli.output.job_columns import node_in_short
from celery_pgbeat.cli.output.no_beat import warn_without_beat
from celery_pgbeat.cli.output.values import print_json

if TYPE_CHECKING:
    from celery_pgbeat.api import Job, PgBeat

OVER = (*get_args(FinalState), "error")  # a failed job that waits for a decision does not go on by itself
LOOK_EVERY = 0.5  # seconds between two reads of the job


class NotOver(Failure):
    """The job was not final in time; exit code 3."""

    exit_code = UNHEALTHY


def with_wait(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options --wait and --timeout."""
    timeout = click.option(
        "--timeout",
        metavar="DURATION",
        callback=_read_timeout,
        help="Stop waiting after this, such as 5m; the job goes on.  [default: never]",
    )
    wait = click.option(
        "--wait", is_flag=True, is_eager=True, help="Show the states of the job, and wait until it is final."
    )
    return wait(timeout(command))


def _read_timeout(ctx: click.Context, _param: click.Parameter, value: str | None) -> timedelta | None:
    if value is None:
        return None
    if not ctx.params["wait"]:
        raise click.UsageError("--timeout needs --wait", ctx)
    from celery_pgbeat.declare.duration import read_duration
    from celery_pgbeat.errors import InvalidPeriodicTask

    try:
        return read_duration("--timeout", value)
    except InvalidPeriodicTask as error:
        raise click.BadParameter(str(error)) from None


def report(
    beat: PgBeat,
    answer: dict[str, Any],
    sentence: str,
    *,
    wait: bool,
    timeout: timedelta | None,
    as_json: bool,
) -> None:
    """Print that a job was made; if wanted, wait for its end and print that too.

    Raises:
        Failure: the job has not succeeded.
    """
    if not as_json:
        click.echo(sentence)
    elif not wait:
        print_json(answer)
    warn_without_beat(beat)
    if not wait:
        return
    from celery_pgbeat.schedules.durations import spoken

    job = wait_for_end(beat, answer["job"], timeout, (lambda _: None) if as_json else _print_state)
    if as_json:
        print_json({**answer, "state": job.state, "reason": job.reason, "error": job.error})
    if job.state not in OVER and timeout is not None:
        raise NotOver(f"Job {job.id} is still {job.state} after {spoken(timeout)}; it goes on")
    if job.state != "succeeded":
        why = ": ".join(part for part in (job.state, job.reason, job.error) if part)
        raise Failure(f"Job {job.id} has not succeeded, it is {why}")


def wait_for_end(beat: PgBeat, id: UUID, timeout: timedelta | None, changed: Callable[[Job], None]) -> Job:
    """Read a job until it is over or the time is, and return it; call `changed` with each new state."""
    until = None if timeout is None else time.monotonic() + timeout.total_seconds()
    state = None
    try:
        while True:
            job = beat.job(id)
            if job.state != state:
                state = job.state
                changed(job)
            if state in OVER or (until is not None and time.monotonic() >= until):
                return job
            time.sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        raise Failure(f"Stopped waiting; job {id} goes on") from None


def _print_state(job: Job) -> None:
    of = f" on {node_in_short(job.worker)}" if job.state == "running" and job.worker else ""
    click.echo(f"{job.state}{of}")
