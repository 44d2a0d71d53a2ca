"""Fill in occurrences of the past, after a look at what that would send; and cancel a backfill."""

from __future__ import annotations

from typing import Any, cast

from celery_pgbeat.choices import BackfillMode
from celery_pgbeat.schedules import own_zone
from celery_pgbeat.web.actions.action import About, Action, Call, Done, Field, Look
from celery_pgbeat.web.actions.tasks import known_row
from celery_pgbeat.web.actions.typed import typed_end, typed_number
from celery_pgbeat.web.form import Form, Wrong
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader

TERMS = ("since", "until", "mode", "max_active")
MODES = {
    "missing": "those without a job, or only skipped",
    "failed": "those that failed, were lost or expired",
    "all": "all of them, again",
}


def _about(reader: Reader, subject: Query) -> About:
    row = known_row(reader, subject)
    if row["schedule"] is None:
        return About(refusal="It has no schedule, so it has no occurrences that could be filled in: trigger it.")
    return About([f"Days and times without an offset are those of {_zone(reader, row)}."])


def _zone(reader: Reader, row: dict[str, Any]) -> str:
    return own_zone(row["schedule"]) or row["timezone"] or reader.zone


def _terms(reader: Reader, row: dict[str, Any], form: Form) -> dict[str, Any]:
    now, zone = reader.queries.clock(), _zone(reader, row)
    return {
        "since": typed_end(form, "since", now, zone),
        "until": typed_end(form, "until", now, zone),
        "mode": cast("BackfillMode", form.required("mode")),
        "max_active": typed_number(form, "max_active") or 1,
    }


def _seen(form: Form) -> str:
    return " | ".join(form.raw(name).strip() for name in TERMS)


def _look(reader: Reader, subject: Query, form: Form) -> Look:
    row = known_row(reader, subject)
    found = reader.backfill(row["name"], **_terms(reader, row, form), dry_run=True)
    return Look("backfill", {"it": found, "now": reader.queries.clock()}, _seen(form))


def _backfill(call: Call) -> Done:
    row = known_row(call.reader, call.subject)
    if call.form.raw("seen") != _seen(call.form):
        raise Wrong("", "First show what would be sent: the form has changed since, or this was not shown yet.")
    call.beat.backfill(row["name"], **_terms(call.reader, row, call.form), connection=call.connection)
    return Done("backfilled", "task", {"name": row["name"]})


def _about_cancel(reader: Reader, subject: Query) -> About:
    (one,) = reader.backfills(id=subject.name("id")) or (None,)
    if one is None:
        return About(refusal="There is no such backfill: ended ones are removed after pgbeat_retention.")
    if one.state != "running":
        return About(refusal=f"It is {one.state} already.")
    return About([f"A backfill of {one.periodic_task!r}. It sends no more jobs; those already sent still run."])


def _cancel(call: Call) -> Done:
    cancelled = call.beat.cancel_backfill(call.subject.name("id"), connection=call.connection)
    return Done("backfill-cancelled", "task", {"name": cancelled.periodic_task})


BACKFILL = Action(
    "Backfill",
    "Start the backfill",
    _about,
    _backfill,
    (
        Field("since", "From", hint="a day such as 2026-11-01, yesterday, or an instant"),
        Field("until", "To", hint="the same; a day counts as a whole, today up to now"),
        Field("mode", "Which occurrences", "choice", choices=MODES, initial="missing"),
        Field("max_active", "At once", hint="how many of its jobs may be under way, 1 to 1,000", initial="1"),
        Field("seen", "", "hidden"),
    ),
    look=_look,
    looks="Show what would be sent",
    must_look=True,
)
CANCEL_BACKFILL = Action("Cancel: backfill", "Cancel it", _about_cancel, _cancel, parameter="id")
