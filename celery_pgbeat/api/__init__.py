"""THE PYTHON DOOR: `PgBeat`, and what it answers with.

It declares, reads and commands rows; it never sends anything itself. Every method takes `connection=` to join the
caller's transaction: then a row that is declared there is seen when, and only if, that transaction commits.
"""

from __future__ import annotations

from celery_pgbeat.api.client import PgBeat
from celery_pgbeat.api.rows import Backfill, BackfillPreview, Job, Upcoming
from celery_pgbeat.columns import PeriodicTask

__all__ = ["Backfill", "BackfillPreview", "Job", "PeriodicTask", "PgBeat", "Upcoming"]
