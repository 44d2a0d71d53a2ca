"""An order, and the view in which celery-pgbeat shows what each periodic task does."""

from django.db import models


class Order(models.Model):
    """An order of a customer."""

    email = models.EmailField()


class PeriodicTaskStatus(models.Model):
    """A row of the view `pgbeat.status`: read it, do not write it."""

    name = models.TextField(primary_key=True)
    state = models.TextField()
    next_run_at = models.DateTimeField(null=True)
    last_state = models.TextField(null=True)
    problem = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = '"pgbeat"."status"'
