"""Settings: one URL names the database for Django and for the beats."""

import os

from celery.schedules import crontab
from sqlalchemy import make_url

DATABASE_URL = make_url(os.environ.get("DATABASE_URL", "postgresql://localhost/shop"))
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": DATABASE_URL.database,
        "USER": DATABASE_URL.username or "",
        "PASSWORD": DATABASE_URL.password or "",
        "HOST": DATABASE_URL.host or "",
        "PORT": DATABASE_URL.port or "",
    }
}

CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL", "redis://localhost")
CELERY_TIMEZONE = "Europe/Berlin"
CELERY_PGBEAT_URL = DATABASE_URL.render_as_string(hide_password=False)
CELERY_BEAT_SCHEDULE = {
    "nightly-report": {"task": "shop.tasks.nightly_report", "schedule": crontab(minute=0, hour=3)},
}

INSTALLED_APPS = ["shop"]
SECRET_KEY = os.environ.get("SECRET_KEY", "only for this example")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEST_RUNNER = "shop.runner.Runner"
TIME_ZONE = "Europe/Berlin"
USE_TZ = True
