"""The state of periodic tasks and jobs on the command line: their words, as the view `status` has them, and colours."""

from __future__ import annotations

OF_TASKS = {
    "problem": "red",
    "error": "red",
    "overdue": "red",
    "silent": "red",
    "paused": "yellow",
    "group": "yellow",  # group paused
    "running": "green",
    "finished": "bright_black",
}
OF_JOBS = {
    "succeeded": "green",
    "running": "green",
    "created": "yellow",
    "error": "red",
    "failed": "red",
    "lost": "red",
    "expired": "yellow",
    "revoked": "yellow",
    "skipped": "yellow",
}
