"""In which order declarations are written of which one comes after another. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any


def upstream_first(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records so that each stands behind those that its column `after` names.

    Those that come after each other in a circle, and what comes after them, stand last: Postgres refuses the circle.

    Example:
        >>> load, extract = {"name": "load", "after": ["extract"]}, {"name": "extract", "after": None}
        >>> [record["name"] for record in upstream_first([load, extract])]
        ['extract', 'load']
    """
    by_name = {record["name"]: record for record in records}
    named = {name: [one for one in record.get("after") or () if one in by_name] for name, record in by_name.items()}
    sorter = TopologicalSorter(named)
    with suppress(CycleError):  # it still gives all that is not behind the circle
        sorter.prepare()
    ordered: dict[str, None] = {}
    while ready := sorter.get_ready():
        ordered |= dict.fromkeys(ready)
        sorter.done(*ready)
    return [by_name[name] for name in (*ordered, *(by_name.keys() - ordered))]
