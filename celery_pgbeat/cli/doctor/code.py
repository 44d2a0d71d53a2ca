"""What code declares and beats refuse or leave to another manager, and whether the schema serves one app."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from celery_pgbeat.beat.upkeep.declared import Declared, read_declared, transfer_to_code, why
from celery_pgbeat.cli.doctor.finding import ERROR, WARNING, Finding, named_and_counted
from celery_pgbeat.cli.output.values import ended, number
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.settings import Settings
from celery_pgbeat.settings.app_name import app_name, manager_of

MOST_SHOWN = 20  # refused declarations that are named; the others are counted


def refused(operators: AdminQueries, settings: Settings, app: Any) -> Iterator[Finding]:
    """Look for declarations that beats have refused, and for those of this app that they would refuse."""
    found = {(row["app"], row["name"]): row["reason"] for row in operators.refused_declarations()}
    if app is not None:
        errors = _declared(settings, app).refused
        found = {**found, **{(manager_of(app), name): why(error) for name, error in errors.items()}}
    yield from named_and_counted(
        [(manager, name, reason) for (manager, name), reason in found.items()],
        MOST_SHOWN,
        lambda manager, name, reason: Finding(
            ERROR,
            f"{manager} declares {name!r}, and its beats refuse that: {ended(reason)}",
            "Fix it in the code, and restart the beats: until then it never runs, or as it was declared before.",
        ),
        lambda more: Finding(
            ERROR,
            f"Beats refuse {number(more, 'more declaration')} in code.",
            "Fix those above first: celery-pgbeat list shows all of them.",
        ),
    )


def of_other_managers(operators: AdminQueries, settings: Settings, app: Any) -> Iterator[Finding]:
    """Look for rows that this app declares and that have another manager."""
    ours, schema = manager_of(app), operators.database.schema
    rows = operators.definitions_of(list(_declared(settings, app).records))
    found = [(name, row["managed_by"]) for name, row in sorted(rows.items()) if row["managed_by"] != ours]
    yield from named_and_counted(
        found,
        MOST_SHOWN,
        lambda name, manager: Finding(
            WARNING,
            f"{ours} declares {name!r}, but the row is managed by {manager!r}: what the code says of it has no effect.",
            f"Remove it from the code; or give the row to the code and restart the beats: "
            f"{transfer_to_code(schema, name, ours)}",
        ),
        lambda more: Finding(
            WARNING,
            f"{number(more, 'more row')} that {ours} declares are managed by others.",
            "Deal with those above first: celery-pgbeat list --json shows who manages each row.",
        ),
    )


def apps(operators: AdminQueries, app: Any) -> Iterator[Finding]:
    """Check that beats of one app use the schema, and that the app of the command line is that one."""
    schema = operators.database.schema
    first, *others = [row["name"] for row in operators.apps()] or [None]
    for other in others:
        yield Finding(
            ERROR,
            f"This schema has two apps: beats of {other!r} run beside those of {first!r}, which the schema {schema!r} "
            f"serves, and send nothing while these live.",
            f"Give {other!r} a schema of its own: pgbeat_schema. If it is {first!r} renamed, stop the beats of the old "
            "name.",
        )
    ours = None if app is None else app_name(app)
    if first is not None and ours is not None and ours not in (first, *others):
        yield Finding(
            WARNING,
            f"This schema has two apps: its beats are of {first!r}, and -A names {ours!r}.",
            f"Give {ours!r} a schema of its own: pgbeat_schema; or name the app {first!r} after -A.",
        )


def _declared(settings: Settings, app: Any) -> Declared:
    app.loader.import_default_modules()
    return read_declared(app, settings)
