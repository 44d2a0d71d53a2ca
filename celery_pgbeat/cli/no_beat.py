"""A line on stderr if no beat is alive, for commands whose work a beat has to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_pgbeat.cli.failure import said_by_postgres
from celery_pgbeat.cli.warning import warn
from celery_pgbeat.errors import PgBeatError

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat

NO_BEAT = "No beat is alive: nothing is sent until one starts. Start it: `celery -A app beat`"


def warn_without_beat(beat: PgBeat) -> None:
    """Print the line if no beat has sent a heartbeat lately; the command has done its part, and succeeds."""
    try:
        (seen,) = beat.database.run("health", hostname=None)
    except Exception as error:
        if isinstance(error, PgBeatError) or said_by_postgres(error) is not None:
            return  # this user may not read it, or the database has gone away: the command itself has succeeded
        raise
    if not seen.beats:
        warn(NO_BEAT)
