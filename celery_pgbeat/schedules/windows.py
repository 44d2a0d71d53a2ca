"""Blackout windows: times during which nothing may start.

A window is an opener, any schedule, and a duration: `cron: 0 0 * * sat P2D`. It is half open, [opening, opening +
duration), with days counted by the wall clock of the opener's zone. All windows of one schedule have one length, so
the last one to open is the last one to close, and only that one is computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from operator import itemgetter

from celery_pgbeat.errors import InvalidSchedule

from .durations import Duration, DurationError, read_iso
from .parse import parse
from .rrule.text import is_recurrence_set
from .schedule import Schedule
from .wallclock.instants import EPOCH, LATEST, MICROSECOND, as_utc, horizon_after, within_reach
from .wallclock.wall_times import first_instant_of
from .wallclock.zones import zone_named
from .words import duration_in_words

MOST_WINDOWS = 20
MOST_TEXTS = 20  # each may refer to windows by name; a longer list is refused before any of it is read
LONGEST_TEXT = 4_250  # characters: a recurrence set and a duration, with room
LONGEST_CHAIN = 1_000  # windows, one following the other without a free moment between
CHECKED = 4_000  # openings computed for the check at definition, before it begins no further chain; some 5 µs each

NAMED = re.compile(r"window\s*:\s*(.*)", re.ASCII | re.IGNORECASE | re.DOTALL)
SHORT = re.compile(r"\d+[smhdw]", re.ASCII | re.IGNORECASE)  # a duration as intervals may have it
LAST_WORD = re.compile(r"(.*\S)\s+(\S+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Window:
    """Stretches of one length that begin at a schedule's occurrences."""

    opener: Schedule
    length: Duration

    def covering(self, instant: datetime) -> tuple[datetime, datetime] | None:
        """Return when the window that covers the instant opened and when it closes, or None if none does."""
        opening = self.opener.previous(instant + MICROSECOND)
        if opening is None:
            return None
        closing = self._closing_of(opening)
        return (opening, closing) if closing > instant else None

    def _closing_of(self, opening: datetime) -> datetime:
        try:
            return min(self._after_length(opening), LATEST)
        except OverflowError:  # later than any calendar
            return LATEST

    def _after_length(self, opening: datetime) -> datetime:
        if not self.length.has_date_part():
            return opening + self.length.elapsed
        zone = zone_named(self.opener.timezone)
        return (
            first_instant_of(self.length.after_date_parts(opening + zone.offset_at(opening)), zone)
            + self.length.elapsed
        )

    @property
    def text(self) -> str:
        """The canonical text."""
        prefix = "" if ":" in self.opener.text.partition(" ")[0] else self.opener.kind_info.window_prefix
        return f"{prefix}{self.opener.text} {self.length.text()}"


@dataclass(frozen=True, slots=True)
class Windows:
    """Any number of windows, taken together.

    Attributes:
        windows: each of them; none at all covers nothing.

    Example:
        >>> from datetime import datetime, timezone
        >>> from celery_pgbeat.schedules import parse_windows
        >>> night = parse_windows("cron: 0 0 * * * PT5H", "UTC")
        >>> night.defer(datetime(2026, 12, 7, 2, 30, tzinfo=timezone.utc)).isoformat()
        '2026-12-07T05:00:00+00:00'
    """

    windows: tuple[Window, ...]

    @property
    def text(self) -> str:
        """The canonical text: the windows, with `;` between them (which an RRULE opener would not survive)."""
        return "; ".join(window.text for window in self.windows)

    def covers(self, instant: datetime) -> bool:
        """Return whether the instant is in a window.

        Raises:
            ValueError: `instant` is naive.
        """
        return self._closing(within_reach(as_utc(instant))) is not None

    def defer(self, instant: datetime) -> datetime | None:
        """Return the instant itself if it is free, else the first free one after it.

        None means that more than 1,000 windows, or 100 years, follow without a free moment.

        Raises:
            ValueError: `instant` is naive.
        """
        free = within_reach(as_utc(instant))
        horizon = horizon_after(free)
        for _ in range(LONGEST_CHAIN):
            closing = self._closing(free)
            if closing is None:
                return free
            if closing > horizon:
                return None
            free = closing
        return None

    def since(self, instant: datetime) -> datetime | None:
        """Return since when there has been no free moment: when the first of the windows opened that cover the instant.

        None means that the instant is free, or that more than 1,000 windows precede it without a free moment.

        Raises:
            ValueError: `instant` is naive.
        """
        blocked = within_reach(as_utc(instant))
        opening = None
        for _ in range(LONGEST_CHAIN):
            covering = [found for window in self.windows if (found := window.covering(blocked)) is not None]
            if not covering:
                return opening
            opening = min(covering)[0]
            blocked = opening - MICROSECOND
        return None

    def stretches(self, after: datetime) -> Iterator[tuple[datetime, datetime | None]]:
        """Iterate over the stretches without a free moment that end later than `after`: when they open and close.

        The last one has no closing if it never ends, or only after more than 1,000 windows or 100 years.

        Raises:
            ValueError: `after` is naive.
        """
        closing: datetime | None = within_reach(as_utc(after))
        opening = self.since(after)
        while closing is not None and (opening := opening or self._next_opening(closing)) is not None:
            closing = self.defer(opening)
            yield opening, closing
            opening = None

    def describe(self) -> str:
        """Return the windows in plain English words."""
        return "; ".join(
            f"{window.opener.describe()} for {duration_in_words(window.length)}" for window in self.windows
        )

    def _next_opening(self, after: datetime) -> datetime | None:
        openings = (window.opener.next(after) for window in self.windows)
        return min((opening for opening in openings if opening is not None), default=None)

    def _closing(self, instant: datetime) -> datetime | None:
        if instant >= LATEST - MICROSECOND:
            return None
        covering = (window.covering(instant) for window in self.windows)
        return max((found[1] for found in covering if found is not None), default=None)


def parse_windows(
    text: str | Sequence[str], timezone: str = "UTC", *, named: Mapping[str, Windows] | None = None
) -> Windows:
    """Read blackout windows.

    Args:
        text: windows with `;` between them, or several such texts. An RRULE opener has a text of its own.
        timezone: IANA name of the zone whose wall clock counts; a zone in an opener wins for that window.
        named: what `window: name` stands for.

    Raises:
        InvalidSchedule: a window is wrong, or together they never leave a free moment.

    Example:
        >>> parse_windows("cron: 0 0 * * sat P2D; cron: 0 0 * * * PT5H", "UTC").text
        'cron: 0 0 * * 6 P2D; cron: 0 0 * * * PT5H'
    """
    texts = (text,) if isinstance(text, str) else tuple(text)
    reason = too_much(texts)
    if reason is not None:
        raise InvalidSchedule("; ".join(texts[:MOST_TEXTS]), "blackout", reason)
    return _parse_windows(texts, timezone, tuple(sorted((named or {}).items(), key=itemgetter(0))))


@lru_cache(maxsize=1024)
def _parse_windows(texts: tuple[str, ...], timezone: str, named: tuple[tuple[str, Windows], ...]) -> Windows:
    found = [window for whole in texts for window in _read_all(whole, timezone, dict(named))]
    shown = "; ".join(texts)
    if len(found) > MOST_WINDOWS:
        raise InvalidSchedule(shown, "blackout", f"there are {len(found)} windows, more than {MOST_WINDOWS}")
    windows = Windows(tuple(dict.fromkeys(found)))
    reason = _never_free(windows)
    if reason is not None:
        raise InvalidSchedule(shown, "blackout", reason)
    return windows


def too_much(texts: Sequence[str]) -> str | None:
    """Return why these texts are too many or too long, None if they are not.

    Example:
        >>> too_much(["window: weekend"] * 21)
        'blackout has 21 elements, more than 20'
    """
    if len(texts) > MOST_TEXTS:
        return f"blackout has {len(texts)} elements, more than {MOST_TEXTS}"
    longest = max(map(len, texts), default=0)
    return (
        f"blackout has an element of {longest} characters, more than {LONGEST_TEXT}" if longest > LONGEST_TEXT else None
    )


def names_in(texts: Sequence[str]) -> frozenset[str]:
    """Return the names that `window: name` refers to in these texts.

    Example:
        >>> names_in(["cron: 0 0 * * * PT5H; window: weekend"])
        frozenset({'weekend'})
    """
    references = (NAMED.fullmatch(body) for text in texts for body, _ in _bodies(text))
    return frozenset(match.group(1) for match in references if match and match.group(1))


def _bodies(text: str) -> Iterator[tuple[str, int]]:
    """Yield each window of a text, with its offset."""
    at = 0
    for part in [text] if is_recurrence_set(text) else text.split(";"):
        yield part.strip(), at + len(part) - len(part.lstrip())
        at += len(part) + 1


def _read_all(text: str, timezone: str, named: Mapping[str, Windows]) -> Iterator[Window]:
    for body, at in _bodies(text):
        if match := NAMED.fullmatch(body):
            yield from _named(text, match.group(1), at + match.start(1), named)
        else:
            yield _read(text, body, at, timezone)


def _named(text: str, name: str, at: int, named: Mapping[str, Windows]) -> tuple[Window, ...]:
    if name not in named:
        raise InvalidSchedule(text, "window", f"there is no blackout window named {name!r}", at)
    return named[name].windows


def _read(text: str, body: str, at: int, timezone: str) -> Window:
    match = LAST_WORD.fullmatch(body)
    if match is not None and SHORT.fullmatch(match.group(2)):
        short = match.group(2).upper()
        iso = f"P{'' if short[-1] in 'DW' else 'T'}{short}"
        reason = f"a duration must be in ISO 8601: write {iso} instead of {match.group(2)!r}"
        raise InvalidSchedule(text, "duration", reason, at + match.start(2))
    if match is None or not match.group(2).lstrip("-+").upper().startswith("P"):
        raise InvalidSchedule(
            text, "window", f"{body!r} is not a schedule and a duration, such as cron: 0 0 * * * PT5H", at
        )
    opener, length = match.groups()
    try:
        return Window(parse(opener, timezone), read_iso(length))
    except DurationError as error:
        raise InvalidSchedule(text, "window", error.reason, at + match.start(2)) from None
    except InvalidSchedule as error:
        if error.field == "timezone":
            raise
        raise InvalidSchedule(text, error.field, error.reason, at + (error.position or 0)) from None


def _never_free(windows: Windows) -> str | None:
    """Return why some window's first opening begins a chain that is too long, within a bounded search."""
    asked = 0
    for window in windows.windows:
        opening = window.opener.next(EPOCH)
        if opening is None or asked > CHECKED:
            continue
        horizon = horizon_after(opening)
        for _ in range(LONGEST_CHAIN):
            asked += len(windows.windows)
            closing = windows._closing(opening)
            if closing is None:
                break
            if closing > horizon:
                return "there is no free moment for 100 years"
            opening = closing
        else:
            return f"more than {LONGEST_CHAIN:,} windows follow each other without a free moment"
    return None
