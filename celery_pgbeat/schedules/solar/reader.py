"""Solar events: `solar: sunset 52.52 13.40`, Celery's own nine, computed by ephem.

ephem computes the next sunset after an instant, and the result moves by some milliseconds with that instant. So that
there is one set of instants, the event of each day is computed from that day's local midnight, and cut to the second.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from ..kind import Parsed
from ..source_text import SourceText, Word
from ..wallclock.instants import EPOCH, UTC, horizon_after, horizon_before

DAY = timedelta(days=1)
LONGEST_WAIT = 400  # days; a polar night takes half a year


class Event(NamedTuple):
    """The method of ephem for a passage of the sun, and its height in degrees."""

    method: str
    horizon: str
    use_center: bool = False


EVENTS = {
    "dawn_astronomical": Event("next_rising", "-18", use_center=True),
    "dawn_nautical": Event("next_rising", "-12", use_center=True),
    "dawn_civil": Event("next_rising", "-6", use_center=True),
    "sunrise": Event("next_rising", "-0:34"),
    "solar_noon": Event("next_transit", "0"),
    "sunset": Event("next_setting", "-0:34"),
    "dusk_civil": Event("next_setting", "-6", use_center=True),
    "dusk_nautical": Event("next_setting", "-12", use_center=True),
    "dusk_astronomical": Event("next_setting", "-18", use_center=True),
}


def read_solar(source: SourceText) -> Parsed:
    """Read an event, a latitude and a longitude in degrees."""
    words = source.words()
    if len(words) != 3:
        raise source.refuse("solar", "a solar event is written 'solar: sunset 52.52 13.40'", source.at)
    event = words[0].text.lower()
    if event not in EVENTS:
        raise source.refuse("event", f"event {words[0].text!r} is not one of {', '.join(EVENTS)}", words[0].at)
    latitude = _degrees(source, "latitude", words[1], 90)
    longitude = _degrees(source, "longitude", words[2], 180)
    try:
        import ephem
    except ImportError:
        raise source.refuse("solar", "a solar event needs the extra celery-pgbeat[solar]", source.at) from None
    text = f"solar: {event} {latitude:.10g} {longitude:.10g}"
    return Parsed("solar", text, source.zone(), SolarTimes(ephem, EVENTS[event], latitude, longitude))


def describe_solar(text: str) -> str:
    """Return a canonical text in words."""
    _, event, latitude, longitude = text.split()
    return f"at {event.replace('_', ' ')} at latitude {latitude}, longitude {longitude}"


def _degrees(source: SourceText, field: str, word: Word, limit: int) -> float:
    try:
        degrees = float(word.text)
    except ValueError:
        raise source.refuse(field, f"{field} {word.text!r} is not a number of degrees", word.at) from None
    if not -limit <= degrees <= limit:
        raise source.refuse(field, f"{field} {word.text} is not in -{limit}..{limit}", word.at)
    return degrees


class SolarTimes:
    """The instants of one event at one place. `count` visits each day: some 50 µs a day."""

    __slots__ = ("_ephem", "_event", "_latitude", "_longitude", "_on")

    def __init__(self, ephem: Any, event: Event, latitude: float, longitude: float) -> None:
        self._ephem = ephem
        self._event = event
        self._latitude = latitude
        self._longitude = longitude
        self._on = lru_cache(maxsize=1024)(self._compute)

    def following(self, after: datetime) -> datetime | None:
        """Return the first instant strictly later than `after`, or None."""
        limit = after + min(LONGEST_WAIT * DAY, horizon_after(after) - after)
        day = after.date() - DAY
        while day <= limit.date():
            found = self._on(day)
            if found is not None and found > after:
                return found
            day += DAY
        return None

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last instant strictly earlier than `before`, or None."""
        limit = before - min(LONGEST_WAIT * DAY, before - horizon_before(before))
        day = before.date() + DAY
        while day >= limit.date():
            found = self._on(day)
            if found is not None and found < before:
                return found
            day -= DAY
        return None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many instants lie in (after, until]."""
        total, found = 0, self.following(after)
        while found is not None and found <= until:
            total, found = total + 1, self.following(found)
        return total

    def _compute(self, day: date) -> datetime | None:
        """Return the event between that day's local midnight and the next, or None."""
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(hours=self._longitude / 15)
        place = self._ephem.Observer()
        place.lat, place.lon = str(self._latitude), str(self._longitude)
        place.elev, place.pressure, place.horizon = 0, 0, self._event.horizon
        options = {"use_center": True} if self._event.use_center else {}
        try:
            passage = getattr(place, self._event.method)(
                self._ephem.Sun(), start=self._ephem.Date(midnight.replace(tzinfo=None)), **options
            )
        except self._ephem.CircumpolarError:  # midnight sun or polar night
            return None
        seconds = int((passage.datetime().replace(tzinfo=UTC) - EPOCH).total_seconds())
        found = EPOCH + timedelta(seconds=seconds)
        return found if midnight <= found < midnight + DAY else None
