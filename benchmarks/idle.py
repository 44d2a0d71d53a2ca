"""At rest: one row due each minute among many that are not; processor time, statements, memory, and the first send.

Statements are Postgres' count of commits in the database (the beat's connections commit each by itself), so the few of
its own housekeeping are in it.
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass

from benchmarks.ground import QUEUE, Ground, cpu_of, execute, length_of, wait_for
from benchmarks.results import Figure
from benchmarks.rows import announce_worker, far, insert
from tests.harness.processes import Beat, Cluster
from tests.harness.usage import memory

SETTLING = 5.0  # seconds after the start that do not count


@dataclass(frozen=True)
class Sample:
    """What was counted up to an instant (`time.time`): seconds of processor time, commits; and MiB of memory then."""

    at: float
    beat: float
    postgres: float
    commits: int
    memory: float


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--window", type=float, default=60.0, help="seconds that each round counts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--starts", type=int, default=5)


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure the starts, then the rest of the last one."""
    with ground.database() as database:
        announce_worker(database)
        insert(database, options.rows, "0 0 1 1 *", far(60))
        execute(
            database,
            "insert into pgbeat.periodic_task (name, task, args, schedule, timezone, queue, overlap)"
            " values ('busy', 'app.probe', '[\"busy\"]', '* * * * *', 'UTC', %s, 'allow')",
            [QUEUE],
        )
        ground.empty("redis")
        with ground.cluster(database, ground.valkey.url) as cluster:
            starts = [_first_send(ground, cluster, database) for _ in range(options.starts)]
            beat = cluster.beat()
            time.sleep(SETTLING)
            samples = [_sample(ground, database, beat)]
            for _ in range(options.rounds):
                time.sleep(options.window)
                samples.append(_sample(ground, database, beat))
    ground.empty("redis")
    return _figures(options.rows, starts, samples)


def _figures(rows: int, starts: list[float], samples: list[Sample]) -> list[Figure]:
    case = f"1 row a minute among {rows:,}"
    pairs = list(itertools.pairwise(samples))
    seconds = [late.at - early.at for early, late in pairs]

    def a_second(name: str, times: float = 1.0) -> list[float]:
        gains = [getattr(late, name) - getattr(early, name) for early, late in pairs]
        return [gain / duration * times for gain, duration in zip(gains, seconds, strict=True)]

    return [
        Figure(f"processor of the beat, {case}", "% of a core", a_second("beat", 100)),
        Figure(f"processor of Postgres, {case}", "% of a core", a_second("postgres", 100)),
        Figure(f"statements, {case}", "1/s", a_second("commits")),
        Figure(f"memory of the beat (RSS), {case}", "MiB", [sample.memory for sample in samples]),
        Figure(f"first send after the start of the process, {case}", "s", starts),
    ]


def _first_send(ground: Ground, cluster: Cluster, database: str) -> float:
    """Start a beat with one row due, and stop it again; return the seconds until the row's message."""
    length = length_of(ground.valkey.url)
    execute(database, "update pgbeat.periodic_task set next_run_at = now() where name = 'busy'")
    already, begun = length(), time.time()
    beat = cluster.beat(wait=False)
    seconds = wait_for(length, already + 1, 60) - begun
    beat.wait_for_log(beat.ready_word, 60)
    beat.stop()
    return seconds


def _sample(ground: Ground, database: str, beat: Beat) -> Sample:
    name = database.rpartition("/")[2]
    ((commits,),) = execute(ground.postgres.url, "select xact_commit from pg_stat_database where datname = %s", [name])
    return Sample(time.time(), cpu_of(beat.pid), cpu_of(ground.postgres.pid), commits, memory(beat.pid) / 1024)
