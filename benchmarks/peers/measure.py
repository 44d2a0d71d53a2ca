"""The peers: messages a second of each one's `celery beat` with many due schedules, in a window; ours beside them.

Each schedule is due once (or, as a crontab of each minute, at least once). The clock of a peer starts with its first
message, so loading its schedules is not in the rate, and ends with the window or when all have been sent. Ours is the
fire rate of as many rows: from the instant at which they are due until the last message.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from benchmarks.fire import fire
from benchmarks.ground import QUEUE, Ground
from benchmarks.peers.surroundings import interpreter, versions
from benchmarks.results import Figure
from celery_pgbeat.embedded import Process
from tests.harness.processes import ROOT

KINDS = {"intervals": "every 1d", "crontabs": "* * * * *"}
PATIENCE = 120.0  # seconds that a peer's first message is waited for


@dataclass(frozen=True)
class Peer:
    """One of them: its name, its package, the module of its app, and where its schedules are kept."""

    name: str
    package: str
    module: str
    state: str  # nothing, redis or postgres


PEERS = {
    "stock": Peer("Celery's PersistentScheduler", "celery", "benchmarks.peers.stock", "nothing"),
    "redbeat": Peer("celery-redbeat", "celery-redbeat", "benchmarks.peers.redbeat_app", "redis"),
    "django": Peer("django-celery-beat", "django-celery-beat", "benchmarks.peers.django_app", "postgres"),
    "sqlalchemy": Peer(
        "sqlalchemy-celery-beat", "sqlalchemy-celery-beat", "benchmarks.peers.sqlalchemy_app", "postgres"
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--peers", choices=PEERS, nargs="+", default=list(PEERS))
    parser.add_argument("--window", type=float, default=15.0, help="seconds")
    parser.add_argument("--repeats", type=int, default=5)


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure all of them in turn, as often as asked."""
    python = interpreter()
    found = versions(python, [PEERS[name].package for name in options.peers])
    figures: list[Figure] = []
    for kind in options.kinds:
        case = f"{options.rows:,} due {kind}"
        ours = Figure(f"celery-pgbeat, {case}", "messages/s", [])
        theirs = {
            PEERS[name]: Figure(f"{PEERS[name].name} {version}, {case}", "messages/s", [])
            for name, version in zip(options.peers, found, strict=True)
        }
        for _ in range(options.repeats):
            ours.values += [one.rate for one in fire(ground, options.rows, schedule=KINDS[kind])]
            for peer, figure in theirs.items():
                figure.values.append(_rate(ground, python, peer, kind, options))
        for peer, figure in theirs.items():
            ours.beside(peer.name, figure)
        figures += [ours, *theirs.values()]
    return figures


def _rate(ground: Ground, python: Path, peer: Peer, kind: str, options: argparse.Namespace) -> float:
    """Return the messages a second of one peer."""
    ground.empty("redis")
    with _state(ground, peer) as state:
        folder = ground.place()
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PGBEAT_", "CELERY_"))}
        environment = {
            **clean,
            "PYTHONPATH": str(ROOT),
            "PEER_BROKER": ground.valkey.url,
            "PEER_STATE": state,
            "PEER_ROWS": str(options.rows),
            "PEER_KIND": kind,
            "PEER_QUEUE": QUEUE,
        }
        if peer.state != "nothing":
            subprocess.run([python, "-m", peer.module], env=environment, cwd=folder, check=True)
        command = [str(python), "-m", "celery", "-A", peer.module, "beat", "-l", "WARNING"]
        process = Process(command, log=folder / "log", env=environment, cwd=folder)
        try:
            return _counted(ground.valkey.url, process, options)
        finally:
            process.kill()
            process.close()
            ground.empty("redis")


@contextmanager
def _state(ground: Ground, peer: Peer) -> Iterator[str]:
    """Lend the place where a peer keeps its schedules."""
    if peer.state == "postgres":
        with ground.database(migrated=False) as url:
            yield url
    else:
        yield ground.valkey.url.removesuffix("/0") + "/1"


def _counted(broker: str, process: Process, options: argparse.Namespace) -> float:
    """Count from the first message to the end of the window, or until all have been sent."""
    client = redis.Redis.from_url(broker)
    until = time.monotonic() + PATIENCE
    while not (first := int(client.llen(QUEUE))):
        if time.monotonic() > until or not process.is_running():
            raise RuntimeError(f"nothing was sent:\n{process.read_log()}")
        time.sleep(0.001)
    begun = time.monotonic()
    count, ended = first, begun
    while count < options.rows and ended < begun + options.window:
        time.sleep(0.005)
        count, ended = int(client.llen(QUEUE)), time.monotonic()
    if count == first:
        raise RuntimeError(f"only {count} messages in {options.window} s:\n{process.read_log()}")
    return (count - first) / (ended - begun)
