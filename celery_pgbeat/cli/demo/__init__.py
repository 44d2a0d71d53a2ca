"""`demo`: three beats share the work while one of them is killed; afterwards everything is counted.

It shows real beats, a real worker and real faults, on private servers. It changes nothing that it has not created, and
leaves nothing behind. The invariant: the numbers at the end are counted from the schedules and from what the tasks
logged, not from the records of the beats.
"""

from __future__ import annotations

from contextlib import suppress

import click
from click.core import ParameterSource

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.confirmation import confirm, with_yes
from celery_pgbeat.cli.output.values import as_json, print_json


@click.command(cls=ApiCommand)
@click.option(
    "--seconds", type=click.IntRange(15, 3600), default=25, show_default=True, help="How long to run and count."
)
@click.option("--keep", is_flag=True, help="Keep everything running after the proof, until Ctrl-C.")
@click.option("--web", is_flag=True, help="Serve the dashboard beside it, for this host, and print its address.")
@click.option("--broker", metavar="URL", envvar="CELERY_BROKER_URL", help="Use this broker instead of a private one.")
@with_yes
@as_json
@click.pass_context
def demo(ctx: click.Context, seconds: int, keep: bool, web: bool, broker: str | None, yes: bool, as_json: bool) -> None:
    """Watch three beats share the work while one of them is killed.

    Starts a private Postgres, a private broker, three beats and a worker. It kills one beat with kill -9, freezes
    another, brings both back, and proves by counting that no tick was lost and none was started twice. Only then the
    exit code is 0. Everything that it started ends with it.

    With --url or PGBEAT_URL it uses that Postgres, in a schema of its own that it drops at the end
    (not if it is killed with kill -9). On a terminal it asks before it uses a server that only the environment names.

    With --web you can watch and pause its tasks in a browser; add --keep to have time for that.
    """
    from celery_pgbeat.cli.demo.endings import signals_end_the_demo
    from celery_pgbeat.cli.demo.processes import Processes
    from celery_pgbeat.cli.demo.scenario import Scenario
    from celery_pgbeat.cli.demo.servers import Servers
    from celery_pgbeat.cli.output.screen import Screen
    from celery_pgbeat.postgres.engine import masked, normalise_url
    from celery_pgbeat.settings.environment import variable
    from celery_pgbeat.texts.redaction import masked_broker

    if web:
        import celery_pgbeat.web  # noqa: F401 - says now if the extra is missing
    target = Target.of(ctx)
    if target.schema:
        raise click.UsageError("demo creates a schema of its own: leave --schema out.")
    url = target.url or variable("PGBEAT_URL")
    named = {} if target.url or url is None else {"PGBEAT_URL": masked(normalise_url(url))}
    if broker is not None and ctx.get_parameter_source("broker") is ParameterSource.ENVIRONMENT:
        named["CELERY_BROKER_URL"] = masked_broker(broker)
    if named:
        places = " and ".join(f"{name} ({shown})" for name, shown in named.items())
        confirm(f"Use {places}? The demo has a schema and a queue of its own, and removes them at the end.", yes)
    screen = Screen(to_stderr=as_json)
    with signals_end_the_demo(), Servers(url, broker) as servers, Processes(servers, web) as processes:
        scenario = Scenario(servers, processes, screen, seconds)
        proof = scenario.run(keep=keep)
        if as_json:
            print_json(proof.as_dict())
        if not proof.holds:
            screen.say(processes.log_tails(), red=True)
        if keep:
            with suppress(SystemExit):  # a signal ends it; the exit code is that of the proof
                scenario.keep_running()
    ctx.exit(0 if proof.holds else 1)
