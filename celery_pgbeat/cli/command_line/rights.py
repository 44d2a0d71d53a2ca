"""Which role of `sql --roles` a command needs: the error says it, and a table of docs/security.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celery_pgbeat.operations import OPERATIONS

# Commands by the least role that may run them. Those that are not here need the author; some no role at all.
NEEDS = {
    "reader": (
        *("list", "upcoming", "graph", "changes", "explain", "jobs", "overdue", "nodes", "health", "doctor", "top"),
        *("web", "job show", "group list", "backfill list"),
    ),
    "person": ("work list", *(one.command.words for one in OPERATIONS if one.role == "person")),
    "owner": ("migrate",),
}
# These read arguments.
OF_AUTHORS = {"list": "as_json", "upcoming": "name"}


def role_needed(command: str, given: Mapping[str, Any]) -> str:
    """Return the role that a command needs, such as `author`.

    Args:
        command: its words, such as `group list`.
        given: its parameters.

    Example:
        >>> role_needed("list", {"as_json": False}), role_needed("list", {"as_json": True}), role_needed("pause", {})
        ('reader', 'author', 'author')
    """
    if given.get(OF_AUTHORS.get(command, "")):
        return "author"
    return next((role for role, commands in NEEDS.items() if command in commands), "author")
