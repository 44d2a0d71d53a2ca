"""Values of every kind that JSON and Python know, most of them not what was asked for."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st


class Nested(list[Any]):
    """Lists in lists, so many levels, that show their number alone: nothing else prints them without a recursion."""

    def __init__(self, levels: int) -> None:
        inner: list[Any] = []
        for _ in range(levels - 1):
            inner = [inner]
        super().__init__([inner])
        self.levels = levels

    def __repr__(self) -> str:
        return f"Nested({self.levels})"


numbers = st.one_of(
    st.integers(-3, 400),
    st.sampled_from((2**31, -(2**63), 10**308, 10**400, 0.5, -0.0, 1e300, 1e-9)),
    st.floats(0, 9e9),
)
texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ("", "x" * 201, "x" * 1_001, "\x1b[31m", "\u202etxt", "\x85", "a\0b", "\ud800", "unacked", "%s {} '")
    ),
)
simple = st.one_of(st.none(), st.booleans(), numbers, texts)
deep = st.sampled_from((99, 100, 101, 800, 3_000)).map(Nested)
values = st.recursive(simple, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
anything = st.one_of(values, deep)
spans = st.one_of(
    st.sampled_from(("30m", "1h30m", "PT5M", "P1D", "0", "-5s", "1 year", "50%", "367d", "every 5m", "1e9s")), numbers
)


def as_json(row: Any) -> str | None:
    """Return what a client can write into JSON of Postgres; None where it cannot."""
    try:
        text = json.dumps(row, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError):
        return None
    return None if r"\u0000" in text or r"\ud800" in text else text
