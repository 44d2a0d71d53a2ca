"""All kinds of schedules, in one table.

A new kind is a folder and an entry here, and a branch in `definitions/internal/kinds.sql`, which recognises
texts when a row is written in SQL. `tests/interfaces/test_validation.py` fails for a kind that SQL refuses.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

from .calendar.reader import is_calendar, read_calendar
from .calendar.words import describe_calendar
from .cron.reader import is_cron, read_cron, read_crontab
from .cron.words import describe_cron
from .interval.reader import is_interval, read_interval, with_anchor
from .interval.words import describe_interval
from .iso.reader import is_repeating, read_iso, read_once
from .iso.words import describe_once, describe_repeating
from .kind import Kind
from .moments import MOMENT
from .rrule.reader import read_rrule
from .rrule.text import is_rrule
from .rrule.words import describe_rrule
from .solar.reader import describe_solar, read_solar

KEPT = 8192  # texts


class Dependencies(NamedTuple):
    """What the schedule of a text depends on besides the text, its zone and its DST rule.

    Attributes:
        name: whether the name of the row may decide when it occurs.
        anchor: whether the anchor may.
        movable: whether it can be made from a schedule with another anchor, without reading the text again. No such
            text is refused because of its anchor.
    """

    name: bool
    anchor: bool
    movable: bool


class Kinds:
    """Kinds of schedules, in the order in which a text without a prefix is offered to them.

    Attributes:
        all: the kinds.
        dependencies: returns the Dependencies of a text. Remembered, because planning needs them for each row.
    """

    def __init__(self, *kinds: Kind) -> None:
        self.all = kinds
        self.dependencies = lru_cache(maxsize=KEPT)(self._dependencies)
        self._by_name = {kind.name: kind for kind in kinds}
        self._by_prefix = {prefix: kind for kind in kinds for prefix in kind.prefixes}
        self._prefix = re.compile(rf"({'|'.join(self._by_prefix)})\s*:", re.ASCII | re.IGNORECASE)
        self._name_letters = {kind.name_letter for kind in kinds if kind.name_letter}
        self._anchored_starts = tuple(start for kind in kinds for start in kind.anchored_starts)
        self._movable_starts = tuple(start for kind in kinds if kind.with_anchor for start in kind.anchored_starts)

    def __getitem__(self, name: str) -> Kind:
        return self._by_name[name]

    def recognise(self, body: str) -> tuple[Kind, int] | None:
        """Return the kind of a text, and the length of the prefix that names it; None if the text is of no kind."""
        if match := self._prefix.match(body):
            return self._by_prefix[match.group(1).lower()], match.end()
        return next(((kind, 0) for kind in self.all if kind.detects and kind.detects(body)), None)

    def _dependencies(self, text: str) -> Dependencies:
        body = text.lstrip().lower()
        return Dependencies(
            name=any(letter in text for letter in self._name_letters),
            anchor=body.startswith(self._anchored_starts),
            movable=body.startswith(self._movable_starts),
        )


KINDS = Kinds(
    Kind(
        name="interval",
        example="every 30s",
        prefixes=("every",),
        detects=is_interval,
        read=read_interval,
        describe=describe_interval,
        gap_sample=2,
        celery_class="schedule",
        anchored_starts=("every", "@every", "p"),
        with_anchor=with_anchor,
    ),
    Kind(
        name="rrule",
        example="RRULE:FREQ=MONTHLY;BYDAY=-1FR",
        detects=is_rrule,
        read=read_rrule,
        describe=describe_rrule,
        shortest_gap=timedelta(seconds=1),
        anchored_starts=("rrule", "dtstart", "rdate", "exdate", "exrule", "freq="),
    ),
    Kind(
        name="iso",
        example="R/PT1H",
        prefixes=("iso",),
        detects=is_repeating,
        read=read_iso,
        describe=describe_repeating,
        anchored_starts=("r", "iso"),
    ),
    Kind(
        name="once",
        example="2026-12-09T09:00:00",
        detects=MOMENT.fullmatch,
        read=read_once,
        describe=describe_once,
        shortest_gap=timedelta.max,
        repeats=False,
    ),
    Kind(
        name="calendar",
        example="Mon..Fri 09:00",
        prefixes=("calendar",),
        detects=is_calendar,
        read=read_calendar,
        describe=describe_calendar,
        window_prefix="calendar: ",
    ),
    Kind(
        name="cron",
        example="*/5 * * * *",
        prefixes=("cron",),
        detects=is_cron,
        read=read_cron,
        describe=describe_cron,
        shortest_gap=timedelta(seconds=1),
        celery_class="crontab",
        window_prefix="cron: ",
        name_letter="H",
    ),
    Kind(
        name="crontab",
        example="crontab: 0 9 * * mon-fri",
        prefixes=("crontab",),
        read=read_crontab,
        describe=describe_cron,
        shortest_gap=timedelta(minutes=1),
        celery_class="crontab",
        name_letter="H",
    ),
    Kind(
        name="solar",
        example="solar: sunset 52.52 13.40",
        prefixes=("solar",),
        read=read_solar,
        describe=describe_solar,
        shortest_gap=timedelta(hours=1),
        counts_by_walking=True,
    ),
)
