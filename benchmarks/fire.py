"""Fire rate: rows all due at one instant, each once; messages a second until the last lies at the broker.

The clock starts at the instant at which the rows are due, never later than the first mark. Beside it two limits of the
same machine in the same run: the bare one (`bare.py`), and on Redis the lean tick (`lean.py`). And the processor time
of each message.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.bare import bare
from benchmarks.ground import BROKERS, Ground, cpu_of, execute, length_of, wait_for
from benchmarks.lean import lean
from benchmarks.results import Figure
from benchmarks.rows import announce_worker, far, insert, set_due, soon
from celery_pgbeat.embedded import Server

HEADSTART = 3.0  # seconds between the beats' start, or the last write, and the instant
SPACING = 10  # seconds between two rounds
MINUTE, HOUR = 60, 3_600
# Seconds; what is decided within twice a lease is on time, and no catch-up. As with the default, the lease is shorter
# than the pickup deadline: otherwise a confirm would bring a job's next check forward, which writes to three indexes.
NEVER_LATE = {"pgbeat_lease": 600}
# How messages are made, and the signal that needs a handler for that.
WAYS = {"rendered": "", "together": "before_task_publish", "single": "after_task_publish"}
MANY_ROUNDS = 10_000  # rows up to which one round is too short to be measured alone


@dataclass(frozen=True)
class Fired:
    """One round: how many, in how many seconds, and of each message the processor time in microseconds, and the WAL."""

    rows: int
    seconds: float
    beat_us: float
    postgres_us: float
    broker_us: float
    wal_bytes: float

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.rows / self.seconds


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--beats", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--broker", choices=BROKERS, default="redis")
    parser.add_argument(
        "--way",
        choices=WAYS,
        default="rendered",
        help="of the messages: rendered for a batch, made by Celery and written together (Redis), or one by one",
    )
    parser.add_argument("--rounds", type=int, help="rounds on the same rows; default: 10 up to 10,000 rows, else 1")
    parser.add_argument("--repeats", type=int, default=5, help="each on a new database, in turn with the bare limit")


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure each size with each number of beats."""
    figures: list[Figure] = []
    for rows in options.rows:
        fewest: Figure | None = None
        for beats in options.beats:
            found = _case(ground, rows, beats, options)
            if fewest is None:
                fewest = found[0]
            else:
                found[0].beside(f"that of {_beats(options.beats[0])}", fewest)
            figures += found
    return figures


def _case(ground: Ground, rows: int, beats: int, options: argparse.Namespace) -> list[Figure]:
    rounds = options.rounds or (10 if rows <= MANY_ROUNDS else 1)
    fired: list[Fired] = []
    rates: list[float] = []
    leanest: list[float] = []
    for _ in range(options.repeats):
        fired += fire(ground, rows, beats, options.broker, rounds, way=options.way)
        rates += bare(ground, rows, beats, options.broker, rounds)
        if options.broker == "redis":
            leanest += lean(ground, rows, beats, rounds)
    case = f"{options.broker}, {rows:,} rows, {_beats(beats)}"
    limit = Figure(f"bare limit, {case}", "messages/s", rates)
    case += "" if options.way == "rendered" else f", messages made by Celery, {options.way}"
    ours = Figure(f"fire rate, {case}", "messages/s", [one.rate for one in fired]).beside("the bare limit", limit)
    limits = [limit]
    if leanest:
        limits.append(Figure(f"lean tick, {options.broker}, {rows:,} rows, {_beats(beats)}", "messages/s", leanest))
        ours.beside("the lean tick", limits[-1])
    # The limits of the other ways are the same; they are printed with the first.
    return [ours, *(limits if options.way == "rendered" else []), *_costs(case, fired)]


def _costs(case: str, fired: Sequence[Fired]) -> list[Figure]:
    return [
        Figure(f"WAL, {case}", "bytes/message", [one.wal_bytes for one in fired]),
        *_processor_times(case, fired),
    ]


def _processor_times(case: str, fired: Sequence[Fired]) -> list[Figure]:
    return [
        Figure(f"processor time of {what}, {case}", "us/message", [getattr(one, name) for one in fired])
        for what, name in (("the beats", "beat_us"), ("Postgres", "postgres_us"), ("the broker", "broker_us"))
    ]


def _beats(number: int) -> str:
    return "1 beat" if number == 1 else f"{number} beats"


def fire(
    ground: Ground,
    rows: int,
    beats: int = 1,
    broker: str = "redis",
    rounds: int = 1,
    schedule: str | None = None,
    way: str = "rendered",
) -> list[Fired]:
    """Fire the rows in this many rounds, ten seconds apart.

    With a schedule of their own, which is to be one of the full minute, they fire once.
    """
    assert schedule is None or rounds == 1
    server = ground.broker(broker)
    with ground.database() as database:
        announce_worker(database)
        planning = insert(database, rows, schedule or (f"every {SPACING}s" if rounds > 1 else "every 1h"), far(60))
        ground.empty(broker)
        settings = {**NEVER_LATE, "benchmark_listens": WAYS[way]}
        with ground.cluster(database, server.url, **settings) as cluster:
            pids = [cluster.beat(app="benchmarks.listening_app").pid for _ in range(beats)]
            begin = soon(HEADSTART + planning, 60 if schedule else SPACING)
            set_due(database, begin, MINUTE if schedule else SPACING if rounds > 1 else HOUR)
            assert time.time() < begin.timestamp(), "the rows were not written in time"
            length = length_of(server.url)
            found = []
            for number in range(rounds):
                if number:  # what autovacuum does in its time, and what the lean tick's tables get as well
                    execute(database, "vacuum analyze pgbeat.periodic_task, pgbeat.active_job")
                instant = begin.timestamp() + SPACING * number
                found.append(_round(ground, server, pids, rows, instant, length, rows * (number + 1)))
            time.sleep(0.2)
            assert length() == rows * rounds, (length(), rows * rounds)
        ground.empty(broker)
    return found


def _round(
    ground: Ground,
    server: Server,
    pids: Sequence[int],
    rows: int,
    instant: float,
    length: Callable[[], int],
    expected: int,
) -> Fired:
    """Wait for the instant, then for the last message."""
    time.sleep(max(0.0, instant - 0.3 - time.time()))
    before = _used(server, ground, pids)
    done = wait_for(length, expected, 30 + rows / 1000)
    used = zip(before, _used(server, ground, pids), strict=True)
    return Fired(rows, done - instant, *((late - early) / rows for early, late in used))


def _used(server: Server, ground: Ground, pids: Sequence[int]) -> tuple[float, float, float, float]:
    """Return the processor time of the beats, Postgres and the broker, in microseconds, and the bytes of WAL."""
    ((wal,),) = execute(ground.postgres.url, "select pg_current_wal_insert_lsn() - '0/0'")
    processors = (sum(map(cpu_of, pids)), cpu_of(ground.postgres.pid), cpu_of(server.pid))
    return *(1e6 * seconds for seconds in processors), float(wal)
