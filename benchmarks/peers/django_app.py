"""django-celery-beat: the schedules are in Postgres, behind Django's models."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import django
from django.conf import settings
from django.core.management import call_command

from benchmarks.peers import given

STATE = urlsplit(given.STATE)

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": STATE.path.removeprefix("/"),
            "USER": STATE.username,
            "PASSWORD": unquote(STATE.password or ""),
            "HOST": STATE.hostname,
            "PORT": STATE.port,
            "CONN_MAX_AGE": None,
        }
    },
    INSTALLED_APPS=["django_celery_beat"],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    USE_TZ=True,
    TIME_ZONE="UTC",
)
django.setup()
app = given.make_app("django_celery_beat.schedulers:DatabaseScheduler")


def fill() -> None:
    """Give it its schedules."""
    from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask, PeriodicTasks

    call_command("migrate", verbosity=0)
    if given.CRONTABS:
        when = {"crontab": CrontabSchedule.objects.create(timezone="UTC")}
    else:
        when = {"interval": IntervalSchedule.objects.create(every=1, period=IntervalSchedule.DAYS)}
    PeriodicTask.objects.bulk_create(
        PeriodicTask(
            name=name,
            task=given.TASK,
            args=f'["{name}"]',
            queue=given.QUEUE,
            last_run_at=given.LAST_RUN_AT,
            **when,
        )
        for name in given.NAMES
    )
    PeriodicTasks.update_changed()


if __name__ == "__main__":
    fill()
