"""Whether a schedule has a zone of its own in its text, and whether the zone of its row matters to it at all."""

from __future__ import annotations

from .parse import parse
from .wallclock.grid import Grid

# Two zones that no text names: what is read in both has its zone from elsewhere.
HERE, THERE = "Asia/Kathmandu", "Pacific/Marquesas"


def own_zone(text: str) -> str | None:
    """Return the zone that the text names, such as in `CRON_TZ=Asia/Tokyo 0 9 * * *`; None if it names none.

    Raises:
        InvalidSchedule: the text is wrong.

    Example:
        >>> own_zone("Mon..Fri 09:00 Europe/Berlin")
        'Europe/Berlin'
    """
    here, there = parse(text, HERE), parse(text, THERE)
    return here.timezone if here.timezone == there.timezone else None


def needs_zone(text: str) -> bool:
    """Return whether the occurrences depend on the zone of the row: not if the text names one, nor for elapsed time.

    Raises:
        InvalidSchedule: the text is wrong.

    Example:
        >>> needs_zone("0 9 * * *"), needs_zone("every 5m")
        (True, False)
    """
    schedule = parse(text, HERE)
    is_elapsed = schedule.kind == "interval" and isinstance(schedule.times, Grid)
    return not is_elapsed and own_zone(text) is None
