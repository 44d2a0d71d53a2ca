"""The public tables and views as unmanaged models. Reading is Django's; to change a definition, call the Python API.

The columns of a periodic task are those of `columns.py`, and those of a job those of `columns_of_job.py`, so a new
column needs no line here.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from types import NoneType
from typing import Any, get_args, get_type_hints
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models

from celery_pgbeat import columns, columns_of_job
from celery_pgbeat.django.place import database_alias, table
from celery_pgbeat.texts.safe_text import one_line


class Texts(ArrayField):
    """An array that is read and not looked into, so `django.contrib.postgres` need not be among the installed apps."""

    def check(self, **given: Any) -> list[Any]:
        """Return what Django's checks find, but that this app is missing."""
        return [found for found in super().check(**given) if found.id != "postgres.E005"]


FIELDS: dict[Any, Any] = {
    str: models.TextField,
    int: models.IntegerField,
    bool: models.BooleanField,
    datetime: models.DateTimeField,
    timedelta: models.DurationField,
    UUID: models.UUIDField,
    list[str]: lambda **given: Texts(models.TextField(), **given),
    list[Any]: models.JSONField,
    dict[str, Any]: models.JSONField,
}


def _fields_of_task() -> dict[str, Any]:
    """Return a field for each public column of a periodic task."""
    hints = get_type_hints(columns.PeriodicTask)
    return {
        name: models.TextField(primary_key=True, help_text=column.help)
        if name == "name"
        else FIELDS[column.type](null=NoneType in get_args(hints[name]), help_text=column.help)
        for name, column in columns.PUBLIC.items()
    }


def _fields_of_job() -> dict[str, Any]:
    """Return a field for each column of the view `job`."""
    hints = get_type_hints(columns_of_job.Job)
    return {
        name: FIELDS[column.type](
            primary_key=name == "id", null=NoneType in get_args(hints[name]), help_text=column.says
        )
        for name, column in columns_of_job.PUBLIC.items()
    }


class Manager(models.Manager):
    """Reads from the database of PGBEAT_DATABASE."""

    def get_queryset(self) -> Any:
        """Return all rows."""
        return super().get_queryset().using(self._db or database_alias())


class PeriodicTask(models.Model):
    """A periodic task.

    `save` needs `update_fields`: a plain one would write every column, and with them what beats have written meanwhile.
    """

    vars().update(_fields_of_task())

    objects = Manager()

    class Meta:
        managed = False
        db_table = table("periodic_task")
        ordering = ("name",)
        verbose_name = "periodic task"

    def __str__(self) -> str:
        return one_line(self.name)

    def save(self, *args: Any, update_fields: Any = None, **others: Any) -> None:
        """Write the named columns.

        Raises:
            TypeError: it is new, or no columns are named.
        """
        if self._state.adding:
            raise TypeError("A periodic task is made by the Python API: beat.schedule(name, task, schedule, …)")
        if update_fields is None:
            raise TypeError("save() would write every column: name them in update_fields, or call beat.update(name, …)")
        super().save(*args, update_fields=update_fields, **others)


class PeriodicTaskStatus(models.Model):
    """What a periodic task is doing: a row of the view `status`."""

    name = models.TextField(primary_key=True)
    state = models.TextField()
    next_run_at = models.DateTimeField(null=True)
    last_state = models.TextField(null=True)
    last_scheduled_for = models.DateTimeField(null=True)
    lateness = models.DurationField(null=True)
    failures = models.IntegerField()
    problem = models.TextField(null=True)

    objects = Manager()

    class Meta:
        managed = False
        db_table = table("status")
        default_permissions = ()

    def __str__(self) -> str:
        return one_line(self.name)


class Job(models.Model):
    """One submission of a periodic task, or a skip with its reason: a row of the view `job`."""

    vars().update(_fields_of_job())

    objects = Manager()

    class Meta:
        managed = False
        db_table = table("job")
        default_permissions = ("view", "change")

    def __str__(self) -> str:
        return str(self.id)


class TaskGroup(models.Model):
    """The settings of a group. A group without settings has no row."""

    name = models.TextField(primary_key=True)
    max_active = models.IntegerField(null=True)
    paused = models.BooleanField()
    pause_reason = models.TextField(null=True)

    objects = Manager()

    class Meta:
        managed = False
        db_table = table("task_group")
        default_permissions = ("view", "change")
        verbose_name = "group"

    def __str__(self) -> str:
        return one_line(self.name)


class Node(models.Model):
    """A beat or a worker."""

    id = models.TextField(primary_key=True)
    role = models.TextField()
    hostname = models.TextField()
    pid = models.IntegerField()
    version = models.TextField()
    started_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    tracking = models.BooleanField()
    mode = models.TextField(null=True)

    objects = Manager()

    class Meta:
        managed = False
        db_table = table("node")
        default_permissions = ()
        ordering = ("role", "hostname", "pid", "id")

    def __str__(self) -> str:
        return one_line(self.id)


class Change(models.Model):
    """Who changed what. Arguments are in other columns, which the dashboard masks for sensitive rows."""

    id = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    who = models.TextField()
    role = models.TextField()
    kind = models.TextField()
    name = models.TextField()
    action = models.TextField()
    revision = models.IntegerField(null=True)
    columns = Texts(models.TextField(), null=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    job = models.UUIDField(null=True)
    backfill = models.UUIDField(null=True)
    reason = models.TextField(null=True)

    objects = Manager()

    class Meta:
        managed = False
        db_table = table("change")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return one_line(f"{self.action} {self.name} by {self.who}")


MODELS = (PeriodicTask, PeriodicTaskStatus, Job, TaskGroup, Node, Change)
