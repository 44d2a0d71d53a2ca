"""Zones as periods of constant offset: found by probing, so compared with what zoneinfo says day by day."""

from __future__ import annotations

import importlib.resources
import struct
import zoneinfo
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules.wallclock.zones import PROBE, zone_named

UTC = timezone.utc
NAMES = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})


def compiled(name: str) -> bytes:
    """Return the file that zoneinfo reads: the system's, else the package's."""
    places = [Path(folder, name) for folder in zoneinfo.TZPATH]
    packaged = importlib.resources.files("tzdata.zoneinfo").joinpath(*name.split("/"))
    return next((place.read_bytes() for place in places if place.is_file()), None) or packaged.read_bytes()


def changes(name: str) -> list[datetime]:
    """Return when the zone's offset changes, read from the compiled file itself."""
    data = compiled(name)

    def header(at: int) -> tuple[int, ...]:
        return struct.unpack(">6l", data[at + 20 : at + 44])

    isut, isstd, leap, times, types, characters = header(0)
    at = 44 + times * 5 + types * 6 + characters + leap * 8 + isstd + isut
    times, types = header(at)[3:5]
    at += 44
    instants = struct.unpack(f">{times}q", data[at : at + 8 * times])
    at += 8 * times
    indexes = data[at : at + times]
    offsets = [struct.unpack(">l", data[at + times + 6 * i :][:4])[0] for i in range(types)]
    before, found = offsets[0], []
    for instant, index in zip(instants, indexes, strict=True):
        if offsets[index] != before:
            found.append(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=instant))
            before = offsets[index]
    return found


@pytest.mark.parametrize("names", [NAMES[start::40] for start in range(40)])
def test_every_change_of_every_zone_is_found(names):
    for name in names:
        known = [instant for instant in changes(name) if 1970 <= instant.year < 2037]
        zone, info = zone_named(name), zoneinfo.ZoneInfo(name)
        for instant in known:
            period = zone.period_at(instant)
            assert period.start == instant, name
            assert period.offset == instant.astimezone(info).utcoffset()
            assert period.before == (instant - timedelta(seconds=1)).astimezone(info).utcoffset()
            assert period.before == zone.offset_at(instant - timedelta(seconds=1))


def test_no_two_changes_lie_closer_together_than_a_probe():
    closest = min(later - sooner for name in NAMES for sooner, later in pairwise(changes(name)))

    assert closest > PROBE


def test_periods_tile_the_time_without_a_hole():
    zone, instant = zone_named("Africa/Casablanca"), datetime(2019, 6, 1, tzinfo=UTC)
    while instant.year < 2032:
        period = zone.period_at(instant)
        assert period.start <= instant < period.end
        instant = period.end


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Europe/Berln",
        "Europe",
        "localtime",
        "posixrules",
        "right/UTC",
        "../etc/passwd",
        "+01:00",
        "a" * 300,
        "x\0y",
    ],
)
def test_a_name_that_iana_does_not_have_is_refused(name):
    with pytest.raises(InvalidSchedule) as refused:
        zone_named(name)

    assert refused.value.field == "timezone"
    assert refused.value.reason.startswith("there is no time zone of that name; ")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("America/New York", "America/New_York"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Berln", "Europe/Berlin"),
        ("Louisville", "America/Louisville"),
        ("+00:00", "UTC"),
        ("CEST", None),
        ("West", "Australia/West"),
        ("Mars/Olympus", None),
        ("x" * 1_000_000, None),
    ],
)
def test_a_zone_that_may_have_been_meant_is_named_else_what_to_write(name, meant):
    with pytest.raises(InvalidSchedule) as refused:
        zone_named(name)

    way_out = f"did you mean {meant!r}?" if meant else "write an IANA name such as Europe/Berlin, not an offset or"
    assert f"; {way_out}" in refused.value.reason


@pytest.mark.parametrize(
    ("offset", "zone"),
    [("+02:00", "Etc/GMT-2"), ("UTC+3", "Etc/GMT-3"), ("gmt -0500", "Etc/GMT+5"), ("+05:30", None), ("+20:00", None)],
)
def test_in_the_place_of_an_offset_a_zone_is_named_that_always_has_it(offset, zone):
    with pytest.raises(InvalidSchedule, match="an offset is not a time zone: write a place such as ") as refused:
        zone_named(offset)

    assert zone is None or f", or {zone!r}, which is always " in refused.value.reason
    assert (zone is None) == ("Etc" not in refused.value.reason)


def test_utc_may_be_written_in_any_case():
    assert zone_named("utc").name == "UTC"
