"""The thread that does a beat's work: it opens, turns, waits and hands back; nothing escapes it.

One thread makes the turns and hears the wakeup; a second one, the dispatcher's, delivers what a turn has submitted, and
what went wrong there is raised in the next turn. The others only ask for a turn and ring. An error is logged and
answered by a pause that grows; an outage is waited out.

No thread of a beat ends unseen: each turn starts again what has ended of the other threads, and Celery's thread, which
asks for the turns, starts again the one that makes them.

The turns give the beat's signs of life, so a turn waits for nothing but Postgres, and never longer for anything than
until the next sign of life is due.
"""

from __future__ import annotations

import gc
import logging
import random
import threading
from collections.abc import Callable

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.decide.dispatcher import Dispatcher
from celery_pgbeat.beat.entries import Entries
from celery_pgbeat.beat.send.publisher import Publisher, Sender
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.beat.upkeep.janitor import Janitor
from celery_pgbeat.beat.upkeep.result_poller import ResultPoller
from celery_pgbeat.errors import DatabaseBusy, DatabaseUnavailable, SchemaMissing, SchemaTooNew
from celery_pgbeat.measures.instruments import Instruments
from celery_pgbeat.node import NodeId
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres import migrate
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.listen import Wakeup
from celery_pgbeat.settings import Settings
from celery_pgbeat.threads import LastingThread

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds after an error, doubled with each in a row
REMIND_EVERY = 60.0  # seconds between two log lines about one and the same outage
DELIVERY_ENDS_WITHIN = 2.0  # seconds that a batch under way has to end, or to be given back, when the beat stops
LOOK_AFTER = 1.0  # seconds that a turn may take before it is looked whether its thread still runs
LAST_WORDS_WITHIN = 1.0  # seconds for handing back on behalf of a turn that hangs


class BeatThread:
    """One beat's parts, put together, and the thread that they run in."""

    def __init__(self, sender: Sender, settings: Settings, longest_wait: float) -> None:
        self._settings = settings
        self._longest_wait = longest_wait
        self._database = Database(settings.required_url, settings.schema)
        self._stopping = threading.Event()
        self._watch = DatabaseClock(settings.dead_after)
        self._code = CodeSchedules(sender.app, self._database, settings)
        self.entries = Entries(sender.app, self._database, self._code)
        self._result_poller = ResultPoller(sender.app, patience=settings.heartbeat_every.total_seconds() / 2)
        self._instruments = Instruments(
            sender.app,
            settings,
            self._database,
            now=lambda: self._watch.database_time,
            may_judge=lambda: self._watch.may_judge,
        )
        self._publisher = self._made_publisher(sender)
        self._wakeup = Wakeup(self._database)  # the first to open anything: up to here a setting may be refused
        self._rules = Rules(
            timezone=str(sender.app.timezone),
            on_time=settings.on_time,
            lease=settings.lease,
            pickup_deadline=settings.pickup_deadline,
            min_interval=settings.min_interval,
        )
        self._store: BeatQueries | None = None
        self._janitor: Janitor | None = None
        self._dispatcher: Dispatcher | None = None
        self._sync_at = 0.0
        self._check_at = 0.0
        self._pause = 0.0
        self._reminded: tuple[str, float] | None = None
        self._thread = LastingThread(self._run, "pgbeat")
        self._asked = threading.Semaphore(0)
        self._answered = threading.Semaphore(0)
        self._ended = threading.Event()
        self._given_up = False

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for."""
        return self._stopping.is_set()

    def turn(self) -> None:
        """Have one turn made, and wait for its end. The thread starts with the first: after any fork."""
        if not self._thread.is_started:
            self._thread.start()
        if self._thread.has_ended_early:
            # What was asked of it, and what it answered last, is not the next one's.
            self._asked, self._answered = threading.Semaphore(0), threading.Semaphore(0)
            self._thread.mend()
        self._asked.release()
        while not self._answered.acquire(timeout=LOOK_AFTER):
            if not self._thread.is_alive:
                return

    def stop(self, within: float) -> None:
        """Have everything handed back; gives a turn under way some seconds to end first."""
        self._stopping.set()
        self._wakeup.notify()
        self._asked.release()
        if not self._thread.is_started:
            self._close()
            return
        if self._given_up or self._ended.wait(within):
            return
        self._given_up = True
        logger.warning("A turn is stuck: giving this beat's rows back without waiting", extra={"action": "unmark"})
        last = threading.Thread(target=self._hand_back_elsewhere, name="pgbeat-last-words", daemon=True)
        last.start()
        last.join(LAST_WORDS_WITHIN)

    def _run(self) -> None:
        try:
            self._guarded(self._instruments.start)
            gc.freeze()  # what has been loaded by now stays: a busy beat would walk through it with every few batches
            while True:
                self._asked.acquire()
                if self._stopping.is_set():
                    break
                self._guarded(self._turn)
                self._answered.release()
            self._guarded(self._hand_back)
            self._ended.set()
        finally:
            self._answered.release()

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as error:  # noqa: BLE001  the one place where all of a beat's errors end
            self._check_at = 0.0
            self._report(error)
            if not self._stopping.is_set():
                self._bell_wait(min(self._next_pause(), self._settings.heartbeat_every.total_seconds()))

    def _turn(self) -> None:
        self._instruments.mend()
        if self._dispatcher is None or self._janitor is None:
            self._open()
            return
        self._check_schema()
        self._janitor.turn()
        self._sync_code()
        self._dispatcher.workers_track = self._janitor.workers_track
        rest = self._dispatcher.turn()
        self._instruments.turned(broker_up=self._publisher.probe_in == 0)
        if self._dispatcher.is_well:
            self._recovered()
        if rest > 0:
            self._bell_wait(min(rest, self._janitor.announces_in))

    def _made_publisher(self, sender: Sender) -> Publisher:
        if self._instruments.spans is None:
            return Publisher(sender, self._watch, self._code, self._stopping.is_set, self._ring)
        from celery_pgbeat.beat.send.tracing_publisher import TracingPublisher

        return TracingPublisher(
            sender, self._watch, self._code, self._stopping.is_set, self._ring, spans=self._instruments.spans
        )

    def _open(self) -> None:
        if self._settings.auto_migrate:
            migrate.migrate(self._database.engine, self._settings.schema)
        elif not migrate.check(self._database.engine, self._settings.schema).has_our_definitions:
            logger.warning(
                "The functions and views of the schema %r are not those of this package: run `celery-pgbeat migrate`",
                self._settings.schema,
                extra={"action": "start"},
            )
        node = NodeId.mine()
        store = self._instruments.store(str(node))
        janitor = Janitor(store, self._settings, node)
        janitor.start()
        self._sync_code()
        self._store, self._janitor = store, janitor
        self._dispatcher = Dispatcher(
            store,
            self._publisher,
            self._result_poller,
            self._watch,
            self._settings,
            self._rules,
            self._code,
            self._stopping.is_set,
            self._ring,
        )
        self._instruments.watch(str(node))
        logger.info("Beat %s works on %r", node, self._database, extra={"action": "start"})

    def _check_schema(self) -> None:
        """See with each sign of life, and after each error, whether a newer package has outdated this one meanwhile."""
        if boottime() >= self._check_at:
            migrate.check(self._database.engine, self._settings.schema)
            self._check_at = boottime() + self._settings.heartbeat_every.total_seconds()

    def _sync_code(self) -> None:
        """Bring the rows to what the code declares; where somebody holds a row, come again."""
        if not self._code.settled and boottime() >= self._sync_at:
            self._code.sync()
            self._sync_at = boottime() + self._settings.poll.total_seconds()

    def _ring(self) -> None:
        self._wakeup.notify()

    def _bell_wait(self, seconds: float) -> None:
        try:
            self._wakeup.wait(min(seconds, self._longest_wait))
        except BaseException as error:  # noqa: BLE001  the wait after an error has none above it that would catch its own
            self._report(error)
            self._stopping.wait(min(seconds, self._longest_wait))

    def _hand_back(self) -> None:
        delivered = True
        try:
            if self._dispatcher is not None:
                delivered = self._dispatcher.finish(DELIVERY_ENDS_WITHIN)
            if self._janitor is not None:
                self._janitor.stop()
            if self._dispatcher is not None:
                self._dispatcher.check()
        finally:
            self._close(delivered)

    def _close(self, delivered: bool = True) -> None:
        self._instruments.stop()
        if delivered:  # else a thread hangs in that connection, and ends with the process
            self._publisher.close()
        self._wakeup.close()
        self._database.close()

    def _hand_back_elsewhere(self) -> None:
        if self._store is None or self._janitor is None:
            return
        try:
            self._store.database = Database(self._settings.required_url, self._settings.schema)
            self._janitor.stop()
        except BaseException as error:  # noqa: BLE001  nothing is lost: the lease frees what this could not
            self._report(error)

    def _report(self, error: BaseException) -> None:
        """Log an error once a minute for as long as it stays the same."""
        if isinstance(error, Exception):
            error = self._database.translated(error)
        outage = isinstance(error, (DatabaseUnavailable, SchemaMissing, SchemaTooNew))
        if outage and not isinstance(error, DatabaseBusy):
            self._watch.lost()
        what, now = (type(error).__name__ if outage else repr(error)), boottime()
        if self._reminded is not None and self._reminded[0] == what and now - self._reminded[1] < REMIND_EVERY:
            return
        self._reminded = (what, now)
        if outage:
            # A busy Postgres has ended one statement; all the others go on.
            means = "It is tried again." if isinstance(error, DatabaseBusy) else "Nothing is sent meanwhile."
            logger.error("%s %s", error, means, extra={"action": "wait"})
        else:
            logger.error("A turn failed; trying again", exc_info=error, extra={"action": "wait"})

    def _next_pause(self) -> float:
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        return self._pause * random.uniform(0.5, 1.0)  # noqa: S311  jitter: not all beats at once

    def _recovered(self) -> None:
        self._pause = 0.0
        if self._reminded is not None:
            logger.info("Working again", extra={"action": "wait"})
            self._reminded = None
