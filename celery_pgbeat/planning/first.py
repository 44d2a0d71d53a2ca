"""The first run of a new, edited or resumed row."""

from __future__ import annotations

from .rows import LONGEST_PICKUP, Definition, Planned, Rules
from .timeline import pickup_after, timeline_of


def plan(row: Definition, rules: Rules) -> Planned:
    """Plan the first run: the next occurrence after the definition, never at once, however late this is asked.

    What a named window held back while it was changed is due when the window as it is now has closed.

    Raises:
        InvalidSchedule: the row can never be planned as it is.
    """
    line = timeline_of(row, rules)
    ended = line.schedule is None or (row.max_runs is not None and row.run_count >= row.max_runs)
    first = None if ended else row.held_back or line.following(row.counts_after)
    return Planned(
        name=row.name,
        revision=row.revision,
        planned_from=row.planned_from,
        next_run_at=None if first is None else line.due(first),
        planned_for=first,
        pickup_deadline=LONGEST_PICKUP if ended else pickup_after(line, first, rules),
    )
