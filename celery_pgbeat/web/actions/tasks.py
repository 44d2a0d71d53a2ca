"""What is known of a periodic task before something is done to it."""

from __future__ import annotations

from typing import Any

from celery_pgbeat.errors import UnknownPeriodicTask
from celery_pgbeat.web.actions.action import About
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader


def known_row(reader: Reader, subject: Query) -> dict[str, Any]:
    """Read the periodic task of an address.

    Raises:
        UnknownPeriodicTask: there is none.
    """
    row = reader.queries.look_at(subject.name())
    if row is None:
        raise UnknownPeriodicTask(reader.queries.unknown(subject.name()))
    return row


def about(reader: Reader, subject: Query) -> About:
    """Say whether a periodic task is paused; its reason is what a field for it has at first."""
    row = known_row(reader, subject)
    if row["enabled"]:
        return About()
    who = f" by {row['paused_by']}" if row["paused_by"] else ""
    why = f": {row['pause_reason']}" if row["pause_reason"] else ", no reason was given"
    return About([f"It is paused{who}{why}"], {"reason": row["pause_reason"] or ""})


def about_resume(reader: Reader, subject: Query) -> About:
    """Say who has paused it, and why."""
    if known_row(reader, subject)["enabled"]:
        return About(refusal="The task itself is not paused. If its group is paused, resume the group.")
    return about(reader, subject)


def about_trigger(reader: Reader, subject: Query) -> About:
    """Say that arguments are hidden, if they are."""
    sensitive = known_row(reader, subject)["sensitive"]
    return About(["Its arguments are sensitive: they are not shown."] if sensitive else [])
