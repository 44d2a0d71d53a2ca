"""`health`: a probe. It needs no beat process of its own, and the broker only with --broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from celery_pgbeat.cli.command_line.failure import UNHEALTHY, ApiCommand, said_by_postgres
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.choices import Choice
from celery_pgbeat.cli.output.no_beat import without_beat
from celery_pgbeat.cli.output.refused import print_refused
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.values import as_json, print_json
from celery_pgbeat.errors import DatabaseUnavailable, PgBeatError
from celery_pgbeat.process.node import NodeId
from celery_pgbeat.texts.redaction import broker_error

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat

COLOURS = {"ok": "green", "FAILED": "red", "unknown": "yellow"}
CHECKS = ("database", "schema", "beats", "lag")
BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: passed, failed, or unknown after an earlier failure."""

    name: str
    ok: bool | None
    detail: str

    @property
    def word(self) -> str:
        """The result in a word."""
        return {True: "ok", False: "FAILED", None: "unknown"}[self.ok]


COLUMNS = (
    Column("CHECK", "checks", lambda check: check.name),
    Column("RESULT", "ok", lambda check: check.word, colours=COLOURS),
    Column("DETAIL", "detail", lambda check: check.detail, beneath=True),
)


@click.command(cls=ApiCommand)
@click.option(
    "--max-lag",
    type=click.FloatRange(min=0),
    default=0,
    metavar="SECONDS",
    help="How late something may be. Less than what counts as on time, 2 x (lease + poll), changes nothing.",
)
@click.option("--here", is_flag=True, help="Count only beats of this host, for a probe of one pod.")
@click.option("--broker", "with_broker", is_flag=True, help="Check the broker too; needs an app (-A).")
@click.option(
    "--only",
    multiple=True,
    type=Choice([*CHECKS, BROKER]),
    metavar="CHECK",
    help="Let only this check decide the exit code; may be given several times.",
)
@as_json
@click.pass_context
def health(
    ctx: click.Context, max_lag: float, here: bool, with_broker: bool, only: tuple[str, ...], as_json: bool
) -> None:
    """Check the database and its schema, that a beat is alive, and that nothing is overdue; exit code 3 if not.

    What code declares and beats refuse is shown too, and decides nothing: a restart would not fix it.

    What the command `overdue` lists counts, except what waits for a person. Jobs that wait for a worker count if none
    is alive. After a failed check the later checks are unknown, which does not count as failed: `--only beats --here`
    is a liveness probe that passes during an outage of the database.
    """
    target = Target.current()
    beat = target.beat()
    checks = examine(beat, timedelta(seconds=max_lag), NodeId.mine().hostname if here else None)
    refused = _refused(target) if all(check.ok is not None for check in checks) else []
    if with_broker or BROKER in only:
        checks.append(_of_the_broker(beat, target.app))
    healthy = all(check.ok is not False for check in checks if check.name in (only or (*CHECKS, BROKER)))
    if as_json:
        done = {check.name: _as_dict(check) for check in checks}
        print_json({"healthy": healthy, "checks": done, "refused": refused})
    else:
        print_table(COLUMNS, checks)
        print_refused(refused)
    ctx.exit(0 if healthy else UNHEALTHY)


def examine(beat: PgBeat, allowed_lag: timedelta, hostname: str | None = None) -> list[Check]:
    """Run the checks in order; after a failure the later ones are unknown.

    With `hostname` only the beats of that host count.
    """
    from celery_pgbeat.postgres import migrate
    from celery_pgbeat.postgres.api_queries import translating

    database = beat.database
    done: list[Check] = []
    try:
        with translating(database), database.engine.connect():
            done.append(Check("database", True, database.shown_url))
        with translating(database):
            version = migrate.check(database.engine, database.schema).version
        done.append(Check("schema", True, f"version {version}"))
        done += _of_the_beats(beat, allowed_lag, hostname)
    except Exception as error:
        said = str(error) if isinstance(error, PgBeatError) else said_by_postgres(error)
        if said is None:
            raise
        if isinstance(error, DatabaseUnavailable):
            done = []
        done.append(Check(CHECKS[len(done)], False, Target.current().as_typed(said)))
    return done + [Check(name, None, "") for name in CHECKS[len(done) :]]


def _refused(target: Target) -> list[dict[str, Any]]:
    """Return what code declares and beats refuse; nothing if it cannot be read, which is no reason to restart a pod."""
    try:
        return target.operators().refused_declarations()
    except Exception as error:
        if isinstance(error, PgBeatError) or said_by_postgres(error) is not None:
            return []
        raise


def _of_the_beats(beat: PgBeat, allowed_lag: timedelta, hostname: str | None) -> list[Check]:
    (seen,) = _seen(beat, hostname)
    lag = timedelta(0) if seen.late_since is None else seen.now - seen.late_since
    late = lag > allowed_lag
    overdue = f"overdue by {_seconds(lag)}, see `celery-pgbeat overdue`" if late else "nothing is overdue"
    why = "".join(f"; {reason}" for reason in (seen.broker_problem, seen.no_tracker) if late and reason is not None)
    return [
        Check("beats", seen.beats > 0, Target.current().as_typed(_beats(seen))),
        Check("lag", not late, Target.current().as_typed(overdue) + why),
    ]


def _seen(beat: PgBeat, hostname: str | None) -> Any:
    return beat.database.run("health", hostname=hostname)


def _of_the_broker(beat: PgBeat, app: Any) -> Check:
    """Connect as a beat does, with the same time-outs, and read what beats say: a connection takes no message yet."""
    from celery_pgbeat.beat.send.broker import CAUTION, CONNECT_TIMEOUT

    if app is None:
        raise click.UsageError("The check of the broker needs an app: celery -A app pgbeat health --broker")
    try:
        with app.connection_for_write(connect_timeout=CONNECT_TIMEOUT) as connection:
            caution = CAUTION.get(connection.transport.driver_type, {})
            connection.transport_options = {**caution, **(connection.transport_options or {})}
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=CONNECT_TIMEOUT)
            assert connection.default_channel  # virtual transports connect with the first channel only
            said = _said_of_the_broker(beat)
            return Check(BROKER, said is None, said or connection.as_uri())
    except Exception as error:  # noqa: BLE001  each transport has errors of its own
        return Check(BROKER, False, broker_error(error, app.conf.broker_write_url or ""))


def _said_of_the_broker(beat: PgBeat) -> str | None:
    """Return what a living beat says of its broker; None if that is nothing, or cannot be read."""
    try:
        (seen,) = _seen(beat, None)
    except Exception as error:
        if isinstance(error, PgBeatError) or said_by_postgres(error) is not None:
            return None
        raise
    said: str | None = seen.broker_problem
    return said


def _beats(seen: Any) -> str:
    if seen.no_beat is not None:
        return without_beat(seen.no_beat)
    return f"{seen.beats} alive, the last heartbeat {_seconds(seen.now - seen.last_seen_at)} ago"


def _seconds(duration: timedelta) -> str:
    return f"{max(duration.total_seconds(), 0):.0f} s"


def _as_dict(check: Check) -> dict[str, Any]:
    return {"ok": check.ok, "detail": check.detail}
