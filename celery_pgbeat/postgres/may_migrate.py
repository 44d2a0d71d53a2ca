"""Whether this user may migrate the schema; if not, an error with the very grant, before anything is locked.

A user who may write the tables may also lock them. Without this check, each attempt of a user who may not alter them
would stop all other sessions for a moment.
"""

from __future__ import annotations

from sqlalchemy.engine import Connection

from celery_pgbeat.errors import NotPermitted

RIGHTS = """
select
    quote_ident(current_user) as role,
    quote_ident(current_database()) as database,
    quote_ident(wanted.name) as schema,
    namespace.oid is not null as has_schema,
    case
        when namespace.oid is null then has_database_privilege(current_database(), 'CREATE')
        else has_schema_privilege(namespace.oid, 'CREATE') and has_schema_privilege(namespace.oid, 'USAGE')
    end as may_create,
    quote_ident(pg_get_userbyid(tables.relowner)) as owner,
    coalesce(pg_has_role(tables.relowner, 'USAGE'), true) as may_alter
from (values (%(schema)s)) as wanted (name)
left join pg_namespace as namespace on namespace.nspname = wanted.name
left join pg_class as tables on tables.relnamespace = namespace.oid and tables.relname = 'schema_version'
"""
WITHOUT = (
    "Or let a user who may do it run `celery-pgbeat migrate`, or apply what `celery-pgbeat sql` prints, and set "
    "pgbeat_auto_migrate = False."
)


def check_may_migrate(connection: Connection, schema: str) -> None:
    """Check that this user may create what a migration creates, and alter what there is.

    Raises:
        NotPermitted: it may not; the message has the grant and what to do without it.
    """
    rights = connection.exec_driver_sql(RIGHTS, {"schema": schema}).one()
    if not rights.may_alter:
        raise NotPermitted(
            f"The user {rights.role} may not migrate the schema {schema!r}, whose tables belong to {rights.owner}: "
            f"grant {rights.owner} to {rights.role}. {WITHOUT}"
        )
    if not rights.may_create:
        what = f"schema {rights.schema}" if rights.has_schema else f"database {rights.database}"
        done = "create tables in" if rights.has_schema else "create"
        privileges = "usage, create" if rights.has_schema else "create"
        raise NotPermitted(
            f"The user {rights.role} may not {done} the schema {schema!r}: "
            f"grant {privileges} on {what} to {rights.role}. {WITHOUT}"
        )
