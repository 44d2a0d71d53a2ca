"""Plans the next run of rows that are new, edited, or whose pause is over.

Two beats that plan the same row get the same result, and the fence of `plan.sql` lets one of them write it. If a row
cannot be planned, its column `problem` gets the reason. If the schema is newer than this package, the row is left
alone: a newer beat may understand it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.planning import Due, Planned, Rules, plan
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings
from celery_pgbeat.texts.safe_text import one_line

logger = logging.getLogger(__name__)

PLANNED_WITHIN = 0.5  # seconds; slow rows delay due rows by this and one row more; the next cycles plan the rest
LONGEST_PROBLEM = 500  # characters; it may quote a text of the row
FORESEEN = (InvalidSchedule, InvalidPeriodicTask)  # their texts explain the problem without a traceback


class Planner:
    """Plans unplanned rows: at most a batch, and at most half a second, at a time."""

    def __init__(
        self, queries: BeatQueries, settings: Settings, rules: Rules, clock: Callable[[], float] = boottime
    ) -> None:
        self._queries = queries
        self._settings = settings
        self._rules = rules
        self._clock = clock
        self._planned_up_to = ""
        self._left: set[str] = set()  # rows that this beat cannot plan and leaves to newer beats

    def resume(self, batch: int) -> bool:
        """Resume rows whose pause is over; return whether there were any."""
        names = self._queries.resume_due(batch)
        for name in names:
            logger.info("Resumed %r: its pause is over", name, extra={"action": "resume"})
        return bool(names)

    def plan(self, batch: int) -> bool:
        """Plan rows that are new, edited or resumed; return whether any was planned.

        Each call continues after the last name that was planned, and starts again after the last name of all. So rows
        that another transaction locks, or that take long, do not delay the rows behind them forever.
        """
        rows = self._queries.unplanned(batch, self._planned_up_to)
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
            except Exception as error:  # noqa: BLE001  one bad row stops only itself, and its problem has the reason
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
                        replaces=row.planned_for,
                    )
                )
        self._planned_up_to = "" if is_end else answers[-1].name
        stored = self._queries.plan(answers, self._rules.timezone) if answers else []
        self._log(errors, {name for name, _, _ in stored})
        return bool(stored)

    def report(self, bad: Sequence[tuple[Due, Exception]]) -> None:
        """Store why marked rows cannot be planned."""
        written = self._queries.report_problem([(row, problem_of(error)) for row, error in bad])
        self._log({row.name: error for row, error in bad}, written)

    def _log(self, errors: Mapping[str, Exception], written: Collection[str]) -> None:
        """Log the problems that were stored, and once for each row those that are left to newer beats."""
        for name, error in errors.items():
            if name in written:
                self._left.discard(name)
                unforeseen = None if isinstance(error, FORESEEN) else error
                logger.error(
                    "Cannot plan %r: %s", name, problem_of(error), exc_info=unforeseen, extra={"action": "plan"}
                )
            elif name not in self._left:
                self._left.add(name)
                logger.info(
                    "Cannot plan %r with this version; a newer beat may: %s",
                    name,
                    problem_of(error),
                    extra={"action": "plan"},
                )


def problem_of(error: Exception) -> str:
    """Return the text of an error for the column `problem`: one line of limited length."""
    return one_line(str(error) if isinstance(error, FORESEEN) else f"{type(error).__name__}: {error}", LONGEST_PROBLEM)
