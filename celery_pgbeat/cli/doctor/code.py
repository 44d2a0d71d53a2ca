"""What code declares and beats refuse, and whether the schema serves one app."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from celery_pgbeat.app_name import app_name, manager_of
from celery_pgbeat.cli.doctor.finding import ERROR, WARNING, Finding
from celery_pgbeat.cli.output import number
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.settings import Settings

MOST_SHOWN = 20  # refused declarations that are named; the others are counted


def refused(operators: AdminQueries, settings: Settings, app: Any) -> Iterator[Finding]:
    """Look for declarations that beats have refused, and for those of this app that they would refuse."""
    found = {(row["app"], row["name"]): row["reason"] for row in operators.refused_declarations()}
    if app is not None:
        found = {**found, **_refused_here(settings, app)}
    for (manager, name), reason in list(found.items())[:MOST_SHOWN]:
        yield Finding(
            ERROR,
            f"{manager} declares {name!r}, and its beats refuse that: {reason.rstrip('.')}.",
            "Mend it in the code, and restart the beats: until then it never runs, or as it was declared before.",
        )
    if len(found) > MOST_SHOWN:
        yield Finding(
            ERROR,
            f"Beats refuse {number(len(found) - MOST_SHOWN, 'more declaration')} in code.",
            "Fix those above first: celery-pgbeat list shows all of them.",
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


def _refused_here(settings: Settings, app: Any) -> dict[tuple[str, str], str]:
    """Return what beats of this app would refuse, with the reasons."""
    from celery_pgbeat.beat.upkeep.declared import read_declared, why

    app.loader.import_default_modules()
    errors = read_declared(app, settings).refused
    return {(manager_of(app), name): why(error) for name, error in errors.items()}
