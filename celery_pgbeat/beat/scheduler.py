"""The class that `celery beat` loads: Celery's Scheduler contract on the outside, our tick on the inside.

Everything that speaks to Postgres or to the broker runs in one thread of the scheduler's own, the engine room;
Celery's thread only asks for a turn and waits for it. Celery calls `close()` from its signal handler in the middle
of whatever `tick()` is doing: here that is a wait, so nothing is ever entered twice, and the turn under way may
finish its batch before everything is handed back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from celery import beat

from celery_pgbeat.beat.engine_room import EngineRoom
from celery_pgbeat.beat.messages import JobEntry
from celery_pgbeat.errors import PgBeatError
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.settings import Settings

logger = logging.getLogger(__name__)

STOP_WITHIN = 3.0  # seconds that a turn under way gets to end when the beat is stopped; the process ends within 5


class Scheduler(beat.Scheduler):
    """Celery beat on Postgres: `beat_scheduler = "pgbeat"`.

    A lazy instance, as Celery's banner makes one, reads its settings only when asked for `info`, and touches
    neither the database nor the broker.
    """

    # An upper bound of one wait; `inspect ping` tolerates twice this, at least a minute.
    max_interval = 5

    def __init__(self, app: Any, *args: Any, **kwargs: Any) -> None:
        self._room: EngineRoom | None = None
        super().__init__(app, *args, **kwargs)

    def setup_schedule(self) -> None:
        """Read the settings; a wrong one ends the start here, by name. Nothing connects yet.

        Raises:
            InvalidSetting: a setting is wrong or `pgbeat_url` is missing.
            MissingDriver: no Postgres driver is installed.
            MissingExtra: a setting asks for an extra that is not installed.
        """
        settings = Settings.from_mapping(self.app.conf)
        normalise_url(settings.required_url)
        self._room = EngineRoom(self, settings, float(self.max_interval))

    def tick(self, *_args: Any, **_kwargs: Any) -> float:
        """Run one turn and wait for what comes next: a notification, the next run, or the poll.

        The wait is in here because nothing could end Celery's own sleep. So the answer is always 0, "again at
        once", but after a stop.
        """
        room = self._room
        if room is None or room.stopped:
            return float(self.max_interval)
        room.turn()
        return 0.0

    @property
    def schedule(self) -> Mapping[str, Any]:
        """The enabled rows as entries, read when looked at; empty for a lazy instance."""
        return {} if self._room is None else self._room.entries

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **kwargs: Any) -> Any:
        """Send an entry as Celery does, and note on it what went wrong.

        Raising it would have `apply_entry` write a traceback to the log for each occurrence of a row that cannot be
        sent, and tell nobody else.
        """
        if not isinstance(entry, JobEntry):
            return super().apply_async(entry, producer=producer, advance=advance, **kwargs)
        try:
            return super().apply_async(entry, producer=producer, advance=False, **kwargs)
        except Exception as error:  # noqa: BLE001  told by who reads it off the entry
            # Celery wraps what happened; the cause is what tells a broken connection from a refusal.
            entry.error = error.__cause__ or error.__context__ or error
            return None
        except BaseException as error:  # noqa: BLE001  likewise: a task's own sys.exit() must not end the beat's thread
            entry.error = error
            return None

    def close(self) -> None:
        """Hand back every mark and unsent job; safe in a signal handler and as often as anybody likes."""
        if self._room is not None:
            self._room.stop(STOP_WITHIN)

    @property
    def info(self) -> str:
        """What the banner says; without a password, and without an error whatever the settings are."""
        try:
            settings = Settings.from_mapping(self.app.conf)
            url = masked(normalise_url(settings.required_url))
        except PgBeatError as error:
            return f"    . postgres -> {error}"
        return f"    . postgres -> {url}\n    . schema -> {settings.schema}"
