"""A Django project with one app. Django imports the Celery app when it starts, so that `shared_task` finds it."""

from shop.celery import app as celery_app

__all__ = ["celery_app"]
