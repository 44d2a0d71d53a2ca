"""Compares what another scheduler has sent with what our beats have sent, or would have sent in shadow. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

NOTHING: Sequence[datetime] = ()
LEFT_OUT = 1.5  # periods without a run
MOST_DRIFT = 0.02  # of the runs: Celery's beat loses some milliseconds with each; more is another period


@dataclass(frozen=True, slots=True)
class Compared:
    """What both schedulers did of one name.

    Attributes:
        both: how many runs both have sent.
        only_theirs: when only the other one has sent it.
        only_ours: the occurrences that only ours have.
        is_open: it has only runs so near to the ends of the time compared that their counterpart may lie outside.
        drifted: how many runs of an interval ours have more, only because the other one counts it from its last run.
    """

    name: str
    both: int
    only_theirs: Sequence[datetime]
    only_ours: Sequence[datetime]
    is_open: bool
    drifted: int = 0

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return bool(self.only_theirs or self.only_ours)


def compare(
    theirs: Mapping[str, Sequence[datetime]],
    ours: Mapping[str, Sequence[datetime]],
    periods: Mapping[str, timedelta],
    within: timedelta,
    since: datetime,
    until: datetime,
) -> Iterator[Compared]:
    """Compare all that both have sent from one instant to another, by name.

    What has no counterpart is a difference only if it is further from both ends than its tolerance: nearer, its
    counterpart may lie outside. The tolerance of an interval is its period, because the two may count it from different
    instants. Where the other one counts it from its last run, it drifts, and after hundreds of runs it has one fewer:
    that is no difference as long as it never left out a run.

    Args:
        theirs: when each entry was sent, in order.
        ours: the occurrences of each row, in order.
        periods: of the names that have an interval.
        within: the tolerance, or the least one of an interval.
        since: from when on both are known.
        until: up to when.

    Example:
        >>> from datetime import timezone
        >>> noon, second = datetime(2026, 12, 24, 12, tzinfo=timezone.utc), timedelta(seconds=1)
        >>> sent, ends = [noon, noon + 60 * second], (noon - 60 * second, noon + 120 * second)
        >>> (found,) = compare({"poll": sent}, {"poll": [noon + second]}, {}, 5 * second, *ends)
        >>> found.both, found.only_theirs == sent[1:], found.only_ours
        (1, True, [])
    """
    for name in sorted({*theirs, *ours}):
        period = periods.get(name)
        tolerance = within if period is None else max(within, period)
        sent = [instant for instant in theirs.get(name, NOTHING) if since <= instant <= until]
        both, *alone = _matched(
            sent, [instant for instant in ours.get(name, NOTHING) if since <= instant <= until], tolerance
        )
        if both or any(alone):
            first, last = since + tolerance, until - tolerance
            only_theirs, only_ours = ([instant for instant in some if first <= instant <= last] for some in alone)
            drifted = 0
            if (
                only_ours
                and not only_theirs
                and period is not None
                and len(only_ours) <= 1 + both * MOST_DRIFT
                and _never_left_out([since, *sent, until], period)
            ):
                drifted, only_ours = len(only_ours), []
            yield Compared(name, both, only_theirs, only_ours, not (both or only_theirs or only_ours), drifted)


def unsent(
    theirs: Mapping[str, Sequence[datetime]],
    shadowed: Mapping[str, Sequence[datetime]],
    periods: Mapping[str, timedelta],
    within: timedelta,
) -> dict[str, list[datetime]]:
    """Return what no scheduler has sent after the other one has stopped: what is only recorded in shadow, by name.

    Of each name that is what comes after its last run there; of an interval, what is due a period after that or later.

    Args:
        theirs: when each entry was sent, in order.
        shadowed: the occurrences of each row that are recorded in shadow, in order.
        periods: of the names that have an interval, which the two schedulers may count from different instants.
        within: how much earlier than an occurrence the other scheduler may have sent it.

    Example:
        >>> from datetime import timezone
        >>> noon, second = datetime(2026, 12, 24, 12, tzinfo=timezone.utc), timedelta(seconds=1)
        >>> recorded = [noon + number * 10 * second for number in range(4)]
        >>> found = unsent({"poll": [noon, noon + 10 * second]}, {"poll": recorded}, {"poll": 10 * second}, second)
        >>> found == {"poll": recorded[2:]}
        True
    """
    found = {}
    for name, occurrences in shadowed.items():
        sent = theirs.get(name, NOTHING)
        period = periods.get(name)
        after = sent[-1] if sent else None
        tolerance = within if period is None else min(within, period / 2)
        if after is not None:
            after = after + tolerance if period is None else after + period - tolerance
        left = [one for one in occurrences if after is None or one > after]
        if left:
            found[name] = left
    return found


def _never_left_out(instants: Sequence[datetime], period: timedelta) -> bool:
    """Tell whether an interval had a run each period; a beat that is a little late leaves none out."""
    return all(after - before < LEFT_OUT * period for before, after in pairwise(instants))


def _matched(
    theirs: Sequence[datetime], ours: Sequence[datetime], tolerance: timedelta
) -> tuple[int, list[datetime], list[datetime]]:
    """Match the instants one to one, as many as can be; return how many, and what is left on each side.

    Both are in order, so the earlier one of two that are too far from each other has no counterpart at all.
    """
    both, place = 0, 0
    only_theirs: list[datetime] = []
    only_ours: list[datetime] = []
    for instant in theirs:
        while place < len(ours) and ours[place] < instant - tolerance:
            only_ours.append(ours[place])
            place += 1
        if place < len(ours) and ours[place] <= instant + tolerance:
            both += 1
            place += 1
        else:
            only_theirs.append(instant)
    return both, only_theirs, [*only_ours, *ours[place:]]
