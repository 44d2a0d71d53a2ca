"""Decides about jobs that were silent past their deadline: lost, run again, or sent again.

`judge.sql` decides, in one statement. The invariant: a beat judges only when it has itself been in contact with
Postgres for `dead_after` (`DatabaseClock.may_judge`), because silence during an outage means nothing.
"""

from __future__ import annotations

import logging

from celery_pgbeat.beat.upkeep.tracking import Tracking
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.postgres.beat_queries import BeatQueries

logger = logging.getLogger(__name__)

VERDICTS = {  # what is logged of a job that was silent for too long: the level, the action, the text
    "lost": (logging.WARNING, "lose", "Lost job %s of %r: it was silent for too long"),
    "rerun": (logging.WARNING, "rerun", "Job %s of %r runs again: it was silent for too long, and on_lost is 'rerun'"),
    "resend": (logging.INFO, "resend", "Job %s of %r is sent again: no worker started it within its pickup deadline"),
}


class Judge:
    """Decides about the silent jobs of all rows, a batch at a time."""

    def __init__(self, queries: BeatQueries, tracking: Tracking, observer: Observer) -> None:
        self._queries = queries
        self._tracking = tracking
        self._observer = observer

    def judge(self, batch: int, ask_first: bool) -> bool:
        """Decide about up to `batch` silent jobs; return whether there were any.

        Args:
            batch: how many jobs at most.
            ask_first: read the result backend first, which may know how a job ended that no worker has reported.
        """
        if ask_first:
            self._tracking.finish_by_result(batch)
        judged = self._queries.judge(batch, self._tracking.workers_track)
        self._observer.judged(judged)
        for job in judged:
            level, action, text = VERDICTS[job.verdict]
            logger.log(level, text, job.id, job.periodic_task, extra={"action": action})
        return bool(judged)
