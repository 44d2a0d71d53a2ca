"""What is known about a kind of schedule, and what its reader returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from .source_text import SourceText
    from .wallclock.protocols import Times
    from .wallclock.zones import Zone


class Parsed(NamedTuple):
    """What a reader found in a text; `parse.py` makes a Schedule of it.

    Attributes:
        kind: the name of a Kind: mostly the reader's own. ISO's reader also finds intervals and single dates.
        text: canonical text.
        zone: the zone in force.
        times: the instants.
        anchor: where the grid of an interval without a start of its own begins; None for other schedules.
    """

    kind: str
    text: str
    zone: Zone
    times: Times
    anchor: datetime | None = None


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Kind:
    """A kind of schedule: an entry of the registry.

    Attributes:
        name: what `Schedule.kind` is.
        example: a text of this kind, accepted without a prefix if the kind can be detected.
        prefixes: a text that begins with one of these words and a colon is given to this kind's reader.
        detects: whether a text without a prefix is of this kind; None for a kind that needs its prefix.
        read: reads a text.
        describe: canonical text -> plain English, without the zone.
        shortest_gap: no schedule of this kind has two occurrences closer than this; zero where only a look can tell.
        gap_sample: how many occurrences to look at for the check against `pgbeat_min_interval`.
        repeats: whether there can be more than one occurrence.
        counts_by_walking: whether `count` visits each occurrence, of which there is at most one a day; counting over
            many years is slow then.
        celery_class: the class of `celery.schedules` that monitors see; None where they see the text of the schedule.
        window_prefix: what is written before the canonical text in a list of blackout windows, to be easy to read.
        name_letter: only texts with this letter depend on the name of the row; "" if none does.
        anchored_starts: only texts that begin so (in lower case) depend on the anchor.
        with_anchor: makes the same instants with another anchor, or returns None if it cannot. `parse` need not read
            the text of an interval again for each anchor.
    """

    name: str
    example: str
    read: Callable[[SourceText], Parsed]
    describe: Callable[[str], str]
    prefixes: tuple[str, ...] = ()
    detects: Callable[[str], object] | None = None
    shortest_gap: timedelta = timedelta(0)
    gap_sample: int = 60
    repeats: bool = True
    counts_by_walking: bool = False
    celery_class: Literal["schedule", "crontab"] | None = None
    window_prefix: str = ""
    name_letter: str = ""
    anchored_starts: tuple[str, ...] = ()
    with_anchor: Callable[[Times, datetime], Times | None] | None = None
