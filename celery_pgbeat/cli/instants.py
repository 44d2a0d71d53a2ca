"""Instants on the command line: reading them, and printing them in a zone and in UTC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import click

from celery_pgbeat.cli.output import print_columns


def read_instant(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """Read an ISO 8601 date or date-time."""
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a date-time such as 2026-12-24T18:00:00Z") from None


def on_the_clock(instant: datetime, zone: str) -> str:
    """Return the local time in the zone, with the weekday and the offset from UTC."""
    local = instant.astimezone(ZoneInfo(zone))
    return f"{local:%a} {local.isoformat(' ', _exactness(instant))}"


def in_utc(instant: datetime) -> str:
    """Return the instant in UTC, to the millisecond where it has any."""
    return instant.astimezone(timezone.utc).replace(tzinfo=None).isoformat(" ", _exactness(instant)) + "Z"


def both_as_dict(instant: datetime, zone: str) -> dict[str, str]:
    """Return the instant in UTC and in the zone, as JSON has it."""
    return {
        "utc": instant.astimezone(timezone.utc).isoformat(),
        "local": instant.astimezone(ZoneInfo(zone)).isoformat(),
    }


def print_instants(instants: Sequence[datetime], zone: str, remarks: Mapping[str, Sequence[str]]) -> None:
    """Print a table of instants, in the zone and in UTC, with the columns of remarks that are not empty."""
    columns = {zone: [on_the_clock(instant, zone) for instant in instants]}
    if zone != "UTC":
        columns["UTC"] = [in_utc(instant) for instant in instants]
    print_columns({**columns, **{name: column for name, column in remarks.items() if any(column)}})


def _exactness(instant: datetime) -> str:
    return "milliseconds" if instant.microsecond else "seconds"
