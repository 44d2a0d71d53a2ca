"""The schedulers that one can move in from, and back to, by name, with the place of each. Imports nothing."""

from __future__ import annotations

from collections.abc import Mapping

PLACES: Mapping[str, tuple[str, str]] = {
    "beat-schedule": ("beat_schedule", "BEAT_SCHEDULE"),
    "django-celery-beat": ("django_celery_beat", "DJANGO_CELERY_BEAT"),
    "redbeat": ("redbeat", "REDBEAT"),
    "sqlalchemy-celery-beat": ("sqlalchemy_celery_beat", "SQLALCHEMY_CELERY_BEAT"),
    "celery-sqlalchemy-scheduler": ("celery_sqlalchemy_scheduler", "CELERY_SQLALCHEMY_SCHEDULER"),
    "crontab": ("crontab_file", "CRONTAB"),
    "system-crontab": ("crontab_file", "SYSTEM_CRONTAB"),
    "pg_cron": ("pg_cron", "PG_CRON"),
    "kubernetes": ("kubernetes", "KUBERNETES"),
    "apscheduler": ("apscheduler_jobs", "APSCHEDULER"),
}

# The modules in `back/`.
BACK: Mapping[str, str] = {
    "beat-schedule": "python_text",
    "django-celery-beat": "sql_text",
    "redbeat": "redis_commands",
}
