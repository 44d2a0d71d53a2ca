"""Runs a peer's program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.harness.peers.entries import COUNT

Runs = Mapping[str, list[datetime]]


def run_peer(peer: str, command: str, url: str, *instants: datetime, drawn: int = 0) -> list[Any]:
    """Run a peer's program, which draws this many entries besides its own; return the lines of JSON that it prints."""
    words = [sys.executable, "-m", f"tests.harness.peers.{peer}", command, url, *(at.isoformat() for at in instants)]
    environment = {**os.environ, COUNT: str(drawn)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert 0 == done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def peer_runs(peer: str, url: str, start: datetime, end: datetime, drawn: int = 0) -> Runs:
    """Return when a peer would run its entries, by name."""
    lines = run_peer(peer, "runs", url, start, end, drawn=drawn)
    return {name: [datetime.fromisoformat(instant) for instant in instants] for name, instants in lines}
