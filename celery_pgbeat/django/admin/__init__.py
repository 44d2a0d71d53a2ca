"""The admin: lists that hold with a million rows, a form for definitions, and the actions of the dashboard.

What is written goes through the Python API, by the name of Django's user. Each class may be registered again by a
project, with its own changes.
"""

from __future__ import annotations

from django.contrib import admin

from celery_pgbeat.django import models
from celery_pgbeat.django.admin.jobs import JobAdmin
from celery_pgbeat.django.admin.others import ChangeAdmin, TaskGroupAdmin
from celery_pgbeat.django.admin.tasks import PeriodicTaskAdmin

admin.site.register(models.PeriodicTask, PeriodicTaskAdmin)
admin.site.register(models.Job, JobAdmin)
admin.site.register(models.TaskGroup, TaskGroupAdmin)
admin.site.register(models.Change, ChangeAdmin)
