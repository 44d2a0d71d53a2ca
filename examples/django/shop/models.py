"""An order."""

from django.db import models


class Order(models.Model):
    """An order of a customer."""

    email = models.EmailField()
