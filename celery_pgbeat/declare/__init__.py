"""Declarations: turns schedules, calls and columns as they are written in Python into the values of a row.

Everything is checked here, before any SQL: Postgres accepts every `Definition` that this package returns. No I/O and no
clock of its own. Celery's objects are recognised by the names of their classes, so that a `cron(...)` does not import
Celery.
"""

from __future__ import annotations

from celery_pgbeat.declare.call import Call, task_of
from celery_pgbeat.declare.columns import Changes, Columns
from celery_pgbeat.declare.declaration import Declaration, declarations_of
from celery_pgbeat.declare.definition import Definition, define
from celery_pgbeat.declare.options import KNOWN_OPTIONS
from celery_pgbeat.declare.timing import Timing, app_timezone, cron, every
from celery_pgbeat.declare.when import timing_of

__all__ = [
    "KNOWN_OPTIONS",
    "Call",
    "Changes",
    "Columns",
    "Declaration",
    "Definition",
    "Timing",
    "app_timezone",
    "cron",
    "declarations_of",
    "define",
    "every",
    "task_of",
    "timing_of",
]
