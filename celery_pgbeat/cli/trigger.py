"""`trigger`: start jobs now."""

from __future__ import annotations

import click

from celery_pgbeat.cli.chosen import choose, one_name, spoken, with_names
from celery_pgbeat.cli.confirmation import with_yes
from celery_pgbeat.cli.failure import ApiCommand, Failure
from celery_pgbeat.cli.no_beat import warn_without_beat
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command(cls=ApiCommand)
@with_names
@click.option("--force", is_flag=True, help="Start a job even while another of the row is not final.")
@with_yes
@as_json
def trigger(names: tuple[str, ...], every: bool, force: bool, yes: bool, as_json: bool) -> None:
    """Start a job of periodic tasks now, even of a paused one. Their next runs do not change.

    NAME may be a pattern, see "Names and patterns" in docs/shell.md. Of several rows, those with a job that is not
    final are left out and named. A beat sends the jobs. If none is alive, a line on stderr says so.

    Exit codes: 0 triggered; 1 a row was left out, or a name is unknown, a pattern matches nothing, or the question was
    not answered with yes: then nothing was triggered.
    """
    beat = Target.current().beat()
    if (name := one_name(names, every)) is not None:
        job = beat.trigger(name, force)
        print_result({"periodic_task": name, "job": job}, f"Triggered {name!r}: job {job}", as_json)
        warn_without_beat(beat)
        return
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
