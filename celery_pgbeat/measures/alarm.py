"""Raises an alert for what is overdue and for each dead beat: one in the whole cluster, by the beat that sees it first.

A thread of its own looks with each sign of life. What is raised is a row of the table `alert`, and the statement that
writes the row is the one that tells whose it is to say so: in the log, by the signal, to the webhook. The row goes when
it is over, so the next time is another episode.

A beat looks only after it has itself seen the database without a break for `pgbeat_dead_after`. After an outage, or a
step of the database's clock, everything looks late and everybody dead, for the moment that it takes to catch up. A step
that the turns have not seen yet is seen by the statement: it is told what time the beat takes it to be.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.measures.webhook import Webhook
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.safe_text import one_line
from celery_pgbeat.signals import alert as alert_signal
from celery_pgbeat.threads import LastingThread

logger = logging.getLogger(__name__)

MOST = 100  # overdue periodic tasks with an alert at a time
SHARE = 20  # looking may take one part in so many of the time: what is slow to look at is looked at less often
REMIND_EVERY = 60.0  # seconds between two log lines about a look that fails
STEP = 2.0  # seconds by which the database's clock may be off what the beat takes for its time
STOP_WITHIN = 0.5  # seconds that an alert on its way gets when the beat stops


@dataclass(frozen=True, slots=True)
class Alert:
    """One episode: what is overdue, or which beat is dead, since when and why."""

    kind: str
    name: str
    due_at: datetime
    late_by: timedelta
    reason: str

    def __str__(self) -> str:
        if self.kind == "dead_beat":
            return f"A beat is dead: {one_line(self.reason)}"
        late = timedelta(seconds=int(self.late_by.total_seconds()))
        return f"{self.name!r} is overdue by {late}: {one_line(self.reason)}"


class Alarm:
    """Raises alerts on behalf of one beat.

    Args:
        database: the beat's.
        beat: the beat's id.
        app: the Celery app, the sender of the signal.
        after: how long overdue is too long.
        dead_after: how long a beat may be silent.
        every: how often to look.
        may_judge: whether silence can be held against anybody now.
        now: the database's time, as the beat can tell it.
        webhook: who is told besides; None for nobody.
    """

    def __init__(
        self,
        database: Database,
        beat: str,
        app: Any,
        *,
        after: timedelta,
        dead_after: timedelta,
        every: timedelta,
        may_judge: Callable[[], bool],
        now: Callable[[], datetime],
        webhook: Webhook | None,
    ) -> None:
        self._database = database
        self._beat = beat
        self._app = app
        self._after = after.total_seconds()
        self._dead_after = dead_after.total_seconds()
        self._every = every.total_seconds()
        self._may_judge = may_judge
        self._now = now
        self._webhook = webhook
        self._stopping = threading.Event()
        self._thread = LastingThread(self._run, "pgbeat-alarm")
        self._remind_at = 0.0

    def start(self) -> None:
        """Begin to look."""
        if self._webhook is not None:
            self._webhook.start()
        self._thread.start()

    def mend(self) -> None:
        """Start again what has ended too early."""
        self._thread.mend()
        if self._webhook is not None:
            self._webhook.mend()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._webhook is not None:
            self._webhook.stop(STOP_WITHIN)

    def look(self) -> list[Alert]:
        """Raise what is to be raised, end what is over; return the alerts that are this beat's to tell.

        Raises:
            DatabaseUnavailable: Postgres is out of reach.
        """
        rows = self._database.run(
            "raise_alerts",
            beat=self._beat,
            after=self._after,
            dead_after=self._dead_after,
            most=MOST,
            now=self._now(),
            step=STEP,
        )
        raised: list[Alert] = []
        for row in rows:
            alert = Alert(row.kind, row.name, row.due_at, timedelta(microseconds=row.late_by_microseconds), row.reason)
            if row.raised:
                raised.append(alert)
            else:
                logger.info("Over: %s", _subject(alert), extra={"action": "alert"})
        return raised

    def tell(self, alerts: Sequence[Alert]) -> None:
        """Say it to the log, to who has connected to the signal, and to the webhook."""
        for alert in alerts:
            logger.error("%s", alert, extra={"action": "alert"})
            alert_signal.send(
                self._app,
                kind=alert.kind,
                name=alert.name,
                reason=alert.reason,
                due_at=alert.due_at,
                late_by=alert.late_by,
            )
        if self._webhook is not None and alerts:
            self._webhook.post(_message(alerts, self._beat, self._database.schema))

    def _run(self) -> None:
        wait = self._every
        while not self._stopping.wait(wait):
            began = time.monotonic()
            self._guarded()
            wait = max(self._every, SHARE * (time.monotonic() - began))

    def _guarded(self) -> None:
        try:
            if self._may_judge():
                self.tell(self.look())
        except DatabaseUnavailable as error:
            # The turns speak of the outage; this is a word for who wonders why there is no alert.
            logger.debug("Nobody can look for what is overdue: %s", error, extra={"action": "alert"})
        except BaseException as error:  # noqa: BLE001  whatever is wrong with alerts, the beat goes on
            if time.monotonic() >= self._remind_at:
                self._remind_at = time.monotonic() + REMIND_EVERY
                logger.warning("Cannot look for what is overdue: %s", error, extra={"action": "alert"})


def _subject(alert: Alert) -> str:
    if alert.kind == "dead_beat":
        return f"the beat {alert.name} is gone from the list, or back"
    return f"{alert.name!r} is not overdue any more"


def _message(alerts: Sequence[Alert], beat: str, schema: str) -> dict[str, Any]:
    """Return what is posted: `text` as chat services show it, `alerts` for programs."""
    return {
        "text": "\n".join(str(alert) for alert in alerts),
        "schema": schema,
        "raised_by": beat,
        "alerts": [
            {
                "kind": alert.kind,
                "name": alert.name,
                "due_at": alert.due_at.isoformat(),
                "late_by": alert.late_by.total_seconds(),
                "reason": alert.reason,
            }
            for alert in alerts
        ],
    }
