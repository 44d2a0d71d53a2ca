"""The beats' statements, counted by what they answer: what Postgres has not confirmed has not happened."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from celery_pgbeat.measures.tally import Tally
from celery_pgbeat.planning import Decision
from celery_pgbeat.postgres.beat_queries import BeatQueries, Confirmed, Judged, Recovered, Submitted
from celery_pgbeat.postgres.database import Database

MOST_UNSENT = 50_000  # jobs whose due time is remembered until they are sent


class DueAts:
    """When the jobs were due that are not sent yet: the turns add to it, the delivery takes from it."""

    def __init__(self) -> None:
        self._known: dict[uuid.UUID, datetime] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def add(self, due_ats: Mapping[uuid.UUID, datetime]) -> None:
        """Remember some; the oldest make way for what is too many."""
        with self._lock:
            self._known.update(due_ats)
            while len(self._known) > MOST_UNSENT:
                del self._known[next(iter(self._known))]

    def take(self, jobs: Iterable[uuid.UUID]) -> list[datetime | None]:
        """Return when each was due, None where that is not known, and forget it."""
        with self._lock:
            return [self._known.pop(job, None) for job in jobs]


class CountingQueries(BeatQueries):
    """The statements on behalf of one beat; a batch is counted at once, after its statement."""

    def __init__(
        self, database: Database, beat: str, lease: timedelta, tally: Tally, now: Callable[[], datetime]
    ) -> None:
        super().__init__(database, beat, lease)
        self._tally = tally
        self._now = now
        self._due_ats = DueAts()

    def submit_free(
        self, decisions: Sequence[Decision], default_timezone: str, full_acts_as: str = "full"
    ) -> list[Submitted]:
        """Submit as the store does, and count."""
        answers = super().submit_free(decisions, default_timezone, full_acts_as)
        self._count_submitted(decisions, answers)
        return answers

    def submit(
        self,
        decisions: Sequence[Decision],
        default_timezone: str,
        judging: bool,
        resending: bool,
        full_acts_as: str = "full",
    ) -> list[Submitted]:
        """Submit as the store does, and count."""
        answers = super().submit(decisions, default_timezone, judging, resending, full_acts_as)
        self._count_submitted(decisions, answers)
        return answers

    def confirm(self, sent: Sequence[tuple[uuid.UUID, float]]) -> Confirmed:
        """Confirm as the store does, and count; what somebody held is counted when it is confirmed again."""
        now = self._now()
        confirmed = super().confirm(sent)
        due_ats = self._due_ats.take(job for job, _ in sent if job not in confirmed.held)
        self._tally.count(sent=len(due_ats))
        self._tally.late(max(0.0, (now - due_at).total_seconds()) for due_at in due_ats if due_at is not None)
        return confirmed

    def refuse(self, refused: Sequence[tuple[uuid.UUID, str]]) -> list[uuid.UUID]:
        """Refuse as the store does, and count."""
        lost = super().refuse(refused)
        self._tally.count(refused=len(refused), lost=len(lost))
        return lost

    def skip(self, jobs: Sequence[uuid.UUID], reason: str) -> int:
        """Skip as the store does, and count."""
        skipped = super().skip(jobs, reason)
        self._tally.skip({reason: skipped})
        return skipped

    def recover(self, batch: int, on_time: timedelta, lazy_names: Sequence[str] = ()) -> list[Recovered]:
        """Recover as the store does, and count."""
        recovered = super().recover(batch, on_time, lazy_names)
        skipped = Counter(row.reason for row in recovered if row.reason is not None)
        self._tally.skip(skipped)
        self._tally.count(recovered=len(recovered) - skipped.total())
        return recovered

    def judge(self, batch: int, resending: bool) -> list[Judged]:
        """Judge as the store does, and count."""
        verdicts = super().judge(batch, resending)
        self._tally.count(lost=sum(verdict.verdict == "lost" for verdict in verdicts))
        return verdicts

    def _count_submitted(self, decisions: Sequence[Decision], answers: Sequence[Submitted]) -> None:
        by_name = {answer.name: answer for answer in answers}
        skipped: Counter[str] = Counter()
        due_ats: dict[uuid.UUID, datetime] = {}
        for decision in decisions:
            answer = by_name.get(decision.row.name)
            if answer is None:
                continue
            if decision.skipped is not None:
                skipped[decision.skipped.reason] += decision.skipped.count
            if decision.job is None or decision.due_at is None:
                continue
            if not answer.made:
                skipped["overlap"] += 1
            elif not answer.waits:
                due_ats[decision.job] = decision.due_at
        self._due_ats.add(due_ats)
        self._tally.skip(skipped)
        self._tally.count(lost=sum(answer.lost is not None for answer in answers))
