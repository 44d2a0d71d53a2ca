"""Which of Django's permissions an action needs, and the name by which a user acts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celery_pgbeat.texts.safe_text import one_line
from celery_pgbeat.web.access import LONGEST_NAME
from celery_pgbeat.web.actions import ACTIONS

LOOK = "pgbeat.view_periodictask"
_OF_PAGE = {
    "task": "pgbeat.change_periodictask",
    "job": "pgbeat.change_job",
    "work": "pgbeat.change_job",
    "groups": "pgbeat.change_taskgroup",
}
# By the page of the dashboard: each action has one of its own.
NEEDED: Mapping[str, str] = {
    **{word: _OF_PAGE[action.back] for word, action in ACTIONS.items()},
    "check-schedule": "pgbeat.change_periodictask",
}


def rights_of(user: Any) -> frozenset[str]:
    """Return which of these permissions a user has."""
    return frozenset(right for right in _OF_PAGE.values() if user.has_perm(right))


def name_of(user: Any) -> str:
    """Return the name by which the table of changes knows a user."""
    return one_line(str(user.get_username()), LONGEST_NAME)
