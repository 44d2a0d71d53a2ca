"""Nodes: the beats and workers, and what is odd about them."""

from __future__ import annotations

from celery_pgbeat.api.nodes import read_node
from celery_pgbeat.web.page import Page, Query
from celery_pgbeat.web.reading import Reader


def read_nodes(reader: Reader, _query: Query) -> Page:
    """Read the beats and workers of the last day."""
    found = [read_node(row) for row in reader.queries.nodes()]
    alive = [node for node in found if node.alive]
    return Page(
        "nodes",
        "Nodes",
        {
            "now": reader.queries.clock(),
            "nodes": found,
            "no_beat": reader.queries.no_beat(),
            "workers": sum(node.role == "worker" for node in alive),
            "in_shadow": any(node.mode == "shadow" for node in alive),
            "blind": [node for node in alive if node.role == "worker" and not node.tracking],
            "versions": sorted({node.version for node in alive}),
        },
    )
