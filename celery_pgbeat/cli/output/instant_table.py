"""A table of instants, in a zone and in UTC, with what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.terminal import EMPTY
from celery_pgbeat.cli.output.times import in_utc, on_the_clock


class Line(NamedTuple):
    """A line of the table: an instant, the occurrence from which it was moved, and a note."""

    instant: datetime
    moved_from: datetime | None
    note: str | None


def print_instants(
    instants: Sequence[datetime],
    zone: str,
    moved_from: Sequence[datetime | None] | None,
    notes: Sequence[str | None],
) -> None:
    """Print a table of instants, in the zone and in UTC, with what is known of them."""
    gaps = [later - earlier for earlier, later in pairwise(instants[1:])]
    exact = any(gap.microseconds for gap in gaps)  # a person may have set the first run
    clock = partial(on_the_clock, zone=zone, milliseconds=exact)
    columns = [Column(zone, "local", lambda line: clock(line.instant))]
    if zone != "UTC":
        columns.append(Column("UTC", "utc", lambda line: in_utc(line.instant, milliseconds=exact), rank=1))
    if moved_from is not None and any(moved_from):
        columns.append(
            Column("MOVED FROM", "planned_for", lambda line: clock(line.moved_from) if line.moved_from else EMPTY)
        )
    if any(notes):
        columns.append(Column("NOTE", "note", lambda line: line.note or EMPTY, beneath=True))
    print_table(columns, [*map(Line, instants, moved_from or [None] * len(instants), notes)])
