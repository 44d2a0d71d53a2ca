"""Makes the parts of one beat from its settings, each once: the only place where they are put together.

A caller may give its own part in place of any of those that it names. The testing kit gives a clock that is set by
hand, a broker that is always there, and a delivery without a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.decide.backfiller import Backfiller
from celery_pgbeat.beat.decide.dispatcher import LOOK_EVERY, Dispatcher
from celery_pgbeat.beat.decide.judge import Judge
from celery_pgbeat.beat.decide.planner import Planner
from celery_pgbeat.beat.decide.recovery import Recovery
from celery_pgbeat.beat.decide.submitter import Submitter
from celery_pgbeat.beat.entries import Entries
from celery_pgbeat.beat.log_throttle import LogThrottle
from celery_pgbeat.beat.send.broker import Broker, Sender
from celery_pgbeat.beat.send.closed_queues import ClosedQueues
from celery_pgbeat.beat.send.delivery import Delivery
from celery_pgbeat.beat.send.delivery_thread import DeliveryThread
from celery_pgbeat.beat.send.lost_messages import LostMessages
from celery_pgbeat.beat.send.publisher import Publisher
from celery_pgbeat.beat.send.rendering.renderer import Renderer
from celery_pgbeat.beat.steps import Steps
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.beat.upkeep.janitor import Janitor
from celery_pgbeat.beat.upkeep.mode import Mode
from celery_pgbeat.beat.upkeep.one_app import OneApp
from celery_pgbeat.beat.upkeep.result_poller import ResultPoller
from celery_pgbeat.beat.upkeep.tracking import Tracking
from celery_pgbeat.declare import app_timezone
from celery_pgbeat.measures.instruments import Instruments
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.listen import Wakeup
from celery_pgbeat.process.node import NodeId
from celery_pgbeat.settings import Settings


@dataclass(frozen=True, slots=True)
class Beat:
    """The parts that have the id of one process."""

    queries: BeatQueries
    tracking: Tracking
    janitor: Janitor
    delivery: Delivery
    dispatcher: Dispatcher
    steps: Steps


class Wiring:
    """The parts of one beat; nothing here connects to Postgres or to the broker.

    Args:
        sender: Celery's scheduler.
        settings: the app's.

    Raises:
        InvalidSetting: a setting is wrong or `pgbeat_url` is missing.
        MissingExtra: a setting asks for an extra that is not installed.
    """

    def __init__(
        self,
        sender: Sender,
        settings: Settings,
        *,
        database: Database | None = None,
        clock: DatabaseClock | None = None,
        code: CodeSchedules | None = None,
        results: ResultPoller | None = None,
        wakeup: Wakeup | None = None,
        broker: Broker | None = None,
    ) -> None:
        app = sender.app
        self.settings = settings
        self.rules = Rules(
            timezone=app_timezone(app),
            on_time=settings.on_time,
            lease=settings.lease,
            pickup_deadline=settings.pickup_deadline,
            min_interval=settings.min_interval,
        )
        self.stopping = threading.Event()
        self.database = database or Database(settings.required_url, settings.schema)
        self.clock = clock or DatabaseClock(settings.dead_after)
        self.code = code or CodeSchedules(app, self.database, settings)
        self.one_app = OneApp(app, self.database, settings)
        self.entries = Entries(app, self.database, self.code)
        self.results = results or ResultPoller(app, wait=settings.heartbeat_every.total_seconds() / 2)
        self.instruments = Instruments(
            app, settings, self.database, now=lambda: self.clock.database_time, may_judge=lambda: self.clock.may_judge
        )
        self.wakeup = wakeup or Wakeup(self.database)  # opens sockets, so it comes after all that may raise
        self._sender = sender
        self._renderer = Renderer(sender, lambda name: self.code.lazy_entry(name) is not None)
        self.broker = broker or Broker(sender, self._renderer.connect, self.wakeup.notify)
        self._closed = ClosedQueues(app)

    def open(
        self,
        queries: BeatQueries | None = None,
        *,
        observer: Observer | None = None,
        publisher: Publisher | None = None,
        steps: Steps | None = None,
        inline: bool = False,
        look_every: float = LOOK_EVERY,
        stopwatch: Callable[[], float] = boottime,
    ) -> Beat:
        """Make the parts that have the id of this process: after any fork.

        Args:
            queries: in place of the beat's own.
            observer: in place of the instruments.
            publisher: in place of the beat's own.
            steps: in place of the beat's own.
            inline: deliver in the thread that runs the cycles.
            look_every: see `LOOK_EVERY`; 0 to look in each cycle.
            stopwatch: what limits the time for planning and deciding, in seconds.
        """
        settings, rules, clock, node = self.settings, self.rules, self.clock, NodeId.mine()
        queries = queries or BeatQueries(self.database, str(node), settings.lease)
        observer = observer or self.instruments.observer(str(node))
        tracking, throttle = Tracking(queries, self.results), LogThrottle()
        steps = steps or Steps(self.database)
        publisher = publisher or Publisher(
            self._sender, clock, self.code, self.broker, self._closed, self._renderer, self.stopping.is_set, observer
        )
        delivery = self._delivery(queries, publisher, throttle, observer, inline)
        dispatcher = Dispatcher(
            queries=queries,
            broker=self.broker,
            closed=self._closed,
            delivery=delivery,
            planner=Planner(queries, settings, rules, stopwatch),
            submitter=Submitter(queries, delivery, tracking, clock, rules, observer, settings.shadow),
            recovery=Recovery(queries, delivery, self._closed, clock, settings, rules, observer),
            backfiller=Backfiller(queries, delivery, tracking, settings, rules),
            judge=Judge(queries, tracking, observer),
            tracking=tracking,
            clock=clock,
            settings=settings,
            rules=rules,
            code=self.code,
            throttle=throttle,
            observer=observer,
            steps=steps,
            look_every=look_every,
            stopwatch=stopwatch,
        )
        lost_messages = LostMessages(self._sender.app, queries, self.broker)
        mode = Mode(queries, settings)
        janitor = Janitor(
            queries, settings, node, tracking, mode, steps, lambda: dispatcher.broker_problem, lost_messages.look
        )
        return Beat(queries, tracking, janitor, delivery, dispatcher, steps)

    def _delivery(
        self, queries: BeatQueries, publisher: Publisher, throttle: LogThrottle, observer: Observer, inline: bool
    ) -> Delivery:
        clock, stopping = self.clock, self.stopping.is_set
        if inline:
            return Delivery(queries, publisher, throttle, lambda: clock.database_time, stopping, observer)
        return DeliveryThread(
            queries, publisher, throttle, lambda: clock.database_time, stopping, observer, self.wakeup.notify
        )
