"""Change the schedule of a periodic task that SQL or the API owns."""

from __future__ import annotations

from celery_pgbeat.web.actions.action import About, Action, Call, Done, Field, Look
from celery_pgbeat.web.actions.tasks import known_row
from celery_pgbeat.web.form import Form, Wrong
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.pages.definition import runs_in_words
from celery_pgbeat.web.reading import Reader

SHOWN = 10  # occurrences


def _about(reader: Reader, subject: Query) -> About:
    row = known_row(reader, subject)
    if refusal := refusal_of(row["managed_by"]):
        return About(refusal=refusal)
    words = runs_in_words(row, reader.zone)
    facts = [f"Now: {words}."] if words else []
    values = {"schedule": row["schedule"] or "", "timezone": row["timezone"] or "", "revision": str(row["revision"])}
    return About(facts, values)


def refusal_of(managed_by: str) -> str | None:
    """Return why the schedule of a row of this owner is not changed here; None if it is."""
    if not managed_by.startswith("code:"):
        return None
    return (
        f"Code declares this task ({managed_by}): change its schedule there. A change here would be lost as soon as "
        "the code changes it. Pause it here if it must stop now."
    )


def look_ahead(reader: Reader, subject: Query, form: Form) -> Look:
    """Compute when the task would run.

    Raises:
        InvalidSchedule, InvalidPeriodicTask: it could not run so.
    """
    row = known_row(reader, subject)
    changes = {"schedule": form.required("schedule"), "timezone": form.text("timezone")}
    changed = reader.runs_after_change(row["name"], changes, SHOWN)
    words = runs_in_words({**row, **changed.columns}, reader.zone)
    return Look("schedule", {"words": words, "runs": changed.runs, "now": reader.queries.clock()})


def _edit(call: Call) -> Done:
    name = call.subject.name()
    row = call.beat.get(name, connection=call.connection)
    if refusal := refusal_of(row.managed_by):
        raise Wrong("", refusal)
    seen = call.form.text("revision")
    if seen != str(row.revision):
        raise _changed_meanwhile(row.schedule)
    schedule, timezone = call.form.required("schedule"), call.form.text("timezone")
    new = call.beat.update(name, schedule=schedule, timezone=timezone, connection=call.connection)
    if new.revision > row.revision + 1:  # another transaction committed between the two statements
        raise _changed_meanwhile(row.schedule)
    return Done("edited", "task", {"name": name})


def _changed_meanwhile(schedule: str | None) -> Wrong:
    sentence = f"Another person has changed this task: its schedule is now {schedule!r}. Send again to change it."
    return Wrong("schedule", sentence, renewed=("revision",))


EDIT = Action(
    "Edit the schedule of",
    "Save",
    _about,
    _edit,
    (
        Field("schedule", "Schedule", hint="such as 0 3 * * *, every 5m, Mon..Fri 09:00, @daily"),
        Field("timezone", "Time zone", hint="such as Europe/Berlin; empty: that of the app, from the next beat on"),
        Field("revision", "", "hidden"),
    ),
    look=look_ahead,
    looks="Check",
)
