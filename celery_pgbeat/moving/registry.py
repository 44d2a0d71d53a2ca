"""What `places.py` names. It is imported when it is used: it may need a driver or an extra."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from celery_pgbeat.moving.kind import Kind
from celery_pgbeat.moving.places import BACK, PLACES


def kind_named(name: str) -> Kind:
    """Return the kind of a name in `PLACES`."""
    module, attribute = PLACES[name]
    kind: Kind = getattr(import_module(f"celery_pgbeat.moving.kinds.{module}"), attribute)
    return kind


def way_back(name: str) -> ModuleType:
    """Return the module of a name in `BACK`: its `refusal` and its `lines`."""
    return import_module(f"celery_pgbeat.moving.back.{BACK[name]}")
