"""A beat's metrics, alerts and spans, as the settings ask for them; what is not asked for costs nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from celery_pgbeat.measures.alarm import Alarm
from celery_pgbeat.measures.counting import Counting
from celery_pgbeat.measures.extras import spans_of
from celery_pgbeat.measures.gauges import Gauges
from celery_pgbeat.measures.observer import Observer, all_of
from celery_pgbeat.measures.tally import Tally
from celery_pgbeat.measures.webhook import Webhook
from celery_pgbeat.measures.work_announcer import WorkAnnouncer
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings
from celery_pgbeat.signals import work_created

if TYPE_CHECKING:
    from celery_pgbeat.measures.endpoint import Endpoint

logger = logging.getLogger(__name__)


class Instruments:
    """Makes, starts and stops what measures one beat.

    Args:
        app: the Celery app, the sender of the signal.
        settings: which of them are wanted.
        database: the beat's.
        now: the database's time, as the beat knows it.
        may_judge: whether the beat has been in contact with the database for long enough to judge silent nodes.

    Attributes:
        spans: of OpenTelemetry; None if they are not wanted.

    Raises:
        MissingExtra: an extra that the settings ask for is not installed.
    """

    def __init__(
        self,
        app: Any,
        settings: Settings,
        database: Database,
        now: Callable[[], datetime],
        may_judge: Callable[[], bool],
    ) -> None:
        self._app = app
        self._settings = settings
        self._database = database
        self._now = now
        self._may_judge = may_judge
        self._tally = None if settings.metrics_port is None else Tally()
        self.spans = spans_of(settings)
        self._alarm: Alarm | None = None
        self._announcer: WorkAnnouncer | None = None
        self._endpoint: Endpoint | None = None

    def start(self) -> None:
        """Serve the metrics if they are wanted. This comes before the database: its absence is one of them."""
        port = self._settings.metrics_port
        if self._tally is None or port is None or self._endpoint is not None:
            return
        try:
            from celery_pgbeat.measures import endpoint
        except ImportError as error:
            logger.error(
                "pgbeat_metrics_port is set, but %s: pip install 'celery-pgbeat[prometheus]'. There are no metrics.",
                error,
                extra={"action": "measure"},
            )
            return
        host = self._settings.metrics_host
        try:
            self._endpoint = endpoint.Endpoint(host, port, self._tally, Gauges(self._database))
        except OSError as error:
            logger.error(
                "Cannot serve metrics at %s port %d: %s. Beats of one host need a pgbeat_metrics_port each.",
                host,
                port,
                error,
                extra={"action": "measure"},
            )
            return
        logger.info("Metrics are at http://%s:%d/metrics", host, port, extra={"action": "measure"})

    def observer(self, beat: str) -> Observer:
        """Return what counts and traces this beat's events, as far as the settings ask for it."""
        observers: list[Observer] = []
        if self.spans is not None:
            from celery_pgbeat.measures.tracing import Tracing

            observers.append(Tracing(self.spans, self._app, beat, self._now))
        if self._tally is not None:
            observers.append(Counting(self._tally, self._now))
        return all_of(observers)

    def watch(self, beat: str) -> None:
        """Start to raise alerts and to tell of tasks for people, as far as they are wanted; the schema has to exist."""
        if work_created.receivers and self._announcer is None:
            self._announcer = WorkAnnouncer(self._database, self._app, every=self._settings.heartbeat_every)
            self._announcer.start()
        after = self._settings.alert_after
        if after is None or self._alarm is not None:
            return
        url = self._settings.alert_webhook
        self._alarm = Alarm(
            self._database,
            beat,
            self._app,
            after=after,
            every=self._settings.heartbeat_every,
            may_judge=self._may_judge,
            now=self._now,
            webhook=None if url is None else Webhook(url),
        )
        self._alarm.start()

    def cycle_ended(self, *, broker_up: bool) -> None:
        """Note the end of a cycle that succeeded, and whether the broker could be reached."""
        if self._tally is not None:
            self._tally.cycle_ended(broker_up=broker_up)

    def restart_if_ended(self) -> None:
        """Start again each of their threads that has ended too early."""
        for part in (self._alarm, self._announcer, self._endpoint):
            if part is not None:
                part.restart_if_ended()

    def stop(self) -> None:
        """Stop what was started; an alert that is being posted gets a moment to arrive."""
        if self._alarm is not None:
            self._alarm.stop()
        if self._announcer is not None:
            self._announcer.stop()
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None
        if self.spans is not None:
            self.spans.close()
