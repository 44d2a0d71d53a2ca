"""Raises alerts for overdue rows, dead beats and refused declarations: once in the cluster, by the first that sees it.

A thread of its own checks with each heartbeat. An alert is a row of the table `alert`. The statement that inserts the
row returns it to one beat, which reports it: in the log, by the signal, to the webhook. When the cause is over the row
is deleted, so the next time is a new alert.

A beat checks only after it has been in contact with the database without a break for `pgbeat_dead_after`. After an
outage, or a step of the database's clock, every row looks late and every beat dead until they have caught up. The
cycles may not have noticed a step yet. So the statement compares the database's time with the time that the beat
assumes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.measures.outlasting import Outlasting
from celery_pgbeat.measures.webhook import Webhook
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.process.threads import LastingThread
from celery_pgbeat.signals import alert as alert_signal
from celery_pgbeat.texts.safe_text import one_line

logger = logging.getLogger(__name__)

MOST = 100  # overdue periodic tasks with an alert at a time, and refused declarations
SHARE = 20  # checking takes at most a twentieth of the time: slow checks are made less often
STEP = 2.0  # seconds by which the database's clock may differ from what the beat assumes
STOP_WITHIN = 0.5  # seconds that an alert which is being posted has when the beat stops


@dataclass(frozen=True, slots=True)
class Alert:
    """What is overdue or refused, or which beat is dead, since when, and why."""

    kind: str
    name: str
    due_at: datetime
    late_by: timedelta
    reason: str

    def __str__(self) -> str:
        if self.kind == "dead_beat":
            return f"A beat is dead: {one_line(self.reason)}"
        if self.kind == "refused":
            return f"{self.name!r} in code is refused: {one_line(self.reason)}"
        late = timedelta(seconds=int(self.late_by.total_seconds()))
        return f"{self.name!r} is overdue by {late}: {one_line(self.reason)}"


class Alarm:
    """Raises alerts on behalf of one beat.

    Args:
        database: the beat's.
        beat: the beat's id.
        app: the Celery app, the sender of the signal.
        after: how long overdue is too long.
        every: how often to check.
        may_judge: whether the beat has been in contact for long enough to judge silent nodes.
        now: the database's time, as the beat assumes it.
        webhook: where alerts are posted too; None for nowhere.
    """

    def __init__(
        self,
        database: Database,
        beat: str,
        app: Any,
        *,
        after: timedelta,
        every: timedelta,
        may_judge: Callable[[], bool],
        now: Callable[[], datetime],
        webhook: Webhook | None,
    ) -> None:
        self._database = database
        self._beat = beat
        self._app = app
        self._after = after.total_seconds()
        self._every = every.total_seconds()
        self._may_judge = may_judge
        self._now = now
        self._webhook = webhook
        self._stopping = threading.Event()
        self._thread = LastingThread(self._run, "pgbeat-alarm")
        self._outlasting = Outlasting(logger, "Cannot look for what is overdue", "alert")

    def start(self) -> None:
        """Start to check."""
        if self._webhook is not None:
            self._webhook.start()
        self._thread.start()

    def restart_if_ended(self) -> None:
        """Start again each thread that has ended too early."""
        self._thread.restart_if_ended()
        if self._webhook is not None:
            self._webhook.restart_if_ended()

    def stop(self) -> None:
        """Stop checking."""
        self._stopping.set()
        if self._webhook is not None:
            self._webhook.stop(STOP_WITHIN)

    def look(self) -> list[Alert]:
        """Raise new alerts and end those that are over; return the alerts that this beat has to report.

        Raises:
            DatabaseUnavailable: Postgres is out of reach.
        """
        rows = self._database.run(
            "raise_alerts",
            beat=self._beat,
            after=self._after,
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

    def report(self, alerts: Sequence[Alert]) -> None:
        """Report alerts: in the log, by the signal, and to the webhook."""
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
            self._outlasting.call(self._check)
            wait = max(self._every, SHARE * (time.monotonic() - began))

    def _check(self) -> None:
        if self._may_judge():
            self.report(self.look())


def _subject(alert: Alert) -> str:
    if alert.kind == "dead_beat":
        return f"the beat {alert.name} is gone from the list, or back"
    return f"{alert.name!r} is not {'refused' if alert.kind == 'refused' else 'overdue'} any more"


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
