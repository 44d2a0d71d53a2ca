"""The Celery app, and the Python API of the periodic tasks."""

import os

from celery import Celery

from celery_pgbeat import PgBeat

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")

app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
beat = PgBeat(app)  # the database is CELERY_PGBEAT_URL
