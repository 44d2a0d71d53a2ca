"""Computes the runs that rows without a schedule are expected to have, from rows that `expected.sql` has read.

Nothing is promised: these runs depend on how other tasks end, and on all that changes the runs of those.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from celery_pgbeat.api.ahead import HELD_BACK, LONGEST_SEARCH, coming_runs, in_utc
from celery_pgbeat.api.expected import Expected, Follower, Outlook
from celery_pgbeat.api.graph import after_in_words
from celery_pgbeat.api.rows import Upcoming
from celery_pgbeat.planning import Rules, windows_of


class ExpectedRuns:
    """The expected runs of rows without a schedule that run after others.

    Args:
        rows: these rows, and all on which they depend.
        rules: those of the beats.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], rules: Rules) -> None:
        self._rows = {row["name"]: {column: in_utc(value) for column, value in row.items()} for row in rows}
        self._rules = rules
        self._computed: dict[tuple[str, datetime, datetime | None], Expected | None] = {}

    def of(self, name: str, after: datetime | None = None) -> Iterator[Upcoming]:
        """Iterate over the expected runs of a row; of one with a schedule there are none.

        It ends where a blackout window drops each run for a long time.

        Args:
            name: of the row.
            after: only runs later than this; None for all.

        Raises:
            InvalidSchedule: a row on which it depends cannot be planned.
        """
        dropped = 0
        for expected in self._outlook.coming(name, after):
            run = self._run(name, expected)
            dropped = 0 if run is not None else dropped + 1
            if run is not None:
                yield run
            elif dropped == LONGEST_SEARCH:
                return

    def next_of_each(self) -> Iterator[Upcoming]:
        """Iterate over the next run of each row that is not due already, in name order.

        It follows the next runs that are stored. Only where one is too early for a row it computes a schedule: there
        may be ten thousand.
        """
        outlook = Outlook(self._followers, self._stored_after, self._now)
        for name, expected in sorted(outlook.firsts().items()):
            if self._rows[name]["next_run_at"] is None:
                run = self._run(name, expected) or next(self.of(name, expected.due_at), None)
                if run is not None:
                    yield run

    @cached_property
    def _outlook(self) -> Outlook:
        return Outlook(self._followers, self._scheduled_after, self._now)

    @property
    def _now(self) -> datetime:
        """The time of the database when the rows were read; any instant will do where there are none."""
        return max((row["now"] for row in self._rows.values()), default=datetime.min.replace(tzinfo=timezone.utc))

    @cached_property
    def _followers(self) -> Sequence[Follower]:
        return [
            Follower(
                name,
                row["after"],
                row["since"],
                [in_utc(first) for first in row["firsts"]],
                [in_utc(last) for last in row["lasts"]],
                _is_on(row),
                _stored(row),
                row["end_at"],
                _left_of(row),
            )
            for name, row in self._rows.items()
            if row["schedule"] is None and row["after"]
        ]

    def _scheduled_after(self, name: str, instant: datetime, due_after: datetime | None) -> Expected | None:
        """Compute the first occurrence of a row with a schedule after an instant; many rows may ask for the same."""
        asked = (name, instant, due_after)
        if asked not in self._computed:
            since = instant if due_after is None else max(instant, due_after)
            runs = coming_runs(self._rows[name], self._rules, since) if name in self._rows else ()
            coming = (Expected(run.planned_for or run.next_run_at, run.next_run_at) for run in runs)
            self._computed[asked] = next((one for one in coming if one.occurrence > instant), None)
        return self._computed[asked]

    def _stored_after(self, name: str, instant: datetime, due_after: datetime | None) -> Expected | None:
        """Return the next run of a row with a schedule that is stored, or a later one if that is not after an instant.

        A row whose next run no beat has planned has none yet.
        """
        row = self._rows.get(name)
        stored = _stored(row) if row is not None and _is_on(row) else None
        if stored is None or stored.occurrence > instant:
            return stored
        return self._scheduled_after(name, instant, due_after)

    def _run(self, name: str, expected: Expected) -> Upcoming | None:
        """Return the run of an expected occurrence; None if a blackout window drops it."""
        row = self._rows[name]
        note, due = f"expected {after_in_words(row['after'])}", expected.due_at
        if row["blackout"]:
            named = json.loads(row["windows"] or "{}")
            windows = windows_of(row["blackout"], named, row["timezone"] or self._rules.timezone)
            if windows is not None and windows.covers(due):
                free = windows.defer(due) if row["blackout_action"] == "defer" else None
                if free is None:
                    return None
                note, due = f"{note}; {HELD_BACK}", free
        return Upcoming(name, due, expected.occurrence, note, row["after"])


def _is_on(row: Mapping[str, Any]) -> bool:
    return row["enabled"] and row["problem"] is None


def _left_of(row: Mapping[str, Any]) -> int | None:
    """Return how many runs a row may have after the one that is planned; None for any number."""
    if row["max_runs"] is None:
        return None
    most: int = row["max_runs"] - row["run_count"] - (row["next_run_at"] is not None)
    return max(most, 0)


def _stored(row: Mapping[str, Any]) -> Expected | None:
    if row["next_run_at"] is None:
        return None
    return Expected(row["planned_for"] or row["next_run_at"], row["next_run_at"])
