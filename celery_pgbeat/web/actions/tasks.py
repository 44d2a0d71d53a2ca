"""Pause, resume and trigger a periodic task."""

from __future__ import annotations

from typing import Any

from celery_pgbeat.errors import UnknownPeriodicTask
from celery_pgbeat.web.actions.action import About, Action, Call, Done, Field
from celery_pgbeat.web.actions.typed import typed_instant, typed_json
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader

UNTIL_HINT = "2026-12-24 18:00, tomorrow, or a span such as 2d; empty: until a person resumes it"


def known_row(reader: Reader, subject: Query) -> dict[str, Any]:
    """Read the periodic task of an address.

    Raises:
        UnknownPeriodicTask: there is none.
    """
    row = reader.queries.look_at(subject.name())
    if row is None:
        raise UnknownPeriodicTask(reader.queries.unknown(subject.name()))
    return row


def _about_pause(reader: Reader, subject: Query) -> About:
    row = known_row(reader, subject)
    facts = ["Occurrences during the pause are skipped and not caught up. Messages already at the broker still run."]
    if not row["enabled"]:
        facts.append("It is already paused: this replaces the reason and the end.")
    return About(facts, {"reason": row["pause_reason"] or ""} if not row["enabled"] else {})


def _pause(call: Call) -> Done:
    name = call.subject.name()
    until = typed_instant(call.form, "until", call.reader.queries.clock())
    call.beat.pause(name, call.form.text("reason"), until, connection=call.connection)
    return Done("paused", "task", {"name": name})


def _about_resume(reader: Reader, subject: Query) -> About:
    row = known_row(reader, subject)
    if row["enabled"]:
        return About(refusal="The task itself is not paused. If its group is paused, resume the group.")
    who = f" by {row['paused_by']}" if row["paused_by"] else ""
    why = f": {row['pause_reason']}" if row["pause_reason"] else ", no reason was given"
    return About([f"It is paused{who}{why}", "It continues with its next occurrence; missed ones are not caught up."])


def _resume(call: Call) -> Done:
    name = call.subject.name()
    call.beat.resume(name, connection=call.connection)
    return Done("resumed", "task", {"name": name})


def _about_trigger(reader: Reader, subject: Query) -> About:
    row = known_row(reader, subject)
    facts = ["A beat sends one job now, independent of the schedule. The next run does not change."]
    if row["sensitive"]:
        facts.append("Its arguments are sensitive: they are not shown.")
    return About(facts)


def _trigger(call: Call) -> Done:
    job = call.beat.trigger(
        call.subject.name(),
        call.form.switch("force"),
        typed_json(call.form, "args", list),
        typed_json(call.form, "kwargs", dict),
        connection=call.connection,
    )
    return Done("triggered", "job", {"id": str(job)})


FORCE = Field("force", "Even if another of its jobs is not final", "box")
PAUSE = Action(
    "Pause",
    "Pause",
    _about_pause,
    _pause,
    (
        Field("reason", "Why", hint="everyone who opens the page sees it; up to 1,000 characters"),
        Field("until", "Until", hint=UNTIL_HINT, is_in_zone=True),
    ),
)
RESUME = Action("Resume", "Resume", _about_resume, _resume)
TRIGGER = Action(
    "Trigger",
    "Trigger",
    _about_trigger,
    _trigger,
    (
        Field("args", "Positional arguments", "area", "a JSON array; empty: those of the periodic task"),
        Field("kwargs", "Keyword arguments", "area", "a JSON object; empty: those of the periodic task"),
        FORCE,
    ),
)
