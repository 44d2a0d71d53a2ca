"""Instants on the command line: reading them, and printing them in a zone and in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import click

from celery_pgbeat.cli.table import EMPTY, Column, print_table
from celery_pgbeat.cli.times import in_zone


def read_instant(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """Read an ISO 8601 date or date-time."""
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a date-time such as 2026-12-24T18:00:00Z") from None


def on_the_clock(instant: datetime, zone: str, *, milliseconds: bool = False) -> str:
    """Return the local time in the zone, with the weekday and the offset from UTC."""
    local = ZoneInfo(zone)
    return f"{instant.astimezone(local):%a} {in_zone(instant, local, milliseconds=milliseconds)}"


def in_utc(instant: datetime, *, milliseconds: bool = False) -> str:
    """Return the instant in UTC."""
    return in_zone(instant, timezone.utc, milliseconds=milliseconds)


def both_as_dict(instant: datetime, zone: str) -> dict[str, str]:
    """Return the instant in UTC and in the zone, as JSON has it."""
    return {
        "utc": instant.astimezone(timezone.utc).isoformat(),
        "local": instant.astimezone(ZoneInfo(zone)).isoformat(),
    }


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
    exact = any(gap.microseconds for gap in gaps)  # the first may be one that somebody has set
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
