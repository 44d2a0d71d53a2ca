"""The class that `celery beat` loads: it has the interface of Celery's Scheduler, and our own loop does the work.

A thread of the scheduler's own (`loop.py`) talks to Postgres. Celery's thread only asks for a cycle and waits for it.
Celery calls `close()` from its signal handler in the middle of whatever `tick()` is doing. Here `tick()` only waits, so
no code runs twice at once, and the cycle under way may finish its batch before everything is given back. A signal
handler waits for nothing: in an app that gevent or eventlet has patched it runs in their hub, which nothing may block.
So `close()` only asks for the stop then, and `tick()`, which the handler ends, waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from celery import beat

from celery_pgbeat.beat.entries import Entries, entry_of_given
from celery_pgbeat.beat.loop import BeatLoop
from celery_pgbeat.beat.send.messages import JobEntry
from celery_pgbeat.beat.wiring import Wiring
from celery_pgbeat.errors import InvalidSetting, MissingDriver, MissingExtra, PgBeatError, SchedulerNotSetUp
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.settings import Settings

logger = logging.getLogger(__name__)

STOP_WITHIN = 3.0  # seconds that a cycle under way gets to end when the beat is stopped; the process ends within 5


class Scheduler(beat.Scheduler):
    """Celery beat on Postgres: `beat_scheduler = "pgbeat"`.

    A lazy instance, as Celery's banner makes one, reads its settings only when asked for `info`, and touches
    neither the database nor the broker.
    """

    # An upper bound of one wait; `inspect ping` tolerates twice this, at least a minute.
    max_interval = 5

    def __init__(self, app: Any, *args: Any, **kwargs: Any) -> None:
        self._loop: BeatLoop | None = None
        self._is_waiting = False  # in a tick, or for the end of a stop
        super().__init__(app, *args, **kwargs)

    def setup_schedule(self) -> None:
        """Read the settings; a wrong one ends the start here, with its name. Nothing connects yet.

        Raises:
            SystemExit: a setting is wrong, `pgbeat_url` is missing, or a driver or an extra is not installed. One line
                of the log says which; Celery would print any other exception with hundreds of lines of traceback.
        """
        try:
            settings = Settings.from_mapping(self.app.conf)
            normalise_url(settings.required_url)
            self._loop = BeatLoop(Wiring(self, settings), float(self.max_interval))
        except (InvalidSetting, MissingDriver, MissingExtra) as error:
            logger.critical("The beat cannot start: %s", error)
            raise SystemExit(1) from error

    def tick(self, *_args: Any, **_kwargs: Any) -> float:
        """Run one cycle and wait for what comes next: a notification, the next run, or the poll.

        The wait is in here because nothing could end Celery's own sleep. So this returns 0, "again at once", except
        after a stop.
        """
        loop = self._loop
        if loop is None or loop.stopped:
            return float(self.max_interval)
        self._is_waiting = True
        try:
            loop.run_cycle()
        finally:
            try:
                if loop.stopped:
                    self._stop(loop)
            finally:
                self._is_waiting = False
        if loop.stopped:
            raise SystemExit  # as the signal handler does: gevent may have run it in another greenlet than this one
        return 0.0

    def get_schedule(self) -> Mapping[str, Any]:
        """Return the enabled rows as entries, read when looked at; empty for a lazy instance."""
        return {} if self._loop is None else self._loop.wiring.entries

    def set_schedule(self, schedule: Mapping[str, Any]) -> None:
        """Declare these entries instead of those of `beat_schedule`.

        Raises:
            SchedulerNotSetUp: the scheduler is lazy.
            InvalidPeriodicTask: an entry was read from a row.
        """
        self._entries.replace(schedule)

    schedule = property(get_schedule, set_schedule)

    def add(self, *, name: str, **kwargs: Any) -> Any:
        """Declare an entry, as one in `beat_schedule`, and return it; the row follows with the beat's next cycle.

        Every beat of the app has to declare the same, in `beat_init` or in `setup_schedule`. A wrong entry is refused
        alone, in the log.

        Args:
            name: the row's name.
            **kwargs: what an entry of `beat_schedule` has: `task`, `schedule`, `args`, `pgbeat`, …

        Raises:
            SchedulerNotSetUp: the scheduler is lazy.
        """
        self._entries[name] = kwargs
        return self._maybe_entry(name, kwargs)

    def update_from_dict(self, dict_: Mapping[str, Any]) -> None:
        """Declare entries in addition to the others; a wrong one is refused alone, in the log.

        Raises:
            SchedulerNotSetUp: the scheduler is lazy.
            InvalidPeriodicTask: an entry was read from a row.
        """
        self._entries.update(dict_)

    def merge_inplace(self, b: Mapping[str, Any]) -> None:
        """Declare only these entries in place of `beat_schedule`; its other entries are withdrawn.

        Rows that are not from `beat_schedule`, and those of `@beat.periodic_task`, stay.

        Raises:
            SchedulerNotSetUp: the scheduler is lazy.
            InvalidPeriodicTask: an entry was read from a row.
        """
        self._entries.replace(b)

    def install_default_entries(self, data: Mapping[str, Any]) -> None:
        """Do nothing: Celery's own entry is declared with the others, by Celery's rule."""

    def reserve(self, entry: Any) -> Any:
        """Return the entry as it is after a run. The row does not change: only a submit moves its next run."""
        return next(entry)

    def _maybe_entry(self, name: str, entry: Any) -> Any:
        return entry_of_given(name, entry, self.app, self.Entry)

    @property
    def _entries(self) -> Entries:
        if self._loop is None:
            raise SchedulerNotSetUp(
                f"This {type(self).__name__} is lazy, or its setup_schedule() has not called super().setup_schedule(): "
                f"it declares nothing. Use app.add_periodic_task(), or beat.schedule()"
            )
        return self._loop.wiring.entries

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **kwargs: Any) -> Any:
        """Send an entry as Celery does; note on the entry of a job what was returned or raised.

        An entry that is no job of ours is sent apart from the rows and runs untracked: `beat.trigger()` makes a job.

        The error is not raised here: `apply_entry` would write a traceback to the log for each occurrence of a row that
        cannot be sent, and pass it on to nothing else.
        """
        if not isinstance(entry, JobEntry):
            return super().apply_async(entry, producer=producer, advance=advance, **kwargs)
        try:
            entry.returned = super().apply_async(entry, producer=producer, advance=False, **kwargs)
            entry.has_returned = True
            return entry.returned
        except Exception as error:  # noqa: BLE001  the publisher reads it off the entry
            # Celery wraps the error; the cause shows whether it is a broken connection or a refusal.
            entry.error = error.__cause__ or error.__context__ or error
            return None
        except BaseException as error:  # noqa: BLE001  likewise: a task's own sys.exit() must not end the beat's thread
            entry.error = error
            return None

    def close(self) -> None:
        """Give back every mark and unsent job, then do as Celery does: `sync()`, and release `connection`.

        Safe in a signal handler, and to call any number of times. While a tick or another call waits, this only asks
        for the stop, and the other one gives everything back.
        """
        if self._loop is not None and self._is_waiting:
            self._loop.ask_to_stop()
            return
        self._is_waiting = True
        try:
            if self._loop is not None:
                self._stop(self._loop)
        finally:
            self._is_waiting = False
            super().close()

    @staticmethod
    def _stop(loop: BeatLoop) -> None:
        """Stop, and wait until all is given back: the handler of a second signal raises, and does not end the wait."""
        try:
            loop.stop(STOP_WITHIN)
        except SystemExit:
            loop.stop(STOP_WITHIN)
            raise

    @property
    def info(self) -> str:
        """The text of the banner: without a password, and without raising, whatever the settings are."""
        try:
            settings = Settings.from_mapping(self.app.conf)
            url = masked(normalise_url(settings.required_url))
        except PgBeatError as error:
            return f"    . postgres -> {error}"
        return f"    . postgres -> {url}\n    . schema -> {settings.schema}"
