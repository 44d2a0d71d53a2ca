"""The Python API: `PgBeat`, and the classes of what it returns.

It declares, reads and changes rows; it never sends a message itself. Every method takes `connection=` to join the
caller's transaction. Then the beats see the change when that transaction commits, and never if it rolls back.
"""

from __future__ import annotations

from celery_pgbeat.api.changes import Change
from celery_pgbeat.api.client import PgBeat
from celery_pgbeat.api.graph import Graph, GraphNode
from celery_pgbeat.api.groups import GroupStatus, TaskGroup
from celery_pgbeat.api.nodes import Health, Node
from celery_pgbeat.api.rows import Backfill, BackfillPreview, RetriedJob, Upcoming, Work
from celery_pgbeat.columns import PeriodicTask
from celery_pgbeat.columns_of_job import Job

__all__ = [
    "Backfill",
    "BackfillPreview",
    "Change",
    "Graph",
    "GraphNode",
    "GroupStatus",
    "Health",
    "Job",
    "Node",
    "PeriodicTask",
    "PgBeat",
    "RetriedJob",
    "TaskGroup",
    "Upcoming",
    "Work",
]
