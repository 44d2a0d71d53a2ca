"""`validate`: what the text of a schedule means. Needs no app and no database."""

from __future__ import annotations

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import click

from celery_pgbeat.cli.command_line.completion import zone_names
from celery_pgbeat.cli.command_line.failure import ApiCommand, Failure, failure_of
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.choices import Choice
from celery_pgbeat.cli.options.instants import read_coming_instant
from celery_pgbeat.cli.output.times import in_utc
from celery_pgbeat.cli.output.values import as_json, print_json
from celery_pgbeat.errors import InvalidSchedule


@click.command(cls=ApiCommand)
@click.argument("text")
@click.option(
    "--timezone",
    "zone",
    metavar="ZONE",
    help="The zone of the schedule; default the app's, without an app UTC.",
    shell_complete=zone_names,
)
@click.option("--name", metavar="NAME", default="", help="The periodic task's name, from which an H in cron is hashed.")
@click.option(
    "--dst",
    type=Choice(("default", "skip", "once", "all")),
    default="default",
    show_default=True,
    help="What it does when the clocks change.",
)
@click.option(
    "--after",
    metavar="INSTANT",
    callback=read_coming_instant,
    help="Show occurrences after this instant, such as 2026-12-24, tomorrow or 2d (from now on); without an offset "
    "in ZONE. Default now.",
)
@click.option(
    "--count", type=click.IntRange(min=1), default=10, show_default=True, help="How many occurrences to show."
)
@click.option(
    "--window",
    is_flag=True,
    help="TEXT is a blackout window, such as cron: 0 0 * * sat P2D. --name and --dst do not apply.",
)
@as_json
def validate(
    text: str, zone: str | None, name: str, dst: str, after: datetime | None, count: int, window: bool, as_json: bool
) -> None:
    """Show what the text of a schedule means and when it occurs next; exit code 1 if it is not a schedule.

    For a cron text it also shows the first instant at which croniter, the library of Airflow and others, would differ.
    """
    from celery_pgbeat.cli.output.outlook import Outlook, WindowsOutlook
    from celery_pgbeat.schedules import parse, parse_windows
    from celery_pgbeat.schedules.cron.croniter_comparison import compare_with_croniter
    from celery_pgbeat.schedules.wallclock.instants import as_utc
    from celery_pgbeat.schedules.wallclock.zones import zone_named

    zone = zone_named(zone or Target.current().timezone).name
    if after is None:
        begin = datetime.now(timezone.utc).replace(microsecond=0)
    else:
        begin = as_utc(after if after.tzinfo else after.replace(tzinfo=ZoneInfo(zone)))
    outlook: Outlook | WindowsOutlook
    try:
        if window:
            outlook = WindowsOutlook.of(parse_windows(text, zone), zone, begin, count)
        else:
            grid = "now" if after is None else f"at {in_utc(begin)}"
            schedule = parse(text, zone, name=name, dst=dst, anchor=begin)
            difference = compare_with_croniter(text, zone, begin, name=name, dst=dst)
            outlook = Outlook.of(schedule, grid, begin, count, difference)
    except InvalidSchedule as refusal:
        raise _with_hint(refusal, text, zone) from refusal
    if as_json:
        print_json(outlook.as_dict())
    else:
        outlook.print()


def _with_hint(refusal: InvalidSchedule, text: str, zone: str) -> Failure:
    """Return the refusal, with a hint if the text is a blackout window, or would be one with another duration."""
    from celery_pgbeat.schedules import parse_windows

    failure = failure_of(refusal)
    try:
        parse_windows(text, zone)
    except InvalidSchedule as as_window:
        if as_window.field != "duration" or as_window.reason in failure.message:
            return failure
        return Failure(f"{failure.message}\nIf it is a blackout window: {as_window.reason}, and add --window.")
    return Failure(f"{failure.message}\nIt is a valid blackout window: add --window.")
