"""Brings each row its next run: rows that are new, edited, or whose pause is over.

Two beats that plan one row reach the same answer, and the fence of `plan.sql` lets one of them write it. What cannot be
planned says why in its column, unless the schema is newer than this package: then a newer beat may understand the row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.planning import Due, Planned, Rules, plan
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings
from celery_pgbeat.shown import one_line

logger = logging.getLogger(__name__)

PLANNED_WITHIN = 0.5  # seconds; expensive rows delay what is due by this and one row more, the rest has the next turns
LONGEST_PROBLEM = 500  # characters; a text of a row may be quoted in it
FORESEEN = (InvalidSchedule, InvalidPeriodicTask)  # what a row may be: their texts say it all


class Planner:
    """Plans what this beat finds unplanned, up to a batch or half a second at a time."""

    def __init__(
        self, store: BeatQueries, settings: Settings, rules: Rules, clock: Callable[[], float] = boottime
    ) -> None:
        self._store = store
        self._settings = settings
        self._rules = rules
        self._clock = clock
        self._planned_up_to = ""
        self._left: set[str] = set()  # rows that this beat could not plan and did not write so

    def resume(self, batch: int) -> bool:
        """Resume rows whose pause is over; tell whether any was."""
        names = self._store.resume_due(batch)
        for name in names:
            logger.info("Resumed %r: its pause is over", name, extra={"action": "resume"})
        return bool(names)

    def plan(self, batch: int) -> bool:
        """Plan rows that are new, edited or resumed; tell whether any was.

        Reading goes on behind the last name that was planned, and begins anew after the last one of all: rows that
        another transaction holds, or that take long, must not stand before those behind them.
        """
        rows = self._store.unplanned(batch, self._planned_up_to)
        ends = self._clock() + PLANNED_WITHIN
        is_end = len(rows) < batch
        answers: list[Planned] = []
        errors: dict[str, Exception] = {}
        for row in rows:
            if answers and self._clock() >= ends:
                is_end = False
                break
            try:
                answers.append(plan(row, self._rules))
            except Exception as error:  # noqa: BLE001  one bad row stops only itself, and says why
                errors[row.name] = error
                answers.append(
                    Planned(
                        name=row.name,
                        revision=row.revision,
                        planned_from=row.planned_from,
                        next_run_at=None,
                        planned_for=None,
                        pickup_deadline=self._settings.poll,
                        problem=problem_of(error),
                    )
                )
        self._planned_up_to = "" if is_end else answers[-1].name
        stored = self._store.plan(answers, self._rules.timezone) if answers else []
        self._tell(errors, {name for name, _, _ in stored})
        return bool(stored)

    def report(self, bad: Sequence[tuple[Due, Exception]]) -> None:
        """Write down why marked rows cannot be planned."""
        written = self._store.report_problem([(row, problem_of(error)) for row, error in bad])
        self._tell({row.name: error for row, error in bad}, written)

    def _tell(self, errors: Mapping[str, Exception], written: Collection[str]) -> None:
        """Log, once a row, what was written down, and what was not and is left to other beats."""
        for name, error in errors.items():
            if name in written:
                self._left.discard(name)
                unforeseen = None if isinstance(error, FORESEEN) else error
                logger.error(
                    "Cannot plan %r: %s", name, problem_of(error), exc_info=unforeseen, extra={"action": "plan"}
                )
            elif name not in self._left:
                self._left.add(name)
                logger.info("Left %r to other beats: %s", name, problem_of(error), extra={"action": "plan"})


def problem_of(error: Exception) -> str:
    """Return an error as the column `problem` has it: one line that is not too long."""
    return one_line(str(error) if isinstance(error, FORESEEN) else f"{type(error).__name__}: {error}", LONGEST_PROBLEM)
