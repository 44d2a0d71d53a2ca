"""The schema, and what this user may do in it."""

from __future__ import annotations

from collections.abc import Iterator

from celery_pgbeat.cli.doctor.finding import ERROR, WARNING, Finding
from celery_pgbeat.errors import SchemaMissing, SchemaTooNew
from celery_pgbeat.postgres import migrate
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.api_queries import translating


def version(operators: AdminQueries) -> Iterator[Finding]:
    """Look whether this package can work with the schema."""
    database = operators.database
    try:
        with translating(database):
            found = migrate.check(database.engine, database.schema)
    except (SchemaMissing, SchemaTooNew) as error:
        what, _, mend = str(error).rpartition(": ")
        yield Finding(ERROR, f"{what}.", f"{mend[:1].upper()}{mend[1:].rstrip('.')}.")
        return
    if not found.has_our_definitions:
        yield Finding(
            WARNING,
            f"The functions and views of the schema {database.schema!r} are not those of this package.",
            "Run `celery-pgbeat migrate`, or apply what `celery-pgbeat sql` prints with --from "
            f"{found.version}, as the schema's owner.",
        )


def grants(operators: AdminQueries) -> Iterator[Finding]:
    """Look whether this user may do what a beat has to."""
    missing: dict[str, list[str]] = {}
    role = ""
    for row in operators.missing_grants():
        role = row["role"]
        missing.setdefault(row["what"], []).append(row["privilege"].lower())
    shown = [f"{', '.join(privileges)} on {what}" for what, privileges in missing.items()]
    if shown:
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
        yield Finding(
            WARNING,
            f"The user {role!r} lacks what a beat needs: {'; '.join(shown[:5])}{more}.",
            f"Grant it, as the schema's owner: grant {shown[0].replace(' on table ', ' on ')} to {role}; or let beats "
            "connect as another user.",
        )


def search_path(operators: AdminQueries) -> Iterator[Finding]:
    """Look whether others may put a function of theirs in the place of one of Postgres'."""
    for row in operators.open_schemas():
        schema, grantees, role = row["schema"], row["grantees"], row["role"]
        revoke = f"revoke create on schema {schema} from {', '.join(grantees)}"
        if row["ours"]:
            who = "everybody" if "public" in grantees else ", ".join(grantees)
            yield Finding(
                WARNING,
                f"In our schema {schema} not only its owner may create objects: {who}.",
                f"Take that right away, as its owner: {revoke}",
            )
        else:
            yield Finding(
                WARNING,
                f"Everybody may create functions in the schema {schema}, which is in the search_path of the user "
                f"{role}: one that fits better than Postgres' own runs in its place, with the rights of this user.",
                f"Take that right away, as its owner: {revoke}; or the path: alter role {role} set search_path = ''",
            )
