"""A hot standby of a private Postgres, to be promoted when that is gone."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from urllib.parse import unquote, urlsplit

import psycopg2
from sqlalchemy.engine import make_url

from celery_pgbeat.embedded import Postgres, ServerUnavailable
from celery_pgbeat.embedded.ports import HOST
from celery_pgbeat.embedded.postgres import find_binaries
from celery_pgbeat.embedded.privileges import unprivileged


class Standby(Postgres):
    """Replays what the primary sends, and may only be read until it is promoted.

    Args:
        primary: the URL of the primary, or of a cable before it.
        options: server settings; where Postgres demands it, not below those of the primary.
    """

    def __init__(self, primary: str, *, options: dict[str, str]) -> None:
        super().__init__(durable=False, options=options)
        self._primary = primary
        self.password = unquote(urlsplit(primary).password or "")  # what it copies has the primary's

    def promote(self) -> None:
        """Make it a primary of its own, with what it has got."""
        with closing(psycopg2.connect(self.url)) as connection, connection.cursor() as cursor:
            cursor.execute("select pg_promote()")

    def _prepare(self) -> None:
        self._binaries = find_binaries()
        program = self._binaries / "pg_basebackup"
        if not program.exists():
            raise ServerUnavailable(f"no pg_basebackup is beside the other programs in {self._binaries}")
        self._prefix = unprivileged(self._binaries / "initdb", self.folder)
        passwordless = make_url(self._primary)._replace(password=None).render_as_string()
        command = [*self._prefix, str(program), "-d", passwordless, "-D", str(self._data)]
        # -R writes that this is a standby, and of which server.
        command += ["--checkpoint=fast", "--no-sync", "-R"]
        environment = {**os.environ, "PGPASSWORD": self.password}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServerUnavailable(f"pg_basebackup failed. Its output: {done.stderr.strip()}")


def whichever_is_primary(*urls: str) -> str:
    """Return the URL of the database `postgres` of that one of these servers that may be written to."""
    ports = ",".join(str(urlsplit(url).port) for url in urls)
    hosts = ",".join(HOST for _ in urls)
    user = urlsplit(urls[0]).netloc.rpartition("@")[0]
    return f"postgresql://{user}@/postgres?host={hosts}&port={ports}&target_session_attrs=read-write"
