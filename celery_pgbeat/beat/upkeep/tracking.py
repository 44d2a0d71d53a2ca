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
        """Return what `tracking = full` means now: `full`, `result` or `send`."""
        return self._results.full_acts_as(self.workers_track)

    @property
    def is_to_be_lowered(self) -> bool:
        """Whether `full` means less than before, and jobs that are at the broker are still tracked as before."""
        return self.full_acts_as() not in ("full", self._acts_as)

    def lower(self) -> bool:
        """Track jobs that are at the broker like the new ones; return whether anything was to be done."""
        acts_as, is_lower = self.full_acts_as(), self.is_to_be_lowered
        if is_lower:
            self._queries.lower_tracking(acts_as)
        self._acts_as = acts_as
        return is_lower

    def finish_by_result(self, batch: int, names: Sequence[str] = ()) -> None:
        """Read the final states of unreported jobs from the result backend: before they block a row or are judged."""
        found = self._results.final_states(self._queries.unreported(batch, names))
        if found:
            self._queries.finish_by_result(found)
