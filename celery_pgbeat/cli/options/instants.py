"""Instants on the command line."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime, timezone
from zoneinfo import ZoneInfo

import click

from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.texts.typed_instants import DAYS, parse_instant

DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def read_instant(ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """Read an option: a bare duration such as `2d` lies in the past; what has no offset is in the app's zone."""
    found = _read(ctx, value, ahead=False)
    return found if found is None or found.tzinfo else found.replace(tzinfo=ZoneInfo(Target.of(ctx).timezone))


def read_coming_instant(ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """Read the value of an option or argument; a bare duration such as `2d` lies in the future."""
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
