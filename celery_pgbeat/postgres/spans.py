"""Spans of time as they leave Postgres: whole microseconds, in columns whose names say so.

The text of an interval changes with the IntervalStyle of a server, a database or a role, and the drivers read some of
these texts wrongly. So no statement returns an interval.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

UNIT = "_microseconds"  # the end of such a column's name


def span_of(microseconds: int | None) -> timedelta | None:
    """Return the span of such a column."""
    return None if microseconds is None else timedelta(microseconds=microseconds)


def with_spans(columns: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a row by column, its spans as timedelta under their own names.

    Example:
        >>> with_spans([("name", "nightly"), ("jitter_microseconds", 1_500_000), ("min_gap_microseconds", None)])
        {'name': 'nightly', 'jitter': datetime.timedelta(seconds=1, microseconds=500000), 'min_gap': None}
    """
    return {column.removesuffix(UNIT): span_of(value) if column.endswith(UNIT) else value for column, value in columns}
