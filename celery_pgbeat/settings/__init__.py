"""The `pgbeat_*` settings: `table.py` has each with its default, its bounds and its meaning."""

from celery_pgbeat.settings.readers import Duration, in_units, masked_webhook
from celery_pgbeat.settings.table import SETTINGS, Settings

__all__ = ["SETTINGS", "Duration", "Settings", "in_units", "masked_webhook"]
