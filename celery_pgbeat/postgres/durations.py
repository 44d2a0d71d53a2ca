"""Durations between Python and Postgres.

Postgres returns them as whole microseconds, in columns whose names end so.

The text of an interval depends on the IntervalStyle of a server, a database or a role, and the drivers read some of
these texts wrongly. So no statement returns an interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

UNIT = "_microseconds"  # the end of such a column's name
MOST_SECONDS = 2**31 - 1  # the longest duration that Postgres 13 and 14 read from a number without a unit


def duration_of(microseconds: int | None) -> timedelta | None:
    """Return the duration of such a column."""
    return None if microseconds is None else timedelta(microseconds=microseconds)


def with_durations(columns: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a row by column, its durations as timedelta under their own names.

    Example:
        >>> with_durations([("name", "nightly"), ("jitter_microseconds", 1_500_000), ("min_gap_microseconds", None)])
        {'name': 'nightly', 'jitter': datetime.timedelta(seconds=1, microseconds=500000), 'min_gap': None}
    """
    return {
        column.removesuffix(UNIT): duration_of(value) if column.endswith(UNIT) else value for column, value in columns
    }


def as_written(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of JSON values, its durations in seconds, in a form that every version of Postgres reads.

    A `catchup_window` may be longer than 68 years, the only duration that may.

    Example:
        >>> as_written({"name": "nightly", "catchup_window": 3_110_400_000.0})
        {'name': 'nightly', 'catchup_window': '864000:00:00.000000'}
    """
    seconds = record.get("catchup_window")
    if seconds is None or seconds <= MOST_SECONDS:
        return dict(record)
    minutes, rest = divmod(seconds, 60)
    return {**record, "catchup_window": f"{minutes // 60:.0f}:{minutes % 60:02.0f}:{rest:09.6f}"}
