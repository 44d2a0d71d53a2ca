"""The probe's app, whose beats print each new task for people that they tell of."""

from __future__ import annotations

import logging
from typing import Any

from celery_pgbeat.signals import work_created
from tests.harness.probe_app import app

logger = logging.getLogger("celery.beat")
__all__ = ["app"]


@work_created.connect(weak=False)
def tell(sender: Any, job: Any, periodic_task: str, target: Any, **_: Any) -> None:
    """Log it."""
    logger.info("told of %s of %s for %s by %s", job, periodic_task, target, sender.main)
