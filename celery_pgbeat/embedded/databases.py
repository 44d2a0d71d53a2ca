"""Creates and drops databases on a server, private or not."""

from __future__ import annotations

from contextlib import closing
from urllib.parse import urlsplit

import psycopg2
from psycopg2 import sql


def create_database(url: str, name: str, template: str | None = None) -> str:
    """Create a database on the server of `url`, whose user must be allowed to, and return the new one's URL.

    Args:
        template: the database to copy; no session may be connected to it.
    """
    copied = sql.SQL(" template {}").format(sql.Identifier(template)) if template else sql.SQL("")
    _execute(url, sql.SQL("create database {}").format(sql.Identifier(name)) + copied)
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def drop_database(url: str, name: str) -> None:
    """Drop a database of the server of `url` and end its sessions; a database that does not exist is no error."""
    _execute(url, sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _execute(url: str, statement: sql.Composable) -> None:
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True  # neither statement runs inside a transaction
        with connection.cursor() as cursor:
            cursor.execute(statement)
