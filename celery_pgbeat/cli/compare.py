"""`compare`: what another scheduler has sent, beside what our beats have sent or would have sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta, timezone
from shlex import quote
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand, Failure
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.instants import read_instant
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.terminal import EMPTY
from celery_pgbeat.cli.output.times import instant, with_utc
from celery_pgbeat.cli.output.values import as_json, number, print_json, text

if TYPE_CHECKING:
    from celery_pgbeat.moving.comparison import Compared
    from celery_pgbeat.moving.readers.sent_lines import Sent
    from celery_pgbeat.postgres.admin_queries import AdminQueries

NOT_YET = "Nothing to compare yet: {} from {} to {}"


@click.command(cls=ApiCommand)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--since",
    metavar="INSTANT",
    callback=read_instant,
    help="Compare from then on; default: when both had begun, the files and our history.",
)
@click.option("--until", metavar="INSTANT", callback=read_instant, help="Compare up to then; default: now.")
@click.option(
    "--within",
    type=click.FloatRange(min=0.001, max=86_400),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How far apart the two may send one run.",
)
@click.option(
    "--unsent",
    is_flag=True,
    help="List instead what no scheduler has sent: recorded in shadow after the other one's last run.",
)
@click.option("--log-timezone", metavar="ZONE", help="The zone of the times in a log; default: that of this machine.")
@with_utc
@as_json
@click.pass_context
def compare(
    ctx: click.Context,
    files: Sequence[str],
    since: datetime | None,
    until: datetime | None,
    within: float,
    unsent: bool,
    log_timezone: str | None,
    as_json: bool,
) -> None:
    """Compare what another scheduler has sent with what our beats have sent, or in shadow would have sent.

    Each FILE has lines of record_sent(), or is the log of the other scheduler's beat at level INFO. Runs of one name
    are matched one to one. Those of an interval may be one period apart, because the two may count it from different
    instants, and if the other scheduler counts it from its last run, it has fewer runs. What is nearer to the ends of
    the time compared is left out. The table lists the names that differ.

    With --unsent, when our beats send: the occurrences that are recorded in shadow and were due after the other
    scheduler had stopped and before our beats began to send, and the commands that send them.

    Exit codes: 0 equal, or nothing unsent; 1 there are differences, nothing to compare, or something unsent; 3 the
    database is out of reach.
    """
    from celery_pgbeat.moving import comparison
    from celery_pgbeat.moving.readers.sent_lines import sent_in

    operators = Target.current().operators()
    theirs = sent_in(files, None if log_timezone is None else _zone(log_timezone))
    width = timedelta(seconds=within)
    if unsent:
        ctx.exit(_unsent(operators, theirs, (since, until), width, as_json))
    until = until or operators.clock()
    begin = since or theirs.since or until
    ours = defaultdict(list)
    for row in operators.sent_or_shadowed(begin, until):
        ours[row["periodic_task"]].append(row["scheduled_for"])
    if since is None and ours:
        begin = max(begin, min(instants[0] for instants in ours.values()))
    for what, found in (
        ("the other scheduler sent nothing", theirs.instants),
        ("our beats sent nothing, and recorded nothing in shadow,", ours),
    ):
        if not any(begin <= one <= until for instants in found.values() for one in instants):
            raise Failure(NOT_YET.format(what, instant(begin), instant(until)))
    periods = _periods({*theirs.instants, *ours}, operators)
    compared = list(comparison.compare(theirs.instants, ours, periods, width, begin, until))
    if as_json:
        print_json(_as_dict(compared, begin, until))
    else:
        _print(compared, begin, until)
    ctx.exit(1 if any(one.differs for one in compared) else 0)


def _unsent(
    operators: AdminQueries,
    theirs: Sent,
    ends: tuple[datetime | None, datetime | None],
    within: timedelta,
    as_json: bool,
) -> int:
    """List what no scheduler has sent, and the commands that send it; return the exit code."""
    from celery_pgbeat.moving.comparison import unsent

    last = max((instants[-1] for instants in theirs.instants.values()), default=None)
    since, until = ends
    begin = since or (None if last is None else last - within)
    if begin is None:
        raise Failure("The other scheduler sent nothing that is known: from when on did it send nothing? Give --since")
    shadowed = defaultdict(list)
    for row in operators.unsent_in_shadow(begin):
        if until is None or row["scheduled_for"] <= until:
            shadowed[row["periodic_task"]].append(row["scheduled_for"])
    found = unsent(theirs.instants, shadowed, _periods(shadowed, operators), within)
    if as_json:
        rows = [{"name": name, "scheduled_for": instants} for name, instants in found.items()]
        print_json({"since": begin, "unsent": rows})
        return 1 if found else 0
    if found:
        print_table(UNSENT, list(found.items()))
        click.echo("To send them:")
    for name, instants in found.items():
        command = f"`celery-pgbeat backfill {quote(name)} {_exactly(instants[0])} {_exactly(instants[-1])}`"
        click.echo(Target.current().as_typed(command).strip("`"))
    total = sum(map(len, found.values()))
    click.echo(f"Since {instant(begin)}: {number(total, 'run')} that no scheduler has sent.")
    return 1 if found else 0


def _exactly(value: datetime) -> str:
    return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def _print(compared: Sequence[Compared], since: datetime, until: datetime) -> None:
    different = [one for one in compared if one.differs]
    if different:
        print_table(COLUMNS, different)
    both = sum(one.both for one in compared)
    theirs, ours = (sum(len(getattr(one, side)) for one in compared) for side in ("only_theirs", "only_ours"))
    click.echo(
        f"From {instant(since)} to {instant(until)}: {number(both, 'run')} by both, {theirs:,} only by the other "
        f"scheduler, {ours:,} only by ours."
    )
    if drifted := sum(one.drifted for one in compared):
        names = ", ".join(text(one.name) for one in compared if one.drifted)
        click.echo(
            f"Ours have {number(drifted, 'run')} more of intervals that drift there, because they are counted from the "
            f"last run: {names}."
        )
    if left := sum(one.is_open for one in compared):
        click.echo(f"{number(left, 'name')} ran too seldom in this time to be compared.", err=True)


def _as_dict(compared: Sequence[Compared], since: datetime, until: datetime) -> dict[str, Any]:
    return {
        "since": since,
        "until": until,
        "equal": not any(one.differs for one in compared),
        "rows": [
            {
                "name": one.name,
                "both": one.both,
                "only_theirs": list(one.only_theirs),
                "only_ours": list(one.only_ours),
                "drifted": one.drifted,
                "compared": not one.is_open,
            }
            for one in compared
        ],
    }


def _periods(names: Collection[str], operators: AdminQueries) -> dict[str, timedelta]:
    """Return the periods of the rows that have an interval."""
    from celery_pgbeat.errors import InvalidSchedule
    from celery_pgbeat.schedules import parse, shortest_gap

    found: dict[str, timedelta] = {}
    for name, row in operators.definitions_of(names).items():
        try:
            schedule = parse(row["schedule"], row["timezone"] or "UTC", name=name, anchor=row["anchor"])
        except (InvalidSchedule, TypeError):
            continue  # doctor says why
        gap = shortest_gap(schedule, 2) if schedule.kind == "interval" else None
        if gap is not None:
            found[name] = gap
    return found


def _zone(name: str) -> ZoneInfo:
    from celery_pgbeat.errors import InvalidSchedule
    from celery_pgbeat.schedules.wallclock.zones import zone_named

    try:
        zone_named(name)
    except InvalidSchedule as error:
        raise click.UsageError(f"--log-timezone: {error}") from None
    return ZoneInfo(name)


def _first(one: Compared) -> str:
    return instant(min([*one.only_theirs, *one.only_ours]))


COLUMNS = (
    Column("NAME", "name", whole=True),
    Column("BOTH", "both", lambda one: f"{one.both:,}"),
    Column("ONLY THEIRS", "only_theirs", lambda one: f"{len(one.only_theirs):,}" if one.only_theirs else EMPTY),
    Column("ONLY OURS", "only_ours", lambda one: f"{len(one.only_ours):,}" if one.only_ours else EMPTY),
    Column("FIRST", "only_theirs", _first),
)
UNSENT = (
    Column("NAME", "name", lambda found: text(found[0]), whole=True),
    Column("UNSENT", "unsent", lambda found: f"{len(found[1]):,}"),
    Column("FIRST", "first", lambda found: instant(found[1][0])),
    Column("LAST", "last", lambda found: instant(found[1][-1])),
)
