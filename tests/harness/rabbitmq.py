"""A private RabbitMQ, where the machine has one installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from celery_pgbeat.embedded import Process, Server, ServerUnavailable
from celery_pgbeat.embedded.ports import HOST, free_port
from tests.harness.management import Management
from tests.harness.wait import eventually

# The management plugin only for its way to make virtual hosts, which takes 12 ms where rabbitmqctl takes 2 s.
_PLUGINS = "[rabbitmq_management].\n"
NODE = "test@localhost"
# Erlang's threads wait without turning in a loop, and there are few: many tests share the processors with it.
_QUIET = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
_EPMD_TIMEOUT = 10.0  # seconds


class RabbitMQ(Server):
    """A private RabbitMQ with its own Erlang name server, cookie and data, for any user, without systemd."""

    kind = "rabbitmq"
    stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        super().__init__()
        self._binary = Path()
        self._epmd: Process | None = None
        self._variables: dict[str, str] = {}
        self._epmd_port = self._distribution_port = self._management_port = 0

    @property
    def url(self) -> str:
        """The URL of the default virtual host."""
        return f"amqp://guest:guest@{HOST}:{self.port}//"

    @property
    def management(self) -> Management:
        """Its HTTP interface."""
        return Management(f"http://{HOST}:{self._management_port}", self.url)

    def control(self, *words: str) -> None:
        """Run rabbitmqctl, for what the HTTP interface cannot do; it takes two seconds."""
        tool = str(self._binary.with_name("rabbitmqctl"))
        command = [tool, "--quiet", "--node", NODE, *words]
        subprocess.run(command, env=self._variables, check=True, capture_output=True, timeout=60)

    def stop(self) -> None:
        """Stop it for good: at once, for an orderly stop takes six seconds and there is nothing to keep."""
        self.kill()
        if self._epmd is not None:
            self._epmd.stop()
            self._epmd = None
        super().stop()

    def _prepare(self) -> None:
        self._binary = find_binary()
        (self.folder / "plugins").write_text(_PLUGINS)
        self._epmd_port = free_port()
        epmd = shutil.which("epmd")
        if epmd is None:
            raise ServerUnavailable("rabbitmq-server is here, but Erlang's epmd is not on PATH")
        # Else Erlang starts one as a daemon, which stays for ever.
        command = [epmd, "-address", HOST, "-port", str(self._epmd_port)]
        self._epmd = Process(command, log=self.folder / "epmd.log", cwd=self.folder)
        eventually(lambda: _listens(self._epmd_port), _EPMD_TIMEOUT, "Erlang's name server")

    def _command(self) -> list[str]:
        return [str(self._binary)]

    def _environment(self) -> dict[str, str]:
        self._distribution_port, self._management_port = free_port(), free_port()
        config = self.folder / "rabbitmq.conf"
        config.write_text(f"management.listener.port = {self._management_port}\nmanagement.listener.ip = {HOST}\n")
        self._variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RABBITMQ_")},
            "HOME": str(self.folder),  # the Erlang cookie lives there
            "RUNNING_UNDER_SYSTEMD": "true",  # makes the script become the server instead of waiting for it
            "ERL_EPMD_ADDRESS": HOST,
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _QUIET,
            "RABBITMQ_NODENAME": NODE,
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
        }
        return self._variables

    def _answers(self, process: Process) -> bool:
        # No other process knows the management port, so this also shows that the broker is ours.
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), timeout=1) as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            return bool(connection.recv(8)) and self.management.answers()
        return False


def find_binary() -> Path:
    """Find the server's own start script.

    The one on PATH is often a wrapper that insists on the user `rabbitmq`; the real one lies beside it.
    """
    on_path = shutil.which("rabbitmq-server", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin")))
    if on_path is None:
        raise ServerUnavailable("no rabbitmq-server is installed, and PGBEAT_TEST_AMQP_URL is not set")
    beside = Path(on_path).resolve().parent / "rabbitmq-server"
    return beside if beside.exists() else Path(on_path)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False
