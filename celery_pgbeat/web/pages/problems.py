"""Problems: all that needs a person, the most serious first, each with the reason."""

from __future__ import annotations

from celery_pgbeat.api.rows import read_row
from celery_pgbeat.columns_of_job import Job
from celery_pgbeat.web.page import Page, Query
from celery_pgbeat.web.pages.now import silent_beats
from celery_pgbeat.web.pages.overdue import MANY, read_overdue
from celery_pgbeat.web.reading import Reader

MOST = 50  # of each kind


def read_problems(reader: Reader, _query: Query) -> Page:
    """Read what needs a person."""
    queries = reader.queries
    now, many = queries.clock(), len(queries.latest_due(MANY))
    return Page(
        "problems",
        "Problems",
        {
            "now": now,
            "no_beat": queries.no_beat(),
            "overdue": read_overdue(queries, many, now, MOST + 1),
            "overdue_in_all": f"{many:,}{'+' if many == MANY else ''}",
            "unplannable": queries.problems(MOST + 1),
            "silent": silent_beats(queries.nodes()),
            "asking": [read_row(Job, row) for row in queries.page_of_jobs(limit=MOST + 1, states=["error"])],
            "alerts": queries.alerts(MOST + 1),
            "refused": queries.refused_declarations(limit=MOST + 1),
            "paused_groups": [group for group in queries.groups() if group["paused"]],
            "most": MOST,
        },
    )
