"""On what a figure was measured: the processor, the memory, the versions. Nothing that names the machine itself."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from celery_pgbeat.embedded import valkey
from celery_pgbeat.embedded.errors import ServerUnavailable
from celery_pgbeat.embedded.postgres import find_binaries
from tests.harness import rabbitmq

PACKAGES = ("celery-pgbeat", "celery", "kombu", "amqp", "redis", "SQLAlchemy", "psycopg2-binary")


def described() -> dict[str, str]:
    """Return the machine and the versions, which are printed with the figures."""
    found = {
        "processor": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": platform.python_version(),
    }
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    for name, find in SERVERS.items():
        try:
            found[name] = find()
        except (OSError, subprocess.CalledProcessError, ServerUnavailable):
            continue
    return found


def _told_by(program: Path) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return _number(said)


def _number(text: str) -> str:
    found = re.search(r"\d+\.\d+(\.\d+)*", text)
    return found.group() if found else "unknown"


SERVERS: dict[str, Callable[[], str]] = {
    "Postgres": lambda: _told_by(find_binaries() / "postgres"),
    "Valkey": lambda: _told_by(valkey.find_binary()),
    "RabbitMQ": lambda: _number(str(rabbitmq.find_binary().resolve())),  # asked, it would start an Erlang for that
}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
