"""Which rows of an app's code Celery's own schedulers get from that code, without us."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from celery_pgbeat.moving.kinds.celery_tables import CLEANUP


def names_for_celery(app: Any) -> set[str]:
    """Return the names in `beat_schedule`, where `add_periodic_task` adds its entries, and Celery's own entry.

    An entry with our key `pgbeat`, or with a schedule that only we understand, is none that Celery's schedulers can
    read. `@beat.periodic_task` declares to us alone.
    """
    app.loader.import_default_modules()
    app.finalize()
    return {CLEANUP, *(name for name, given in (app.conf.beat_schedule or {}).items() if _is_of_celery(given))}


def _is_of_celery(given: Any) -> bool:
    entry = given if isinstance(given, Mapping) else getattr(given, "__dict__", {})
    when = entry.get("schedule")
    return "pgbeat" not in entry and (isinstance(when, (int, float, timedelta)) or hasattr(when, "is_due"))
