"""Whether workers report on their jobs, and what the beat does about jobs on which no worker reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from celery_pgbeat.beat.upkeep.result_poller import ResultPoller
from celery_pgbeat.postgres.beat_queries import BeatQueries


@dataclass(eq=False, repr=False)
class Tracking:
    """What this beat knows of the workers' reports.

    Attributes:
        workers_track: whether workers announce our tracker, so that silence means "never picked up". The janitor sets
            it with each heartbeat.
    """

    _queries: BeatQueries
    _results: ResultPoller

    def __post_init__(self) -> None:
        self._acts_as = "full"
        self.workers_track = False

    def full_acts_as(self) -> str:
        """Return what `tracking = full` means now: `full`, `result` or `send`.

        When it becomes less than `full`, jobs that are already at the broker are tracked like the new ones.
        """
        acts_as = self._results.full_acts_as(self.workers_track)
        if acts_as not in ("full", self._acts_as):
            self._queries.lower_tracking(acts_as)
        self._acts_as = acts_as
        return acts_as

    def finish_by_result(self, batch: int, names: Sequence[str] = ()) -> None:
        """Read the final states of unreported jobs from the result backend: before they block a row or are judged."""
        found = self._results.final_states(self._queries.unreported(batch, names))
        if found:
            self._queries.finish_by_result(found)
