"""Lateness: a fixed rate, spread evenly, one beat; from each instant until a consumer has the message.

The consumer's own way (a BRPOP) is part of the figure.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.consumer import Arrivals, consumer
from benchmarks.ground import Ground
from benchmarks.results import Figure, percentile
from benchmarks.rows import announce_worker, insert_spread, set_due_spread, soon

HEADSTART = 3.0  # seconds between the last write and the first instant
EVERY = 10  # seconds: the interval of each row
PATIENCE = 5.0  # seconds that the last messages are waited for


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--per-second", type=int, default=1000)
    parser.add_argument("--beats", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60, help="each ten of them are one round")


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure, and print p50, p99 and the latest of each ten seconds."""
    rounds = max(1, options.seconds // EVERY)
    found = measured(ground, options.per_second, rounds, options.beats)
    case = f"{options.per_second:,} a second"
    return [
        Figure(f"lateness {name}, {case}", "ms", [percentile(values, share) * 1000 for values in found])
        for name, share in (("p50", 0.5), ("p99", 0.99), ("most", 1.0))
    ]


def measured(ground: Ground, per_second: int, rounds: int, beats: int = 1) -> list[list[float]]:
    """Return how late each message was, in seconds, for each round of ten seconds."""
    begin, arrivals = _arrivals(ground, per_second, rounds, beats)
    found = [values for _, values in sorted(arrivals.by_interval(begin, EVERY).items())][:rounds]
    counts = [len(values) for values in found]
    assert [per_second * EVERY] * rounds == counts, counts
    return found


def _arrivals(ground: Ground, per_second: int, rounds: int, beats: int) -> tuple[float, Arrivals]:
    """Return the first instant, and what came."""
    with ground.database() as database:
        announce_worker(database)
        insert_spread(database, per_second * EVERY, EVERY)
        ground.empty("redis")
        with ground.cluster(database, ground.valkey.url) as cluster, consumer(ground.valkey.url) as taker:
            for _ in range(beats):
                cluster.beat()
            begin = soon(HEADSTART, EVERY)
            set_due_spread(database, begin, EVERY)
            time.sleep(max(0.0, begin.timestamp() + EVERY * rounds + PATIENCE - time.time()))
            return begin.timestamp(), taker.stop()
