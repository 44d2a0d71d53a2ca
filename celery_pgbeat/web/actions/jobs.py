"""What is known of a job before something is done to it; and how a task for people is picked up."""

from __future__ import annotations

from typing import Any

from celery_pgbeat.api.ids import read_job_id
from celery_pgbeat.errors import UnknownJob
from celery_pgbeat.web.actions.action import About, Call
from celery_pgbeat.web.page import Query
from celery_pgbeat.web.reading import Reader

MOST_WORK = 10_000  # open tasks among which one is looked up


def about(reader: Reader, subject: Query) -> About:
    """Say which job it is, and its error."""
    row = _known_job(reader, subject)
    error = [f"Its error: {row['error']}"] if row["error"] else []
    return About([f"A job of {row['periodic_task']!r}, {row['state']}.", *error])


def about_pick_up(reader: Reader, subject: Query) -> About:
    """Return who may pick up a task, in words."""
    row = _known_job(reader, subject)
    targets = _targets(reader, str(row["id"]))
    target = f"It is for {', '.join(targets)}." if targets else "It is for anybody."
    return About([f"A task of {row['periodic_task']!r}.", target])


def pick_up(call: Call) -> None:
    """Pick a task for people up. One who may change something may take what is for others: no roles are known here."""
    id = call.subject.name("id")
    owner = call.person.name or call.form.required("owner")
    call.beat.pick_up(id, owner, _targets(call.reader, id), connection=call.connection)


def _known_job(reader: Reader, subject: Query) -> dict[str, Any]:
    id = str(read_job_id(subject.name("id")))
    row = reader.queries.job(id)
    if row is None:
        raise UnknownJob(f"There is no job {id}: it may have been removed after pgbeat_retention")
    return row


def _targets(reader: Reader, id: str) -> list[str]:
    found = [work for work in reader.queries.open_work(MOST_WORK) if str(work["id"]) == id]
    return list(found[0]["target"] or ()) if found else []
