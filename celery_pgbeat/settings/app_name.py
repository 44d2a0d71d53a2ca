"""The name by which a schema knows a Celery app."""

from __future__ import annotations

from typing import Any

NO_NAME = "__main__"  # of an app that was made without one, and of any that was started as a script


def app_name(app: Any) -> str | None:
    """Return the name of the app; None if the name does not tell it from other apps.

    Example:
        >>> from celery import Celery
        >>> app_name(Celery("shop", set_as_current=False)), app_name(Celery(set_as_current=False))
        ('shop', None)
    """
    name = app.main
    return str(name) if name and name != NO_NAME else None


def manager_of(app: Any) -> str:
    """Return the `managed_by` of the rows that the code of an app declares."""
    return f"code:{app_name(app) or NO_NAME}"
