"""Statements with a race planted in them: what the check has to find, or it proves nothing.

Each does by itself what it should, and so it does before and after any other; only beside another it goes wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.mutants import Mutant


@dataclass(frozen=True, slots=True)
class Planted:
    """A race, and where two statements run into it."""

    mutant: Mutant
    situation: str
    first: str
    second: str


PLANTED = {
    "a judge locks nothing": Planted(
        Mutant(("judge",), "for update of active_job skip locked", ""), "due, skip, sent in vain", "start", "judge"
    ),
    "a recover locks nothing": Planted(
        Mutant(("recover",), "for update of job skip locked", ""),
        "not due, given back",
        "recover",
        "recover, a third beat",
    ),
    "a retry reads before it locks": Planted(
        Mutant(("retry",), "for no key update", ""), "due, skip, silent, runs again", "judge", "retry"
    ),
}
