"""A change until it is acted on: from an INSERT by any client (psycopg2 here) to its message at the broker.

The row is due once, now. The clock starts before the INSERT is sent; nothing else is due, so the beat is asleep.
"""

from __future__ import annotations

import argparse
import random
import time
from contextlib import closing

import psycopg2

from benchmarks.ground import QUEUE, Ground, length_of, wait_for
from benchmarks.results import Figure, percentile
from benchmarks.rows import announce_worker

REPEATS = 5  # parts into which the inserts are divided, for the spread


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--inserts", type=int, default=50, help="in each of five parts")
    parser.add_argument("--beats", type=int, default=1)


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure the parts, one after the other."""
    with ground.database() as database:
        announce_worker(database)
        ground.empty("redis")
        with ground.cluster(database, ground.valkey.url) as cluster:
            for _ in range(options.beats):
                cluster.beat().wait_for_log("works on", 30)
            parts = [_inserts(ground, database, options.inserts, f"part-{part}") for part in range(REPEATS)]
    ground.empty("redis")
    return [
        Figure(f"INSERT to message {name}", "ms", [percentile(part, share) for part in parts])
        for name, share in (("p50", 0.5), ("p99", 0.99))
    ]


def _inserts(ground: Ground, database: str, count: int, prefix: str) -> list[float]:
    """Insert one row after the other at odd moments; return the milliseconds of each."""
    length = length_of(ground.valkey.url)
    found = []
    with closing(psycopg2.connect(database)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        for number in range(count):
            time.sleep(random.uniform(0.1, 0.4))  # the beat must be asleep again, and not always as deep
            already, begun = length(), time.time()
            cursor.execute(
                "insert into pgbeat.periodic_task (name, task, args, queue, next_run_at)"
                " values (%s, 'app.probe', '[\"now\"]', %s, clock_timestamp())",
                [f"{prefix}-{number}", QUEUE],
            )
            found.append((wait_for(length, already + 1, 30, step=0.0005) - begun) * 1000)
    return found
