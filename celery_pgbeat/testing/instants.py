"""Instants as a test writes them and as failures show them."""

from __future__ import annotations

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from celery_pgbeat.schedules.wallclock.zones import zone_named


def at(when: datetime | str) -> datetime:
    """Return an instant, aware and in UTC, from how a person writes it.

    Args:
        when: an aware datetime; ISO 8601 with an offset or `Z`; or a date-time and the zone whose clocks show it.
            If they show it twice, this is the first time: write the offset for the second.

    Raises:
        ValueError: it is no instant, has no zone, or the clocks of that zone never show it.
        InvalidSchedule: there is no such zone.

    Example:
        >>> at("2026-03-29 03:00 Europe/Berlin")
        datetime.datetime(2026, 3, 29, 1, 0, tzinfo=datetime.timezone.utc)
        >>> at("2026-03-29T01:00Z") == at("2026-03-29T03:00+02:00") == at("2026-03-29 03:00 Europe/Berlin")
        True
        >>> at("2026-03-29 02:30 Europe/Berlin")
        Traceback (most recent call last):
            ...
        ValueError: '2026-03-29 02:30 Europe/Berlin' never is: the clocks there go forward over it
    """
    if isinstance(when, datetime):
        return _in_utc(when, repr(when))
    text, zone = when.strip(), None
    head, _, last = text.rpartition(" ")
    if head and last[0].isalpha():
        text, zone = head, last
    try:
        read = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(
            f"{when!r} is no instant: write it as '2026-12-24T18:00Z' or '2026-12-24 19:00 Europe/Berlin'"
        ) from None
    return _in_utc(read, repr(when)) if zone is None else _on_the_clock(read, zone, when)


def shown(instant: datetime, zone: str | None) -> str:
    """Return what a clock in the zone shows, with the weekday and the offset from UTC."""
    local = instant.astimezone(ZoneInfo(zone or "UTC"))
    return f"{local:%a} {local.isoformat(' ')}"


def _in_utc(instant: datetime, written: str) -> datetime:
    if instant.tzinfo is None:
        raise ValueError(f"{written} has no zone: add an offset, a Z, or the name of a zone after a space")
    return instant.astimezone(timezone.utc)


def _on_the_clock(read: datetime, zone: str, written: str) -> datetime:
    if read.tzinfo is not None:
        raise ValueError(f"{written!r} has an offset and a zone: give one of them")
    zone_named(zone)
    there = ZoneInfo(zone)
    instant = read.replace(tzinfo=there).astimezone(timezone.utc)
    if instant.astimezone(there).replace(tzinfo=None) != read:
        raise ValueError(f"{written!r} never is: the clocks there go forward over it")
    return instant
