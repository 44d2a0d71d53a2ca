"""Lists as Postgres reads them fastest: one text for all elements, in place of a parsed expression for each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast
from uuid import UUID

SPECIAL = re.compile(r'(["\\])')


def array_text(values: Iterable[Any]) -> str:
    r"""Return the array as text, to be cast by the statement (`%(names)s::text[]`); None is NULL.

    A driver writes `ARRAY['…'::timestamptz, …]`, and Postgres parses as many expressions: for a thousand rows of
    fifteen columns that takes longer than what is done with them.

    Example:
        >>> print(array_text(["a", 'b "c" \\', None, 1.5]))
        {"a","b \"c\" \\",NULL,1.5}
    """
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    kind = type(value)
    if kind is str:
        return f'"{SPECIAL.sub(_ESCAPED, value)}"' if '"' in value or "\\" in value else f'"{value}"'
    if kind is datetime:
        return cast(str, value.isoformat())
    return value.hex if kind is UUID else str(value)


_ESCAPED = r"\\\1"
