"""The table of changes as Python sees it: who changed what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

from celery_pgbeat.choices import ChangeAction, ChangeKind


@dataclass(frozen=True, slots=True)
class Change:
    """One row of `pgbeat.change`.

    Attributes:
        id: what `revert` takes; a later change of the same object has a higher one.
        at: when, by the clock of the database.
        who: the person that `as_person` or the session named, else the app, the owner or the role.
        role: the role of the database that had logged in; only this is proven.
        kind: `periodic_task`, `group` or `window`.
        name: of the periodic task, the group or the window; after a renaming the new one.
        action: what was done.
        revision: of the periodic task, after the change.
        columns: those that differ; empty for a new or removed row.
        before: what the columns were that differ, as JSON: instants in ISO 8601, durations in seconds. Of a removed
            row, all that are not NULL. The arguments of a row that was sensitive then, or is now, are `<sensitive>`;
            for who may not read arguments `args`, `kwargs` and `options` are missing.
        after: what they are since; of a new row, what is not at its default. Of a job or a backfill, what is known of
            it.
        job: the job, if it is about one.
        backfill: the backfill, if it is about one.
        reason: why, if the caller gave a reason.
    """

    id: int
    at: datetime
    who: str
    role: str
    kind: ChangeKind
    name: str
    action: ChangeAction
    revision: int | None
    columns: tuple[str, ...]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    job: UUID | None
    backfill: UUID | None
    reason: str | None


def read_change(row: Mapping[str, Any]) -> Change:
    """Return a row of the statement `changes`, of any driver."""
    return Change(
        id=row["id"],
        at=row["at"].astimezone(timezone.utc),
        who=row["who"],
        role=row["role"],
        kind=row["kind"],
        name=row["name"],
        action=row["action"],
        revision=row["revision"],
        columns=tuple(row["columns"] or ()),
        before={**read_json(row["before"]), **read_json(row["arguments_before"])},
        after={**read_json(row["after"]), **read_json(row["arguments_after"])},
        job=_uuid(row["job"]),
        backfill=_uuid(row["backfill"]),
        reason=row["reason"],
    )


def read_json(value: Any) -> dict[str, Any]:
    """Return a JSON object; some drivers parse JSON and some leave it as text."""
    read: dict[str, Any] = json.loads(value) if isinstance(value, str) else value or {}
    return read


def _uuid(value: Any) -> UUID | None:
    return None if value is None else UUID(str(value))
