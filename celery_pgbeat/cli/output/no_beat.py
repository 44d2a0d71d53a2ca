"""What commands say if no beat is alive: a line on stderr where a beat has to do their work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_pgbeat.cli.command_line.failure import said_by_postgres
from celery_pgbeat.cli.output.times import localised
from celery_pgbeat.cli.output.warning import warn
from celery_pgbeat.errors import PgBeatError

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat

START = "Nothing is sent until one starts: `celery -A app beat`"


def warn_without_beat(beat: PgBeat) -> None:
    """Print the line if no beat is alive; the command has done its part, and succeeds."""
    try:
        (seen,) = beat.database.run("no_beat")
    except Exception as error:
        if isinstance(error, PgBeatError) or said_by_postgres(error) is not None:
            return  # this user may not read it, or the database has gone away: the command itself has succeeded
        raise
    if seen.no_beat is not None:
        warn(without_beat(seen.no_beat))


def without_beat(no_beat: str) -> str:
    """Return Postgres' sentence that no beat is alive as all commands say it."""
    return localised(f"{no_beat[0].upper()}{no_beat[1:]}. {START}")
