"""The Celery app of the project."""

from celery import Celery

app = Celery("shop")
app.config_from_object(
    {
        "broker_url": "memory://",
        "beat_scheduler": "pgbeat",
        "imports": ("celery_pgbeat.worker",),
        "timezone": "Europe/Berlin",
    }
)
