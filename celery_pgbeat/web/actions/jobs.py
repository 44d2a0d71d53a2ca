"""Cancel a job, have one sent again, run one again, or give one up; the work of people."""

from __future__ import annotations

from typing import Any, cast

from celery_pgbeat.api.ids import read_job_id
from celery_pgbeat.choices import WorkOutcome
from celery_pgbeat.errors import UnknownJob
from celery_pgbeat.web.actions.action import About, Action, Call, Done, Field
from celery_pgbeat.web.actions.tasks import FORCE
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader

MOST_WORK = 10_000  # open tasks among which one is looked up
REASON = Field("reason", "Why", hint="recorded in the job's error; up to 1,000 characters")
OWNER = Field("owner", "Who", hint="the name by which your application knows this person", only_nameless=True)
OUTCOMES = {"succeeded": "it is done", "failed": "it could not be done"}


def _known_job(reader: Reader, subject: Query) -> dict[str, Any]:
    id = str(read_job_id(subject.name("id")))
    row = reader.queries.job(id)
    if row is None:
        raise UnknownJob(f"There is no job {id}: it may have been removed after pgbeat_retention")
    return row


def _job(*facts: str) -> Any:
    def about(reader: Reader, subject: Query) -> About:
        row = _known_job(reader, subject)
        error = [f"Its error: {row['error']}"] if row["error"] else []
        return About([f"A job of {row['periodic_task']!r}, {row['state']}.", *error, *facts])

    return about


def _about_pick_up(reader: Reader, subject: Query) -> About:
    row = _known_job(reader, subject)
    targets = _targets(reader, str(row["id"]))
    target = f"It is for {', '.join(targets)}." if targets else "It is for anybody."
    return About([f"A task of {row['periodic_task']!r}.", target])


def _targets(reader: Reader, id: str) -> list[str]:
    found = [work for work in reader.queries.open_work(MOST_WORK) if str(work["id"]) == id]
    return list(found[0]["target"] or ()) if found else []


def _cancel(call: Call) -> Done:
    id = call.subject.name("id")
    call.beat.cancel_job(id, call.form.text("reason"), connection=call.connection)
    return Done("cancelled", "job", {"id": id})


def _resend(call: Call) -> Done:
    id = call.subject.name("id")
    call.beat.resend_job(id, connection=call.connection)
    return Done("resent", "job", {"id": id})


def _retry(call: Call) -> Done:
    made = call.beat.retry_job(call.subject.name("id"), call.form.switch("force"), connection=call.connection)
    return Done("retried", "job", {"id": str(made.job)})


def _fail(call: Call) -> Done:
    id = call.subject.name("id")
    call.beat.fail_job(id, call.form.text("reason"), connection=call.connection)
    return Done("failed", "job", {"id": id})


def _pick_up(call: Call) -> Done:
    # The dashboard knows no roles of users: one who may change something may take what is for others.
    id = call.subject.name("id")
    owner = call.person.name or call.form.required("owner")
    call.beat.pick_up(id, owner, _targets(call.reader, id), connection=call.connection)
    return Done("picked-up", "work")


def _release(call: Call) -> Done:
    call.beat.release(call.subject.name("id"), connection=call.connection)
    return Done("released", "work")


def _finish(call: Call) -> Done:
    outcome = cast("WorkOutcome", call.form.required("outcome"))
    call.beat.finish(call.subject.name("id"), outcome, call.form.text("note"), connection=call.connection)
    return Done("finished", "work")


CANCEL_JOB = Action(
    "Cancel: job",
    "Cancel it",
    _job("It ends as revoked. If its message is still at the broker, the guard drops it."),
    _cancel,
    (REASON,),
    parameter="id",
    back="job",
)
RESEND_JOB = Action(
    "Send again: job",
    "Send it again",
    _job("A beat sends its message at once. If the first one still exists, the guard starts only one of the two."),
    _resend,
    parameter="id",
    back="job",
)
RETRY_JOB = Action(
    "Run again: job",
    "Run it again",
    _job("A job that waits for a decision runs again under its own id. For any other job a new one is made."),
    _retry,
    (FORCE,),
    parameter="id",
    back="job",
)
FAIL_JOB = Action(
    "Give up: job",
    "Give it up",
    _job("It ends as failed."),
    _fail,
    (REASON,),
    parameter="id",
    back="job",
)
PICK_UP = Action("Pick up: job", "Pick it up", _about_pick_up, _pick_up, (OWNER,), parameter="id", back="work")
RELEASE = Action(
    "Give back: job", "Give it back", _job("Then others can pick it up."), _release, parameter="id", back="work"
)
FINISH = Action(
    "Finish: job",
    "Finish it",
    _job(),
    _finish,
    (
        Field("outcome", "Outcome", "choice", choices=OUTCOMES, initial="succeeded"),
        Field("note", "Note", "area", "a note about the result; up to 1,000 characters"),
    ),
    parameter="id",
    back="work",
)
