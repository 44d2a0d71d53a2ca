"""Finds a free port for a server that will be stopped and started again on it."""

from __future__ import annotations

import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
_LOWEST = 15_000
_LINUX_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Pick a port of 127.0.0.1 on which nothing listens.

    `bind(0)` would return a port from the range of outgoing connections. While the server is down for a test, a client
    that keeps trying to connect could get that same port as its own. It would then be connected to itself, and the
    server could not start again. Another process may still take the port before the server does, so the caller tries
    again.
    """
    for port in random.SystemRandom().sample(range(_LOWEST, _first_outgoing()), k=100):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise OSError(f"None of 100 ports of {HOST} that were tried is free")


def _first_outgoing() -> int:
    """Return the first port of the range of outgoing connections, if there is room below it."""
    first = int(_LINUX_RANGE.read_text().split()[0]) if _LINUX_RANGE.exists() else 32_768
    return first if first >= _LOWEST + 1_000 else 32_768
