"""Instants on the command line: reading them, and printing them in a zone and in UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, timezone
from functools import partial
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import click

from celery_pgbeat.cli.table import Column, print_table
from celery_pgbeat.cli.target import Target
from celery_pgbeat.cli.terminal import EMPTY
from celery_pgbeat.cli.times import in_zone
from celery_pgbeat.typed_instants import DAYS, parse_instant

DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def read_instant(ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """Read an option: a bare span such as `2d` lies in the past; what has no offset is in the app's zone."""
    found = _read(ctx, value, ahead=False)
    return found if found is None or found.tzinfo else found.replace(tzinfo=ZoneInfo(Target.of(ctx).timezone))


def read_coming_instant(ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """Read the value of an option or argument; a bare span such as `2d` lies in the future."""
    return _read(ctx, value, ahead=True)


def read_day_or_instant(ctx: click.Context, _param: click.Parameter, value: str | None) -> date | str | None:
    """Read an end of a range: a bare date is a date; a word for a day stays as it is, because its zone is the row's."""
    if value is not None and value.strip().lower() in DAYS:
        return value.strip().lower()
    with suppress(ValueError):
        if value is not None and DAY.fullmatch(value.strip()):
            return date.fromisoformat(value.strip())
    return _read(ctx, value, ahead=False)


def _read(ctx: click.Context, value: str | None, *, ahead: bool) -> datetime | None:
    if value is None:
        return None

    def today() -> date:
        return datetime.now(ZoneInfo(Target.of(ctx).timezone)).date()

    try:
        return parse_instant(value, datetime.now(timezone.utc), today, ahead=ahead)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


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
