"""The schema, and the privileges of this user."""

from __future__ import annotations

from collections.abc import Iterator

from celery_pgbeat.cli.doctor.finding import ERROR, NOTE, WARNING, Finding
from celery_pgbeat.errors import SchemaMissing, SchemaTooNew
from celery_pgbeat.postgres import migrate
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.api_queries import translating


def version(operators: AdminQueries) -> Iterator[Finding]:
    """Check that this package can work with the schema."""
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
    """Check that this user has the privileges that a beat needs, unless it has one of our other roles."""
    missing: dict[str, list[str]] = {}
    role = ""
    for row in operators.missing_grants():
        if row["member_of"]:
            yield Finding(
                NOTE,
                f"The user {row['role']!r} is a member of {', '.join(row['member_of'])}: not one for beats, and some "
                "checks may need more rights.",
                "Nothing to do, unless a beat connects as this user: then give it another one, a member of "
                f"{operators.database.schema}_beat.",
            )
            return
        role = row["role"]
        missing.setdefault(row["what"], []).append(row["privilege"].lower())
    shown = [f"{', '.join(privileges)} on {what}" for what, privileges in missing.items()]
    if shown:
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
        yield Finding(
            WARNING,
            f"The user {role!r} lacks privileges that a beat needs: {'; '.join(shown[:5])}{more}.",
            f"Grant it, as the schema's owner: grant {shown[0].replace(' on table ', ' on ')} to {role}; or let beats "
            "connect as another user.",
        )


def search_path(operators: AdminQueries) -> Iterator[Finding]:
    """Check that others cannot create functions that run instead of Postgres' own."""
    for row in operators.open_schemas():
        schema, grantees, role = row["schema"], row["grantees"], row["role"]
        revoke = f"revoke create on schema {schema} from {', '.join(grantees)}"
        if row["ours"]:
            who = "every user" if "public" in grantees else ", ".join(grantees)
            yield Finding(
                WARNING,
                f"Other users than its owner may create objects in our schema {schema}: {who}.",
                f"Revoke that right, as the schema's owner: {revoke}",
            )
        else:
            yield Finding(
                WARNING,
                f"Every user may create functions in the schema {schema}, which is in the search_path of the user "
                f"{role}: a function that fits better than Postgres' own runs instead, with the rights of this user.",
                f"Revoke that right, as the schema's owner: {revoke}; or change the path: alter role {role} set "
                "search_path = ''",
            )
