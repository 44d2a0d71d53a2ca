"""ISO 8601: a date or date-time (once), and repeating intervals `R5/start/end/step`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from ..durations import Duration
from ..interval.reader import read_duration, read_iso_interval, reading_at, steps_of
from ..kind import Parsed
from ..moments import Moment, read_moment
from ..source_text import PartError, SourceText
from ..wallclock.bounded import Bounded
from ..wallclock.dst import DATES, Repeat, Rule
from ..wallclock.grid import Instants
from ..wallclock.instants import EARLIEST, LATEST
from ..wallclock.protocols import Times
from ..wallclock.wall_times import WallTimes
from ..wallclock.zones import Zone

REPEATING = re.compile(r"R(\d*)/", re.ASCII | re.IGNORECASE)


NEGATIVE = re.compile(r"-P[\dT]", re.ASCII | re.IGNORECASE)


def is_repeating(body: str) -> bool:
    """Return whether a text begins as a repeating interval, or as a negative duration, which is refused."""
    return bool(REPEATING.match(body) or NEGATIVE.match(body))


def read_iso(source: SourceText) -> Parsed:
    """Read any ISO 8601 text that is a schedule: a repeating interval, an interval, or a single date."""
    if REPEATING.match(source.body):
        return read_repeating(source)
    if source.body.lstrip("-")[:1] in ("P", "p"):
        return read_iso_interval(source)
    return read_once(source)


def read_once(source: SourceText) -> Parsed:
    """Read a date (midnight) or a date-time; an offset in it wins over the zone in force."""
    zone = source.zone()
    moment = _moment(source)
    return Parsed("once", moment.text(), zone, _once(moment, zone, DATES[source.dst]))


def read_repeating(source: SourceText) -> Parsed:
    """Read `R[n]/[start/][end/]step`; n is the number of occurrences in all."""
    parts = _parts(source)
    zone = source.zone()
    # Without a start, steps are counted from the anchor of the row, which is no occurrence itself: `R/PT1H` first runs
    # an hour after it was set. A start in the text is the first occurrence.
    first = 0 if parts.start else 1
    last = None if parts.count is None else first + parts.count - 1
    anchor = None if parts.start else source.grid_start
    return Parsed("iso", parts.text(), zone, _times(source, parts, zone, first, last), anchor)


def _once(moment: Moment, zone: Zone, rule: Rule) -> Times:
    if moment.offset is not None:
        return Instants(moment.reading - moment.offset)
    return WallTimes(Instants(moment.reading), zone, Rule(rule.gap, Repeat.FIRST))


@dataclass(frozen=True, slots=True)
class Parts:
    """A repeating interval, taken apart."""

    count: int | None
    start: Moment | None
    end: Moment | None
    step: Duration

    def text(self) -> str:
        """Return the canonical text."""
        head = "R" if self.count is None else f"R{self.count}"
        moments = [moment.text() for moment in (self.start, self.end) if moment]
        return "/".join([head, *moments, self.step.text()])


def _parts(source: SourceText) -> Parts:
    match = REPEATING.match(source.body)
    if match is None:
        raise source.refuse("repetitions", "a repeating interval begins with R/ or R5/", source.at)
    count = min(int(match.group(1)), 10**12) if match.group(1) else None
    if count == 0:
        raise source.refuse("repetitions", "R0 never occurs: to run once, write a plain date-time", source.at)
    pieces, at = [], match.end()
    for text in source.body[at:].split("/"):
        pieces.append(replace(source.skip(at), body=text))
        at += len(text) + 1
    if len(pieces) > 3:
        raise source.refuse("parts", f"R/start/end/step has up to 3 parts after R, not {len(pieces)}", source.at)
    step = read_duration(_step(source, pieces))
    moments = [_moment(piece) for piece in pieces[:-1]]
    return Parts(count, moments[0] if moments else None, moments[1] if len(moments) > 1 else None, step)


def _step(source: SourceText, pieces: list[SourceText]) -> SourceText:
    """Return the last piece, which must be the step."""
    last = pieces[-1]
    if not last.body.lstrip("-+").upper().startswith("P"):
        raise source.refuse("interval", f"the last part must be a duration such as PT1H, not {last.body!r}", last.at)
    return last


def _moment(source: SourceText) -> Moment:
    try:
        moment = read_moment(source.body)
    except PartError as error:
        raise source.refuse(error.field, error.reason, source.at + error.at) from None
    if moment is None:
        raise source.refuse(
            "date", f"{source.body!r} is not a date or date-time such as 2026-12-08T12:00:00", source.at
        )
    return moment


def _times(source: SourceText, parts: Parts, zone: Zone, first: int, last: int | None) -> Times:
    start, reading = _start(source, parts.start, zone)
    times = steps_of(source, start, reading, parts.step, first, last)
    if parts.end is None:
        return times
    end = parts.end.instant(zone)
    if end < start:
        raise source.refuse("end", f"the end {parts.end.text()} lies before the start", source.at)
    return Bounded(times, EARLIEST, min(end, LATEST))


def _start(source: SourceText, start: Moment | None, zone: Zone) -> tuple[datetime, datetime]:
    if start is None:
        instant = source.grid_start
        return instant, reading_at(instant, zone)
    return start.instant(zone), start.reading_in(zone)
