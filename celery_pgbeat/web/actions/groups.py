"""What is known of a group before something is done to it."""

from __future__ import annotations

from celery_pgbeat.errors import UnknownGroup
from celery_pgbeat.texts.suggestions import did_you_mean
from celery_pgbeat.web.actions.action import About
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader
from celery_pgbeat.web.words import number


def about(reader: Reader, subject: Query) -> About:
    """Say how large a group is and whether it is paused; its limit is what a field for it has at first."""
    name = subject.name()
    groups = {group["name"]: group for group in reader.queries.groups()}
    if name not in groups:
        raise UnknownGroup(f"No group is named {name!r}{did_you_mean(name, groups) or '.'}")
    group = groups[name]
    size = f"It has {number(group['tasks'], 'task')}, {number(group['active'], 'job')} under way."
    why = f" Its reason: {group['pause_reason']}" if group["pause_reason"] else ""
    limit = "" if group["max_active"] is None else str(group["max_active"])
    return About([size, f"It is {group['state']}.{why}"], {"max_active": limit})
