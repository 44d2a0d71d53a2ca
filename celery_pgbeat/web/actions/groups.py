"""Limit, pause and resume a group."""

from __future__ import annotations

from typing import Any

from celery_pgbeat.errors import UnknownGroup
from celery_pgbeat.suggestions import did_you_mean
from celery_pgbeat.web.actions.action import About, Action, Call, Done, Field
from celery_pgbeat.web.actions.typed import typed_number
from celery_pgbeat.web.form import Wrong
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader
from celery_pgbeat.web.words import number


def _known_group(reader: Reader, subject: Query) -> dict[str, Any]:
    name = subject.name()
    groups = {group["name"]: group for group in reader.queries.groups()}
    if name not in groups:
        raise UnknownGroup(f"No group is named {name!r}{did_you_mean(name, groups) or '.'}")
    return groups[name]


def _size(group: dict[str, Any]) -> str:
    return f"It has {number(group['tasks'], 'task')}, {number(group['active'], 'job')} under way."


def _about_limit(reader: Reader, subject: Query) -> About:
    group = _known_group(reader, subject)
    limit = "" if group["max_active"] is None else str(group["max_active"])
    return About([_size(group), "A lower limit ends no job."], {"max_active": limit})


def _limit(call: Call) -> Done:
    name = call.subject.name()
    if not call.form.has("max_active"):
        raise Wrong("max_active", "This was not sent: type a number, or leave it empty for no limit.")
    call.beat.limit_group(name, typed_number(call.form, "max_active"), connection=call.connection)
    return Done("limited", "groups", {"q": name})


def _about_pause(reader: Reader, subject: Query) -> About:
    group = _known_group(reader, subject)
    effect = "All its tasks stop until the group is resumed. Messages already at the broker still run."
    return About([_size(group), effect])


def _pause(call: Call) -> Done:
    name = call.subject.name()
    call.beat.pause_group(name, call.form.text("reason"), connection=call.connection)
    return Done("group-paused", "groups", {"q": name})


def _about_resume(reader: Reader, subject: Query) -> About:
    group = _known_group(reader, subject)
    why = f" Its reason: {group['pause_reason']}" if group["pause_reason"] else ""
    return About([f"It is {group['state']}.{why}", "Missed runs are not caught up; a paused task stays paused."])


def _resume(call: Call) -> Done:
    name = call.subject.name()
    call.beat.resume_group(name, retry=call.form.switch("retry"), connection=call.connection)
    return Done("group-resumed", "groups", {"q": name})


LIMIT_GROUP = Action(
    "Limit group",
    "Set the limit",
    _about_limit,
    _limit,
    (Field("max_active", "Jobs at once", hint="in the whole cluster, at least 1; empty: no limit"),),
    back="groups",
)
PAUSE_GROUP = Action(
    "Pause group",
    "Pause the group",
    _about_pause,
    _pause,
    (Field("reason", "Why", hint="everyone who opens the page sees it; up to 1,000 characters"),),
    back="groups",
)
RESUME_GROUP = Action(
    "Resume group",
    "Resume the group",
    _about_resume,
    _resume,
    (Field("retry", "First rerun the jobs whose failure paused it", "box"),),
    back="groups",
)
