"""Groups: what is limited, paused or in order together."""

from __future__ import annotations

from celery_pgbeat.web.page import Page, Query
from celery_pgbeat.web.reading import Reader

MOST = 500  # groups of one page


def read_groups(reader: Reader, query: Query) -> Page:
    """Read the groups with the number of their rows and jobs."""
    words = query.text("q")
    found = reader.queries.groups()
    wanted = [group for group in found if words is None or words.lower() in group["name"].lower()]
    return Page(
        "groups",
        "Groups",
        {
            "now": reader.queries.clock(),
            "groups": wanted[:MOST],
            "left_out": max(len(wanted) - MOST, 0),
            "known": len(found),
            "words": words,
        },
    )
