"""`trigger`: start jobs now."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand, Failure
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.chosen import choose, one_name, spoken, with_names
from celery_pgbeat.cli.options.confirmation import with_yes
from celery_pgbeat.cli.options.json_values import json_value
from celery_pgbeat.cli.options.waiting import report, with_wait
from celery_pgbeat.cli.output.no_beat import warn_without_beat
from celery_pgbeat.cli.output.values import as_json, print_result, text
from celery_pgbeat.columns import PUBLIC


def _read_json(_ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Read arguments; errors do not quote them, because the row may be sensitive."""
    return None if value is None else json_value(PUBLIC[str(param.name)], value, param.opts[0])


@click.command(cls=ApiCommand)
@with_names
@click.option("--force", is_flag=True, help="Start a job even while another of the row is not final.")
@click.option(
    "--args", metavar="JSON array", callback=_read_json, help="Positional arguments of this job, not those of the row."
)
@click.option(
    "--kwargs", metavar="JSON object", callback=_read_json, help="Keyword arguments of this job, not those of the row."
)
@with_wait
@with_yes
@as_json
def trigger(
    names: tuple[str, ...],
    every: bool,
    force: bool,
    args: list[Any] | None,
    kwargs: dict[str, Any] | None,
    wait: bool,
    timeout: timedelta | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Start a job of periodic tasks now, even of a paused one. Their next runs do not change.

    NAME may be a pattern, see "Names and patterns" in docs/shell.md. Of several rows, those with a job that is not
    final are left out and named. --args, --kwargs and --wait are for a single NAME. A beat sends the jobs. If none is
    alive, a line on stderr says so.

    Exit codes: 0 triggered; 1 a row was left out, or a name is unknown, a pattern matches nothing, or the question was
    not answered with yes: then nothing was triggered. With --wait: 0 only if the job has succeeded; 1 also if it ended
    in another state, or you pressed Ctrl-C; 3 also if it was not final within --timeout.
    """
    beat = Target.current().beat()
    if (name := one_name(names, every)) is not None:
        job = beat.trigger(name, force, args, kwargs)
        sentence = text(f"Triggered {name!r}: job {job}")
        report(beat, {"periodic_task": name, "job": job}, sentence, wait=wait, timeout=timeout, as_json=as_json)
        return
    if wait or args is not None or kwargs is not None:
        raise click.UsageError("--args, --kwargs and --wait need a single NAME, not a pattern and not several")
    chosen = choose(names, every)
    chosen.confirm("Trigger", yes)
    jobs = beat.trigger_many(chosen.names, force, missing_ok=True)
    made = [{"periodic_task": name, "job": job} for name, job in jobs.items() if job is not None]
    busy = [name for name, job in jobs.items() if job is None]
    triggered = spoken([str(one["periodic_task"]) for one in made])
    print_result({"triggered": made, "not_triggered": busy}, f"Triggered {triggered}.", as_json)
    warn_without_beat(beat)
    if busy:
        raise Failure(f"Not triggered, because a job is not final: {spoken(busy)}; --force starts one beside it")
