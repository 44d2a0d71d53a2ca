"""The thread that does a beat's work: it opens, runs the cycles, waits between them, and gives everything back.

A *cycle* is one pass of this loop: the upkeep that is due, then one batch of what else there is to do. A *tick* is what
a beat does with one due occurrence (`decide/dispatcher.py`): one cycle has many ticks, or none. The method `tick()` of
Celery's scheduler runs one cycle.

Celery's thread asks for a cycle and waits for its end. The delivery has a second thread, and one that confirms; their
errors are raised in the next cycles, one in each. All other threads only end a wait. No error leaves this thread: it is
logged, and a pause that grows follows. A step that fails by itself does not end its cycle (`steps.py`).

No thread of a beat ends unnoticed. Each cycle starts the others again if they have ended, and Celery's thread starts
this one again.

The cycles write the beat's heartbeat. So a cycle waits only for Postgres, and never for anything longer than until the
next heartbeat is due.
"""

from __future__ import annotations

import gc
import logging
import queue
import random
import sys
import threading
from collections.abc import Callable

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.steps import FIRST_PAUSE, LONGEST_PAUSE, OUTAGES, REMIND_EVERY, explained
from celery_pgbeat.beat.wiring import Beat, Wiring
from celery_pgbeat.errors import DatabaseBusy, DatabaseUnavailable, NotPermitted, SchemaTaken
from celery_pgbeat.postgres import migrate
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.process.node import NodeId
from celery_pgbeat.process.threads import LastingThread

logger = logging.getLogger(__name__)

DELIVERY_ENDS_WITHIN = 2.0  # seconds that the batch under way has to end, or to be given back, when the beat stops
ALIVE_CHECKED_AFTER = 1.0  # seconds of a cycle until Celery's thread checks that this thread is still alive
# Seconds for which one thread computes while another one could: the delivery goes on with the answer of the broker
# while the cycles read a thousand rows. By Python's own 5 ms a batch waits that long for each of its answers.
SWITCH_INTERVAL = 0.0005
COLLECTED_AFTER = 10_000  # new objects, more than a batch of a thousand rows leaves; by Python's own 700, 2 us a row
GIVEN_BACK_WITHIN = 1.0  # seconds for giving back on behalf of a cycle that hangs


def _signals() -> tuple[queue.SimpleQueue[None], queue.SimpleQueue[None]]:
    """Return what a thread waits for: not semaphores, whose locks a signal handler could wait for forever."""
    return queue.SimpleQueue(), queue.SimpleQueue()


class BeatLoop:
    """The thread of one beat.

    Args:
        wiring: the beat's parts.
        longest_wait: seconds that a wait between two cycles may take.
    """

    def __init__(self, wiring: Wiring, longest_wait: float) -> None:
        self.wiring = wiring
        self._settings = wiring.settings
        self._stopping = wiring.stopping
        self._longest_wait = longest_wait
        self._beat: Beat | None = None
        self._sync_at = 0.0
        self._check_at = 0.0
        self._is_off_the_list = False  # because the schema serves another app
        self._pause = 0.0
        self._reported: tuple[str, float] | None = None  # the last error that was logged, and when
        self._thread = LastingThread(self._run, "pgbeat")
        self._asked, self._answered = _signals()
        self._ended = threading.Event()
        self._given_up = False

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for."""
        return self._stopping.is_set()

    def run_cycle(self) -> None:
        """Ask for one cycle, and wait for its end. The first call starts the thread: after any fork."""
        if not self._thread.is_started:
            self._thread.start()
        if self._thread.has_ended_early:
            # What the old thread was asked, and what it answered last, does not concern the new one.
            self._asked, self._answered = _signals()
            self._thread.restart_if_ended()
        self._asked.put(None)
        while True:
            try:
                return self._answered.get(timeout=ALIVE_CHECKED_AFTER)
            except queue.Empty:
                if not self._thread.is_alive:
                    return None

    def ask_to_stop(self) -> None:
        """Ask for the end of the thread, and wait for nothing.

        It may run in a signal handler, in the middle of `run_cycle()` or `stop()`, so it takes no lock that they may
        hold.
        """
        if not self._stopping.is_set():
            self._stopping.set()
        self.wiring.wakeup.notify()
        self._asked.put(None)

    def stop(self, within: float) -> None:
        """Give everything back; a cycle under way has `within` seconds to end first."""
        self.ask_to_stop()
        if not self._thread.is_started:
            self._close()
            return
        if self._given_up or self._ended.wait(within):
            return
        self._given_up = True
        logger.warning("A cycle is stuck: giving this beat's rows back without waiting", extra={"action": "unmark"})
        thread = threading.Thread(target=self._give_back_elsewhere, name="pgbeat-last-words", daemon=True)
        thread.start()
        thread.join(GIVEN_BACK_WITHIN)

    def _run(self) -> None:
        try:
            self._guarded(self.wiring.instruments.start)
            gc.freeze()  # what is loaded by now stays: a busy beat would collect through it with every few batches
            collected_after, *older = gc.get_threshold()
            if collected_after:  # 0: never
                gc.set_threshold(max(collected_after, COLLECTED_AFTER), *older)
            sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL))
            while True:
                self._asked.get()
                if self._stopping.is_set():
                    break
                self._guarded(self._run_cycle)
                self._answered.put(None)
            self._guarded(self._give_back)
            self._ended.set()
        finally:
            self._answered.put(None)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as error:  # noqa: BLE001  the one place where all errors of a beat end
            if isinstance(error, SystemExit) and self._stopping.is_set():
                return  # of the signal handler that asked for the stop, if gevent ran it in this greenlet
            error = self._explained(error)
            self._check_at = 0.0
            self._report(error)
            if not self._stopping.is_set():
                pause = min(self._next_pause(), self._settings.heartbeat_every.total_seconds())
                if isinstance(error, DatabaseUnavailable) and not isinstance(error, DatabaseBusy):
                    self._disconnect(pause)
                self._wait(pause)

    def _disconnect(self, pause: float) -> None:
        """Close this beat's connections until the pause is over.

        If the server has none left for it, each that it keeps may be the one that another beat waits for.
        """
        self.wiring.wakeup.pause(pause)
        self.wiring.database.close()

    def _run_cycle(self) -> None:
        self.wiring.instruments.restart_if_ended()
        beat = self._beat
        if beat is None:
            self._open()
            return
        self._check_schema()
        self._check_app(beat)
        beat.steps.begin()
        beat.janitor.run_cycle()
        beat.steps.attempt("code schedules", self._sync_code)
        has_failed = beat.steps.has_failed  # the dispatcher begins anew
        rest = beat.dispatcher.run_cycle()
        if has_failed or beat.steps.has_failed:
            self._check_at = 0.0
        self.wiring.instruments.cycle_ended(broker_up=beat.dispatcher.broker_problem is None)
        if not beat.delivery.is_failing:
            self._recovered()
        if rest > 0:
            self._wait(min(rest, beat.janitor.announces_in))

    def _open(self) -> None:
        database, schema = self.wiring.database, self._settings.schema
        if self._settings.auto_migrate:
            migrate.migrate(database.engine, schema)
        elif not migrate.check(database.engine, schema).has_our_definitions:
            logger.warning(
                "The functions and views of the schema %r are not those of this package: run `celery-pgbeat migrate`",
                schema,
                extra={"action": "start"},
            )
        self.wiring.one_app.check()
        beat = self.wiring.open()
        beat.janitor.start()
        beat.steps.attempt("code schedules", self._sync_code)
        self._beat = beat
        self.wiring.instruments.watch(beat.queries.beat)
        self._log_start(beat.queries.beat)

    def _log_start(self, beat: str) -> None:
        """Log who this beat is and where it works; its whole id, as in tables and in other log lines, at DEBUG."""
        node = NodeId.parse(beat)
        shown = beat if node is None else node.shown
        logger.info(
            "Beat %s works on %s", shown, self.wiring.database.shown_place, extra={"action": "start", "beat": beat}
        )
        logger.debug("The id of this beat is %s", beat, extra={"action": "start"})

    def _check_schema(self) -> None:
        """Check with each heartbeat, and after each error, whether a newer package has changed the schema."""
        if boottime() >= self._check_at:
            migrate.check(self.wiring.database.engine, self._settings.schema)
            self._check_at = boottime() + self._settings.heartbeat_every.total_seconds()

    def _check_app(self, beat: Beat) -> None:
        """Check with each heartbeat that the schema still serves this app; if not, take this beat off the list once.

        Jobs that it is sending are sent while its lease lasts; its marks count until their lease is over.
        """
        try:
            self.wiring.one_app.check()
        except SchemaTaken:
            if not self._is_off_the_list:
                beat.queries.remove_beats([beat.queries.beat])
                self._is_off_the_list = True
            raise
        self._is_off_the_list = False

    def _sync_code(self) -> None:
        """Write to the rows what the code declares; try again after a poll if another transaction locks a row."""
        if not self.wiring.code.is_in_sync and boottime() >= self._sync_at:
            self.wiring.code.sync()
            self._sync_at = boottime() + self._settings.poll.total_seconds()

    def _wait(self, seconds: float) -> None:
        try:
            self.wiring.wakeup.wait(min(seconds, self._longest_wait))
        except BaseException as error:  # noqa: BLE001  nothing above the wait after an error would catch its own
            self._report(self._explained(error))
            self._stopping.wait(min(seconds, self._longest_wait))

    def _give_back(self) -> None:
        beat, delivered = self._beat, True
        try:
            if beat is not None:
                delivered = beat.delivery.drain(DELIVERY_ENDS_WITHIN)
                try:
                    beat.janitor.stop()
                finally:
                    beat.delivery.check()
        finally:
            self._close(delivered)

    def _close(self, delivered: bool = True) -> None:
        self.wiring.instruments.stop()
        if delivered:  # otherwise a thread hangs in that connection, and ends with the process
            self.wiring.broker.close()
        self.wiring.wakeup.close()
        self.wiring.database.close()

    def _give_back_elsewhere(self) -> None:
        if self._beat is None:
            return
        try:
            self._beat.queries.database = Database(self._settings.required_url, self._settings.schema)
            self._beat.janitor.stop()
        except BaseException as error:  # noqa: BLE001  nothing is lost: when the lease is over, other beats take it
            self._report(self._explained(error))

    def _explained(self, error: BaseException) -> BaseException:
        """Return an error that explains a driver's error for this beat; any other error as it is."""
        return explained(error, self.wiring.database) if isinstance(error, Exception) else error

    def _report(self, error: BaseException) -> None:
        """Log an error, and again once a minute while it stays the same."""
        outage = isinstance(error, (*OUTAGES, NotPermitted))
        if outage and not isinstance(error, DatabaseBusy):
            self.wiring.clock.lost()
        what, now = (type(error).__name__ if outage else repr(error)), boottime()
        if self._reported is not None and self._reported[0] == what and now - self._reported[1] < REMIND_EVERY:
            return
        self._reported = (what, now)
        if outage:
            # A busy Postgres has ended one statement; all the others go on.
            means = "It is tried again." if isinstance(error, DatabaseBusy) else "Nothing is sent meanwhile."
            logger.error("%s %s", error, means, extra={"action": "wait"})
        else:
            logger.error("A cycle failed; trying again", exc_info=error, extra={"action": "wait"})

    def _next_pause(self) -> float:
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        return self._pause * random.uniform(0.5, 1.0)  # noqa: S311  jitter: not all beats at once

    def _recovered(self) -> None:
        self._pause = 0.0
        if self._reported is not None:
            logger.info("Working again", extra={"action": "wait"})
            self._reported = None
