"""Create the schema by our own migrator, and let Django know the models, for permissions and content types.

The models are unmanaged: what Django remembers of them changes no table. It is taken from the models themselves, so
that `makemigrations` never finds a difference, whatever the version of Django and the name of the schema.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.db.migrations.state import ModelState

from celery_pgbeat.django.bring_schema import BringSchema
from celery_pgbeat.django.models import MODELS


def remember(model: Any) -> migrations.CreateModel:
    """Return the operation that tells Django of a model."""
    state = ModelState.from_model(model)
    return migrations.CreateModel(state.name, list(state.fields.items()), state.options, state.bases, state.managers)


class Migration(migrations.Migration):
    """All of it."""

    initial = True
    dependencies = ()
    operations = (BringSchema(), *(remember(model) for model in MODELS))
