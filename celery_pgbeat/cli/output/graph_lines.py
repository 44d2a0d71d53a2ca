"""The graph of periodic tasks as lines of text: what comes first, and under each task what runs after it. Pure.

A task has one line of its own, under the last of its upstream tasks. So the lines of all its upstream tasks stand above
it. Under the others, and where the tree would become too deep, a line refers to the one below.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from celery_pgbeat.api.graph import Graph, GraphNode, after_in_words
from celery_pgbeat.cli.output.terminal import EMPTY

DEEPEST = 12  # levels of one tree; what comes after them begins a new one
LAST, NOT_LAST = ("└─ ", "   "), ("├─ ", "│  ")  # before a task, and before what runs after it


class Line(NamedTuple):
    """One line of the text.

    Attributes:
        branch: what stands before the name.
        node: the task.
        is_reference: whether it only refers to the task's own line below.
    """

    branch: str
    node: GraphNode
    is_reference: bool


class _Step(NamedTuple):
    """A task that is to be written, and what stands before it and before what runs after it."""

    node: GraphNode
    branch: str
    below: str
    level: int


def lines_of(graph: Graph) -> list[Line]:
    """Return the lines of a graph."""
    downstream: dict[str, list[GraphNode]] = {node.name: [] for node in graph.nodes}
    unseen = dict.fromkeys(downstream, 0)  # of each task the upstream tasks whose lines are not written
    for first, then in graph.edges:
        downstream[first.name].append(then)
        unseen[then.name] += 1
    lines: list[Line] = []
    written: set[str] = set()
    heads = deque(graph.nodes)
    while heads:
        head = heads.popleft()
        if head.name not in written:
            heads.extendleft(reversed(_write_tree(head, downstream, unseen, lines, written)))
    return lines


def _write_tree(
    head: GraphNode,
    downstream: dict[str, list[GraphNode]],
    unseen: dict[str, int],
    lines: list[Line],
    written: set[str],
) -> list[GraphNode]:
    """Write a task and what runs after it; return those tasks that are too deep, which begin a tree of their own."""
    too_deep = []
    steps = [_Step(head, "", "", 0)]
    while steps:
        node, branch, below, level = steps.pop()
        if level:
            unseen[node.name] -= 1
        is_reference = bool(level) and unseen[node.name] > 0
        if not is_reference and level == DEEPEST and downstream[node.name]:
            too_deep.append(node)
            is_reference = True
        lines.append(Line(branch, node, is_reference))
        if is_reference:
            continue
        written.add(node.name)
        after = sorted(downstream[node.name], key=lambda node: node.name)
        for place in reversed(range(len(after))):
            its, under = LAST if place == len(after) - 1 else NOT_LAST
            steps.append(_Step(after[place], below + its, below + under, level + 1))
    return too_deep


def runs_in_words(node: GraphNode) -> str:
    """Return when a task runs: its schedule, and what it runs after.

    Example:
        >>> runs_in_words(GraphNode("report", "0 6 * * *", ["load"], "finish", "waiting"))
        "0 6 * * *, after 'load' (finish)"
    """
    after = after_in_words(node.after) if node.after else None
    condition = " (finish)" if node.after_condition == "finish" else ""
    return ", ".join(filter(None, [node.schedule, after and after + condition])) or EMPTY
