"""celery-pgbeat: Celery beat on Postgres.

The public names, nothing else. They are loaded on first use, because every `celery` command imports this
package to find the `pgbeat` commands, and most of them need nothing of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat
    from celery_pgbeat.declare import Columns, Timing, cron, every
    from celery_pgbeat.worker.stop.current import current

__all__ = ["Columns", "PgBeat", "Timing", "__version__", "cron", "current", "every"]
__version__ = "0.1.0"

_HOMES = {
    "Columns": "celery_pgbeat.declare",
    "PgBeat": "celery_pgbeat.api",
    "Timing": "celery_pgbeat.declare",
    "cron": "celery_pgbeat.declare",
    "current": "celery_pgbeat.worker.stop.current",
    "every": "celery_pgbeat.declare",
}


def __getattr__(name: str) -> Any:
    try:
        return getattr(import_module(_HOMES[name]), name)
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
