"""Work: the tasks for people that are not over, of all persons."""

from __future__ import annotations

from celery_pgbeat.web.page import Page, Query
from celery_pgbeat.web.reading import Reader

MOST = 200  # rows of one page
WHICH = ("free", "taken", "overdue")


def read_work(reader: Reader, query: Query) -> Page:
    """Read the tasks for people."""
    which = query.choice("which", WHICH)
    found = reader.queries.open_work(MOST + 1)
    kept = {
        None: found,
        "free": [row for row in found if row["owner"] is None],
        "taken": [row for row in found if row["owner"] is not None],
        "overdue": [row for row in found if row["overdue"]],
    }[which]
    return Page(
        "work",
        "Work for people",
        {
            "now": reader.queries.clock(),
            "rows": kept[:MOST],
            "more": len(found) > MOST,
            "known": len(found),
            "which": which,
            "choices": WHICH,
        },
    )
