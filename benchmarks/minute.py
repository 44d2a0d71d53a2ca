"""The top of the minute: crontabs that are all due at it, one beat; seconds until the last lies at the broker."""

from __future__ import annotations

import argparse
import time

from benchmarks.ground import Ground, length_of, wait_for
from benchmarks.results import Figure
from benchmarks.rows import announce_worker, far, insert, set_due, soon

HEADSTART = 5.0  # seconds between the last write and the first minute


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5, help="minutes")


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure the first and the last message of each minute."""
    firsts, lasts = [], []
    server = ground.valkey
    with ground.database() as database:
        announce_worker(database)
        planning = insert(database, options.rows, "* * * * *", far(60))
        ground.empty("redis")
        length = length_of(server.url)
        with ground.cluster(database, server.url) as cluster:
            cluster.beat()
            begin = soon(HEADSTART + planning, 60)
            set_due(database, begin, every=60)
            for number in range(options.rounds):
                instant = begin.timestamp() + 60 * number
                time.sleep(max(0.0, instant - 0.3 - time.time()))
                firsts.append(wait_for(length, options.rows * number + 1, 50) - instant)
                lasts.append(wait_for(length, options.rows * (number + 1), 50) - instant)
    ground.empty("redis")
    case = f"{options.rows:,} crontabs at the top of the minute"
    return [Figure(f"last message, {case}", "s", lasts), Figure(f"first message, {case}", "s", firsts)]
