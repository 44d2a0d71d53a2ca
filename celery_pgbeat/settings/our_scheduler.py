"""Which scheduler of Celery is ours: by what `beat_scheduler` says, and by the object that a beat runs."""

from __future__ import annotations

from typing import Any

OURS = ("pgbeat", "celery_pgbeat.beat.scheduler:Scheduler")  # as `beat_scheduler` and -S name it


def is_ours(scheduler: Any) -> bool:
    """Tell whether a beat's scheduler is ours, or a subclass of it."""
    return any(kind.__module__.startswith("celery_pgbeat.beat.") for kind in type(scheduler).__mro__)
