"""A database user for one test, whose settings and rights the test can change as an administrator does."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg2
from psycopg2 import sql
from sqlalchemy.engine import make_url


class Role:
    """A user with the rights in the schema `pgbeat` of one database that a beat and a worker need.

    What `set` sets is in force for connections made from then on; `disconnect` ends those that there are.

    Attributes:
        owner_url: the database's URL for the user that made this one.
    """

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.owner_url = url
        secret = f"{name}-secret"
        self._execute("create role {} login password %s", secret)
        self._execute("grant usage on schema pgbeat to {}")
        self._execute("grant all on all tables in schema pgbeat to {}")
        self._execute("grant execute on all functions in schema pgbeat to {}")
        self._login = make_url(url).set(username=name, password=secret)

    def url(self, driver: str = "psycopg2") -> str:
        """The database's URL for this user."""
        return self._login.set(drivername=f"postgresql+{driver}").render_as_string(hide_password=False)

    def set(self, setting: str, value: str) -> None:
        """Give it a setting."""
        self._execute(f"alter role {{}} set {setting} = %s", value)

    def reset(self) -> None:
        """Take all settings and limits away."""
        self._execute("alter role {} reset all")
        self.limit(-1)

    def limit(self, connections: int) -> None:
        """Limit its connections; -1 for no limit."""
        self._execute("alter role {} connection limit %s", connections)

    def disconnect(self) -> None:
        """End all its connections."""
        self._execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", self.name)

    def drop(self) -> None:
        """Remove it."""
        self.disconnect()
        self._execute("drop owned by {}")
        self._execute("drop role {}")

    def _execute(self, statement: str, *values: Any) -> None:
        with closing(psycopg2.connect(self.owner_url)) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute(sql.SQL(statement).format(sql.Identifier(self.name)), values or None)
