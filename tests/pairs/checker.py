"""What two statements at one moment come to, against what they come to one after the other.

A says its statement and does not commit; B says its own beside it; A commits. That has to be as if one had come before
the other, in either order. Where it is not, the beats come again, as they do every second: what was stepped over is
done then. What is still as neither order would have it is an anomaly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from celery_pgbeat.postgres.statements import statement
from tests.pairs.differences import differing, row_of
from tests.pairs.saying import Loader, Statement, Texts
from tests.pairs.set_up import set_up
from tests.pairs.situations import SITUATIONS
from tests.pairs.stage import Answers, Stage, State, Unforeseen
from tests.pairs.statements import statements_of

Outcome = tuple[State, Answers]
ORDERS = ("unlike the first, then the second", "unlike the second, then the first")


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Two statements that came to what neither order of them comes to."""

    situation: str
    first: Statement
    second: Statement
    differences: tuple[tuple[str, ...], ...]  # to the first and then the second, and to the other order

    def __str__(self) -> str:
        lines = [f"{self.situation}: {self.first.label} | {self.second.label}"]
        for title, difference in zip(ORDERS, self.differences, strict=False):
            lines += [f"  {title}:", *(f"    {line}" for line in difference)]
        return "\n".join(lines)


@dataclass(slots=True)
class Figures:
    """What has been looked at."""

    situations: int = 0
    pairs: int = 0
    waited: int = 0
    again: int = 0
    anomalies: list[Anomaly] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.pairs} pairs in {self.situations} situations, {self.waited} of them waited"


class Meeting:
    """One situation, and all that may meet in it."""

    def __init__(self, stage: Stage, name: str, load: Loader = statement) -> None:
        self.name = name
        self.stage = stage
        memory = set_up(stage, SITUATIONS[name])
        self.has_jobs = bool(memory.jobs)
        self.statements = statements_of(Texts(stage.cursor, load), memory)
        self.before = stage.state()
        self._in_turn: dict[tuple[str, str], Outcome] = {}

    def named(self, label: str) -> Statement:
        """Return the statement of this name."""
        return next(one for one in self.statements if one.label == label)

    @cached_property
    def moving(self) -> dict[str, State]:
        """What those statements come to that change anything here by themselves."""
        after = {one.label: self.stage.alone(one) for one in self.statements}
        return {label: state for label, state in after.items() if state != self.before}

    def pairs(self, pruned: bool = True) -> Iterator[tuple[Statement, Statement]]:
        """Iterate over the pairs that may matter; or over all of them, if they are not to be pruned.

        The first one has to change something: else it is as if it were not there. So has the second one, at least once
        the first has been: else it comes to the same whenever it comes. They have to have to do with each other: where
        they write other rows, and neither order makes either do anything else than it does by itself, the one does not
        see whether the other has been. Any of these may take locks, which at worst has the other step over a row; it
        comes again. Two authors wait for each other's row, and do not see the jobs: they meet where there are none.
        """
        for first in self.statements:
            seconds = [second for second in self.statements if first.meets(second)]
            if pruned and first.label not in self.moving:
                continue
            if pruned and first.by_author and self.has_jobs:
                seconds = [second for second in seconds if not second.by_author]
            self._say_in_turn(first, seconds)
            for second in seconds:
                if pruned and second.label in self.moving:
                    self._say_in_turn(second, [first])
                if not pruned or not self._passes_by(first, second):
                    yield first, second

    def _passes_by(self, first: Statement, second: Statement) -> bool:
        """Return whether the second has nothing to do with the first, which changes something."""
        state, answers = self._in_turn[first.label, second.label]
        if second.label not in self.moving:
            return state == self.moving[first.label]
        other_state, other_answers = self._in_turn[second.label, first.label]
        if state != other_state or answers != other_answers[::-1]:
            return False
        before = set(self.before)
        one, two = set(self.moving[first.label]), set(self.moving[second.label])
        if {row_of(line) for line in one ^ before} & {row_of(line) for line in two ^ before}:
            return False
        return set(state) == before - (before - one) - (before - two) | (one - before) | (two - before)

    def meet(self, first: Statement, second: Statement, figures: Figures) -> Anomaly | None:
        """Let them overlap; return what is wrong with that."""
        figures.pairs += 1
        self._say_in_turn(first, [second])
        self._say_in_turn(second, [first])
        state, answers = self._in_turn[second.label, first.label]
        orders = [self._in_turn[first.label, second.label], (state, answers[::-1])]
        try:
            state, answers, waited = self.stage.overlap(first, second)
            figures.waited += waited
            if (state, answers) in orders:
                return None
            figures.again += 1
            later = self.stage.come_again([second, first]), answers
        except Unforeseen as error:
            return Anomaly(self.name, first, second, ((str(error),),))
        continued = [
            (self.stage.in_turn_and_again(one, two, again), order[1])
            for (one, two), order in zip(((first, second), (second, first)), orders, strict=True)
            for again in ([second, first], [first, second])
        ]
        if later in continued:
            return None
        return Anomaly(self.name, first, second, tuple(differing(order, later) for order in continued[::2]))

    def _say_in_turn(self, first: Statement, seconds: Iterable[Statement]) -> None:
        """Find out what these come to after the first, where that is not known yet."""
        wanted = [second for second in seconds if (first.label, second.label) not in self._in_turn]
        if wanted:
            for second, state, answers in self.stage.in_turn(first, wanted):
                self._in_turn[first.label, second.label] = state, answers
