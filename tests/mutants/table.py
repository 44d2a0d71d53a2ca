"""All mutants, by subject."""

from __future__ import annotations

from functools import cache

from tests.mutants.by_hand import BY_HAND
from tests.mutants.drawn import DRAWN
from tests.mutants.planted import Planted

SUBJECTS = tuple(BY_HAND)


@cache
def mutants_of(subject: str) -> dict[str, Planted]:
    """Return the mutants of a subject by their names: those made by hand, then those that were drawn."""
    return BY_HAND[subject] | DRAWN[subject].planted()
