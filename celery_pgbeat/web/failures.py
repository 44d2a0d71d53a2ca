"""What a viewer is told when something is wrong: what it is and what helps, never an address or a value."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping

from celery_pgbeat.errors import (
    DatabaseBusy,
    DatabaseUnavailable,
    NotPermitted,
    PgBeatError,
    SchemaMissing,
    UnknownBackfill,
    UnknownGroup,
    UnknownJob,
    UnknownPeriodicTask,
)
from celery_pgbeat.web.page import Page

TITLES: Mapping[type[PgBeatError], str] = {
    UnknownPeriodicTask: "No such task",
    UnknownJob: "No such job",
    UnknownGroup: "No such group",
    UnknownBackfill: "No such backfill",
}
NOT_THERE = tuple(TITLES)
logger = logging.getLogger(__name__)


def page_of_error(error: PgBeatError) -> Page:
    """Return the page for an error of ours."""
    if title := TITLES.get(type(error)):
        return Page("unknown", title, {"sentence": str(error)}, 404)
    logger.warning("The dashboard cannot read the database: %s", error)
    if isinstance(error, (DatabaseUnavailable, SchemaMissing)):
        return Page("away", "The database does not answer", {"sentence": said_to_viewers(error)}, 503)
    return Page("error", "The database refuses", {"error": None, "sentence": said_to_viewers(error)}, 500)


def page_of_fault() -> Page:
    """Return the page for an error that is being handled and is none of ours; the log has it under a number."""
    number = uuid.uuid4().hex[:8]
    logger.exception("A page of the dashboard could not be drawn: error %s", number)
    return Page("error", "This page could not be drawn", {"error": number, "sentence": None}, 500)


def said_of_change(error: PgBeatError) -> str:
    """Return what to tell a user whose change was refused."""
    if isinstance(error, DatabaseBusy):
        return "Another transaction has locked what you want to change. Nothing was changed: send it again."
    if isinstance(error, DatabaseUnavailable):
        return "The database does not answer. Check whether this was done before you send it again."
    if isinstance(error, NotPermitted):
        return (
            "The dashboard's database user may not do this. Make it a member of the role pgbeat_author; for "
            "work of people, of pgbeat_person."
        )
    return said_to_viewers(error) if isinstance(error, SchemaMissing) else str(error)


def said_to_viewers(error: PgBeatError) -> str:
    """Return what to tell a viewer of an error of the database."""
    if isinstance(error, DatabaseBusy):
        return (
            "The database took too long for this page and ended the statement. Choose fewer rows, or try again later."
        )
    if isinstance(error, SchemaMissing):
        return "The database has no schema of celery-pgbeat, or an older one: run celery-pgbeat migrate."
    if isinstance(error, DatabaseUnavailable):
        return "The database does not answer. Beats wait for it too, and send afterwards what came due."
    if isinstance(error, NotPermitted):
        return "The dashboard's database user may not read this. Make it a member of the role pgbeat_reader."
    return "The dashboard cannot use the database: its log has the reason."
