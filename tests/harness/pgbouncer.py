"""A private PgBouncer, where the machine has one installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
from pathlib import Path

from sqlalchemy.engine import make_url

from celery_pgbeat.embedded import Process, Server, ServerUnavailable
from celery_pgbeat.embedded.ports import HOST
from celery_pgbeat.embedded.privileges import unprivileged


class PgBouncer(Server):
    """A pooler before one database.

    Args:
        database: the database's URL; every client is its user.
        pool_size: the server connections that all clients share.
        mode: `transaction`: each statement goes to whichever of them is free; `session`: each client has one of them
            for as long as it stays.
    """

    kind = "pgbouncer"
    stop_signal = signal.SIGTERM

    def __init__(self, database: str, pool_size: int, mode: str = "transaction") -> None:
        super().__init__()
        self._database = make_url(database)
        self.pool_size = pool_size
        self._mode = mode
        self._binary = Path()
        self._prefix: list[str] = []

    @property
    def url(self) -> str:
        """The database's URL through the pooler."""
        return self._database.set(host=HOST, port=self.port).render_as_string(hide_password=False)

    def _prepare(self) -> None:
        found = shutil.which("pgbouncer", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin")))
        if found is None:
            raise ServerUnavailable("no pgbouncer is on PATH")
        self._binary = Path(found)
        self._prefix = unprivileged(self._binary, self.folder)

    def _command(self) -> list[str]:
        target = self._database
        server = f"host={target.host} port={target.port or 5432} dbname={target.database} user={target.username}"
        if target.password:
            server += f" password={target.password}"
        users = self._keep_secret("users", f'"{target.username}" "{target.password or ""}"\n')
        configuration = self._keep_secret(
            "pgbouncer.ini",
            f"""
[databases]
{target.database} = {server}
[pgbouncer]
listen_addr = {HOST}
listen_port = {self.port}
unix_socket_dir =
auth_type = {"scram-sha-256" if target.password else "any"}
auth_file = {users}
pool_mode = {self._mode}
default_pool_size = {self.pool_size}
""",
        )
        return [*self._prefix, str(self._binary), str(configuration)]

    def _answers(self, process: Process) -> bool:
        # It listens before it logs that it is up, and does not log it if another process has the port.
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
            return f"[{process.pid}] LOG process up" in process.read_log()
        return False
