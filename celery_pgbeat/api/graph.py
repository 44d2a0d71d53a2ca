"""The graph of periodic tasks that run after others, as Python sees it. Pure: no database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

from celery_pgbeat.choices import AfterCondition

MOST_IN_WORDS = 5  # names in a sentence; a task may run after a hundred


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One periodic task of a graph.

    Attributes:
        name: of the periodic task.
        schedule: its own schedule; None: it is due when the tasks in `after` have ended.
        after: the tasks after which it runs; None: it comes first.
        after_condition: how these must have ended: `success` or `finish`.
        state: in a few words, as in the view `status`.
    """

    name: str
    schedule: str | None
    after: Sequence[str] | None
    after_condition: AfterCondition
    state: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Periodic tasks that run after others, as they were when they were read.

    Attributes:
        nodes: the periodic tasks, each later than those after which it runs.
    """

    nodes: Sequence[GraphNode]

    @property
    def edges(self) -> Sequence[tuple[GraphNode, GraphNode]]:
        """Each pair of an upstream task and one that runs after it, in the order of the nodes."""
        known = {node.name: node for node in self.nodes}
        return [(known[name], node) for node in self.nodes for name in named_once(node.after) if name in known]


def read_graph(rows: Iterable[Mapping[str, Any]]) -> Graph:
    """Return the graph of rows that `graph.sql` has read; they may come from any driver."""
    nodes = {row["name"]: GraphNode(**row) for row in rows}
    order = in_order({name: node.after for name, node in nodes.items()})
    return Graph(tuple(nodes[name] for name in [*order, *sorted(nodes.keys() - set(order))]))


def in_order(after: Mapping[str, Sequence[str] | None]) -> list[str]:
    """Return names, each later than those after which it comes; otherwise in alphabetical order.

    A name that comes after itself is left out, with all that come after it. The database refuses such rows.

    Args:
        after: for each name those after which it comes; names that are no key do not count.

    Example:
        >>> in_order({"report": ["load", "clean"], "load": ["extract"], "clean": ["extract"], "extract": None})
        ['extract', 'clean', 'load', 'report']
    """
    before = {name: [one for one in named_once(names) if one in after] for name, names in after.items()}
    downstream: dict[str, list[str]] = {name: [] for name in after}
    for name, names in before.items():
        for one in names:
            downstream[one].append(name)
    missing = {name: len(names) for name, names in before.items()}
    ready = [name for name, number in missing.items() if number == 0]
    heapify(ready)
    order = []
    while ready:
        order.append(name := heappop(ready))
        for one in downstream[name]:
            missing[one] -= 1
            if missing[one] == 0:
                heappush(ready, one)
    return order


def named_once(names: Sequence[str] | None) -> list[str]:
    """Return the names in their order, each once."""
    return list(dict.fromkeys(names or ()))


def after_in_words(names: Sequence[str]) -> str:
    """Return in words after which tasks one runs; of many only the first.

    Example:
        >>> after_in_words(["a"]), after_in_words(["a", "b", "c"])
        ("after 'a'", "after 'a', 'b' and 'c'")
        >>> after_in_words(list("abcdefgh"))
        "after 'a', 'b', 'c', 'd' and 4 others"
    """
    shown = [repr(name) for name in named_once(names)]
    if len(shown) > MOST_IN_WORDS:
        shown = [*shown[: MOST_IN_WORDS - 1], f"{len(shown) - MOST_IN_WORDS + 1} others"]
    return f"after {' and '.join(filter(None, [', '.join(shown[:-1]), shown[-1]]))}"
