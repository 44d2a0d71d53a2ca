"""Which pairs a run looks at: a few of each situation, always the same ones, or all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from zlib import crc32

from tests.pairs.checker import Meeting
from tests.pairs.saying import Statement

# For a full run: PGBEAT_TEST_PAIRS=all; else so many pairs of each situation.
PAIRS = os.environ.get("PGBEAT_TEST_PAIRS", "6")
ALL = PAIRS == "all"
# Tries also the pairs of which one statement changes nothing, which take ten times as long and come to the same.
PRUNED = os.environ.get("PGBEAT_TEST_PAIRS_PRUNED", "yes") != "no"


def chosen(meeting: Meeting) -> Iterator[tuple[Statement, Statement]]:
    """Iterate over the pairs to be looked at."""
    if ALL:
        yield from meeting.pairs(pruned=PRUNED)
        return
    # Both change something: these are most likely to meet.
    moving = [statement for statement in meeting.statements if statement.label in meeting.moving]
    pairs = [(first, second) for first, second in product(moving, moving) if first.meets(second)]
    yield from sorted(pairs, key=lambda pair: _drawn(meeting, *pair))[: int(PAIRS)]


def _drawn(meeting: Meeting, first: Statement, second: Statement) -> int:
    """Return a number that looks as if it were drawn, and is the same in each run."""
    return crc32(f"{meeting.name}|{first.label}|{second.label}".encode())
