"""The beats' statements as the phases of a tick: mark, plan, submit, confirm, and what else becomes of its jobs."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from celery_pgbeat.measures.counting import CountingQueries
from celery_pgbeat.planning import Decision, Due
from celery_pgbeat.postgres.beat_queries import BeatQueries, Confirmed, PendingWork, Recovered, Submitted

if TYPE_CHECKING:
    from celery_pgbeat.measures.spans import Spans


class TracingQueries(BeatQueries):
    """The statements on behalf of one beat; each that has something to do with a tick is a span in it.

    Attributes:
        spans: the beat's, given by who makes the store.
    """

    spans: Spans

    def look(self, lazy_names: Sequence[str] = ()) -> PendingWork:
        """Look as the store does; the tick before it has been submitted."""
        self.spans.turn_over()
        return super().look(lazy_names)

    def mark(self, batch: int, lazy_names: Sequence[str] = (), fresh: int = 0) -> list[Due]:
        """Mark as the store does, and begin a tick if anything is due."""
        self.spans.turn_over()
        began = time.time_ns()
        due = super().mark(batch, lazy_names, fresh)
        if due:
            self.spans.begin("tick", "mark", began, due[0].marked_at, {"beat": self.beat, "due": len(due)})
        return due

    def submit_free(
        self, decisions: Sequence[Decision], default_timezone: str, full_acts_as: str = "full"
    ) -> list[Submitted]:
        """Submit as the store does, as a phase."""
        submit = super().submit_free
        return self._submitting(decisions, lambda: submit(decisions, default_timezone, full_acts_as))

    def submit(
        self,
        decisions: Sequence[Decision],
        default_timezone: str,
        judging: bool,
        resending: bool,
        full_acts_as: str = "full",
    ) -> list[Submitted]:
        """Submit as the store does, as a phase."""
        submit = super().submit
        return self._submitting(
            decisions, lambda: submit(decisions, default_timezone, judging, resending, full_acts_as)
        )

    def confirm(self, sent: Sequence[tuple[uuid.UUID, float]]) -> Confirmed:
        """Confirm as the store does, as a phase; what somebody held is confirmed again."""
        tick = self.spans.tick_of(sent[0][0]) if sent else None
        with self.spans.phase(tick, "confirm", {"jobs": len(sent)}) as counts:
            confirmed = super().confirm(sent)
            counts["held"] = len(confirmed.held)
        self.spans.settle(job for job, _ in sent if job not in confirmed.held)
        return confirmed

    def refuse(self, refused: Sequence[tuple[uuid.UUID, str]]) -> list[uuid.UUID]:
        """Refuse as the store does."""
        lost = super().refuse(refused)
        self.spans.settle(job for job, _ in refused)
        return lost

    def skip(self, jobs: Sequence[uuid.UUID], reason: str) -> int:
        """Skip as the store does."""
        skipped = super().skip(jobs, reason)
        self.spans.settle(jobs)
        return skipped

    def finish_eager(self, ended: Sequence[tuple[uuid.UUID, str, str | None]]) -> int:
        """Finish as the store does."""
        finished = super().finish_eager(ended)
        self.spans.settle(job for job, _, _ in ended)
        return finished

    def hold_back(self, held: Sequence[tuple[uuid.UUID, datetime]]) -> int:
        """Hold back as the store does."""
        count = super().hold_back(held)
        self.spans.settle(job for job, _ in held)
        return count

    def give_back(self, jobs: Iterable[uuid.UUID] | None = None, late: bool = False) -> int:
        """Give back as the store does."""
        given = None if jobs is None else list(jobs)
        count = super().give_back(given, late)
        self.spans.settle(given or ())
        return count

    def recover(self, batch: int, on_time: timedelta, lazy_names: Sequence[str] = ()) -> list[Recovered]:
        """Recover as the store does, and begin a trace of it if there was anything."""
        self.spans.turn_over()
        began = time.time_ns()
        recovered = super().recover(batch, on_time, lazy_names)
        if recovered:
            jobs: dict[uuid.UUID, datetime | None] = {row.id: None for row in recovered if row.reason is None}
            counts = {"beat": self.beat, "recovered": len(jobs), "skipped": len(recovered) - len(jobs)}
            self.spans.submitted(self.spans.begin("recover", "recover", began, None, counts), jobs)
        return recovered

    def _submitting(self, decisions: Sequence[Decision], statement: Callable[[], list[Submitted]]) -> list[Submitted]:
        tick = self.spans.tick_at(decisions[0].row.marked_at) if decisions else None
        self.spans.planned(tick, {"decisions": len(decisions)})
        with self.spans.phase(tick, "submit", {"decisions": len(decisions)}) as counts:
            answers = statement()
            made = {answer.name for answer in answers if answer.made and not answer.waits}
            counts["jobs"] = len(made)
            counts["submitted"] = len(answers)
        jobs = {one.job: one.due_at for one in decisions if one.job is not None and one.row.name in made}
        self.spans.submitted(tick, jobs)
        return answers


class TracingCountingQueries(TracingQueries, CountingQueries):
    """Both."""
