"""Soak: a fixed rate for many minutes, each job started and finished; what grows, and what becomes late.

The finishers run the statements of a worker (a start for each job, and their ends together) and no task: two cores
cannot run that many. Lateness is taken in front of them. Sizes are those at the end of each minute; the
history (`finished_job`) grows by every job until its day is dropped, everything else must not.
"""

from __future__ import annotations

import argparse
import time

import redis

from benchmarks.consumer import Arrivals, consumer
from benchmarks.finisher import finishers
from benchmarks.ground import Ground, execute
from benchmarks.results import Figure, percentile
from benchmarks.rows import announce_worker, insert_spread, set_due_spread, soon
from tests.harness.usage import memory

EVERY = 10  # seconds: the interval of each row
HEADSTART = 3.0  # seconds between the last write and the first instant
PATIENCE = 5.0  # seconds that the last messages are waited for
ONWARD = "pgbeat-benchmark-finish"
SIZES = """
select pg_table_size('pgbeat.periodic_task') / 1048576.0, pg_indexes_size('pgbeat.periodic_task') / 1048576.0,
    pg_table_size('pgbeat.active_job') / 1048576.0, pg_indexes_size('pgbeat.active_job') / 1048576.0,
    (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'pgbeat.finished_job'::regclass)
        / 1048576.0,
    (select n_dead_tup from pg_stat_user_tables where relid = 'pgbeat.periodic_task'::regclass),
    (select n_dead_tup from pg_stat_user_tables where relid = 'pgbeat.active_job'::regclass)
"""
COLUMNS = (
    ("periodic_task, table", "MiB"),
    ("periodic_task, indexes", "MiB"),
    ("active_job, table", "MiB"),
    ("active_job, indexes", "MiB"),
    ("finished_job, all", "MiB"),
    ("periodic_task, dead rows", "rows"),
    ("active_job, dead rows", "rows"),
    ("memory of the beat (RSS)", "MiB"),
    ("messages that wait for a finisher", "messages"),
)
SLOPES = ("periodic_task, table", "active_job, table", "active_job, indexes", "memory of the beat (RSS)")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--per-second", type=int, default=2000)
    parser.add_argument("--finishers", type=int, default=12, help="processes")
    parser.add_argument("--sample", type=float, default=60.0, help="seconds between two looks")


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Run it, and print the figures of each minute."""
    samples: list[tuple[float, ...]] = []
    url = ground.valkey.url
    with ground.database() as database:
        announce_worker(database)
        insert_spread(database, options.per_second * EVERY, EVERY)
        ground.empty("redis")
        with (
            ground.cluster(database, url) as cluster,
            finishers(options.finishers, database, url, ONWARD),
            consumer(url, ONWARD) as taker,
        ):
            beat = cluster.beat()
            begin = soon(HEADSTART, EVERY)
            set_due_spread(database, begin, EVERY)
            client = redis.Redis.from_url(url)
            for at in _instants(begin.timestamp(), options):
                time.sleep(max(0.0, at - time.time()))
                sizes = map(float, execute(database, SIZES)[0])
                samples.append((*sizes, memory(beat.pid) / 1024, float(client.llen(ONWARD))))
            time.sleep(PATIENCE)
            arrivals = taker.stop()
    ground.empty("redis")
    return [*_lateness(arrivals, begin.timestamp(), options), *_sizes(samples, options)]


def _instants(begin: float, options: argparse.Namespace) -> list[float]:
    """Return when to look."""
    return [begin + options.sample * number for number in range(1, int(options.minutes * 60 // options.sample) + 1)]


def _lateness(arrivals: Arrivals, begin: float, options: argparse.Namespace) -> list[Figure]:
    intervals = sorted(arrivals.by_interval(begin, options.sample).items())
    whole = [values for number, values in intervals if 0 <= number < int(options.minutes * 60 // options.sample)]
    figures = [
        Figure(f"{_case(options)}: lateness {name}", "ms", [percentile(values, share) * 1000 for values in whole])
        for name, share in (("p50", 0.5), ("p99", 0.99))
    ]
    sent = [len(values) / options.sample for values in whole]
    return [Figure(f"{_case(options)}: sent", "messages/s", sent), *figures]


def _sizes(samples: list[tuple[float, ...]], options: argparse.Namespace) -> list[Figure]:
    series = dict(zip(COLUMNS, map(list, zip(*samples, strict=True)), strict=True))
    figures = [Figure(f"{_case(options)}: {what}", unit, values) for (what, unit), values in series.items()]
    slopes = [
        Figure(f"{_case(options)}: {what}, slope", f"{unit}/min", [_slope(values) * 60 / options.sample])
        for (what, unit), values in series.items()
        if what in SLOPES
    ]
    return figures + slopes


def _case(options: argparse.Namespace) -> str:
    return f"soak, {options.per_second:,} a second for {options.minutes:g} min"


def _slope(values: list[float]) -> float:
    """Return the slope from one value to the next, by least squares."""
    middle = (len(values) - 1) / 2
    mean = sum(values) / len(values)
    below = sum((number - middle) ** 2 for number in range(len(values)))
    return sum((number - middle) * (value - mean) for number, value in enumerate(values)) / below if below else 0.0
