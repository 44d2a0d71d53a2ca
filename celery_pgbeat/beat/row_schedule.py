"""A schedule of ours for Celery's monitors, for which Celery has no class of its own."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from celery.schedules import BaseSchedule, schedstate

from celery_pgbeat.schedules import Schedule

AGAIN = timedelta(days=1)  # the estimate for a row that never runs: monitors read it again in a day


class RowSchedule(BaseSchedule):
    """A calendar, RRULE or solar schedule, six fields of cron, an interval of the calendar, or none at all.

    Shows its text and implements the methods that monitors call. Beats never use it.

    Attributes:
        text: the schedule as the row has it; None for a row that only runs when triggered.
        parsed: the same, parsed; None if there is no text or it cannot be parsed.
    """

    def __init__(self, text: str | None, parsed: Schedule | None, app: Any = None) -> None:
        super().__init__(app=app)
        self.text = text
        self.parsed = parsed

    def remaining_estimate(self, last_run_at: datetime) -> timedelta:
        """Return how long it is until the first occurrence after an instant; negative where that has passed."""
        following = None if self.parsed is None else self.parsed.next(last_run_at)
        return AGAIN if following is None else following - self._now()

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Return whether an occurrence since an instant has passed, and the seconds until the next one."""
        now = self._now()
        since = None if self.parsed is None else self.parsed.next(last_run_at)
        following = None if self.parsed is None else self.parsed.next(now)
        until = AGAIN if following is None else following - now
        return schedstate(since is not None and since <= now, until.total_seconds())

    def _now(self) -> datetime:
        now: datetime = self.now()
        return now.astimezone(timezone.utc)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowSchedule):
            return NotImplemented
        return (self.text, self.parsed) == (other.text, other.parsed)

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.parsed)

    def __repr__(self) -> str:
        return "<no schedule>" if self.text is None else f"<schedule: {self.text}>"
