"""Reads what was typed into the fields of a form."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules.wallclock.zones import zone_named
from celery_pgbeat.texts.typed_instants import DAYS, FORMS, parse_instant
from celery_pgbeat.web.form import Form, Wrong


def typed_instant(form: Form, name: str, now: datetime) -> datetime | None:
    """Return an instant that is still to come, in the zone that the form names; None if nothing was typed.

    Raises:
        Wrong: it is none.
    """
    text = form.text(name)
    if text is None:
        return None
    zone = _zone_of(form, name)
    try:
        instant = parse_instant(text, now, lambda: now.astimezone(zone).date(), ahead=True)
    except ValueError as error:
        raise Wrong(name, str(error)) from None
    return instant if instant.tzinfo else instant.replace(tzinfo=zone)


def _zone_of(form: Form, name: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone_named(form.text("zone") or "UTC").name)
    except InvalidSchedule as error:
        raise Wrong(name, str(error)) from None


def typed_end(form: Form, name: str, now: datetime, zone: str) -> date:
    """Return an end of a range: a day, or an instant; a naive one is on the clocks of the periodic task.

    Raises:
        Wrong: it is neither.
    """
    text = form.required(name)
    today = now.astimezone(ZoneInfo(zone_named(zone).name)).date()
    if text.lower() in DAYS:
        return parse_instant(text, now, lambda: today).date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        return parse_instant(text, now, lambda: today)
    except ValueError:
        raise Wrong(name, f"{text!r} is neither a day nor an instant: write {FORMS}") from None


def typed_number(form: Form, name: str) -> int | None:
    """Return a whole number; None if nothing was typed.

    Raises:
        Wrong: it is none.
    """
    text = form.text(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Wrong(name, "This is not a whole number.")
    return int(text)


def typed_json(form: Form, name: str, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    """Return JSON of this kind; None if nothing was typed. An error does not quote it: it may be secret.

    Raises:
        Wrong: it is not JSON, or of another kind.
    """
    text = form.text(name)
    if text is None:
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise Wrong(name, f"This is not JSON: {error.msg}, at line {error.lineno}, column {error.colno}.") from None
    except (ValueError, RecursionError):
        raise Wrong(name, "This is not JSON that can be read: it is nested too deeply, or a number too long.") from None
    if not isinstance(value, kind):
        wanted = "an array, such as [1, 2]" if kind is list else 'an object, such as {"day": 1}'
        raise Wrong(name, f"This is JSON, but not {wanted}.")
    return value
