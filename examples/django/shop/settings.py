"""Settings: the schedule is in the database of the models."""

import os

from celery.schedules import crontab
from sqlalchemy import make_url

from celery_pgbeat.django import database_url

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
CELERY_PGBEAT_URL = database_url(DATABASES["default"])
CELERY_BEAT_SCHEDULE = {
    "nightly-report": {"task": "shop.tasks.nightly_report", "schedule": crontab(minute=0, hour=3)},
}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "celery_pgbeat.django",
    "shop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "shop.urls"
STATIC_URL = "static/"
SECRET_KEY = os.environ.get("SECRET_KEY", "only for this example")
DEBUG = os.environ.get("DEBUG") == "1"
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TIME_ZONE = "Europe/Berlin"
USE_TZ = True
