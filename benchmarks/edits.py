"""Edits beside ticks: what authors' changes by SQL cost the beats and Postgres, beside a fixed rate of due rows.

Stretches without edits and with edits of two kinds alternate. One kind changes the arguments of the rows that tick, the
other the schedule of rows that are not due, which a beat then plans anew. The edits' own statements are in the figures.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import closing

import psycopg2

from benchmarks.ground import Ground, cpu_of, execute
from benchmarks.results import Figure
from benchmarks.rows import AS_A_BEAT, announce_worker, far, insert_spread, set_due_spread, soon

EVERY = 10  # seconds: the interval of the rows that tick
HEADSTART = 3.0  # seconds between the last write and the first instant
SETTLING = 10.0  # seconds after the first instant that do not count
RESTING = 1_000  # rows whose schedules are edited
EDITS = {
    "arguments": "update pgbeat.periodic_task set args = jsonb_build_array(%s) where name = 'row-' || %s",
    "schedules": "update pgbeat.periodic_task set schedule = '0 0 ' || 1 + %s %% 28 || ' 1 *' "
    "where name = 'resting-' || %s",
}

INSERT_RESTING = (
    f"{AS_A_BEAT}; insert into pgbeat.periodic_task (name, task, schedule, timezone, planned_revision, next_run_at) "
    "select 'resting-' || n, 'app.probe', '0 0 1 1 *', 'UTC', 1, %s from generate_series(1, %s) as n"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--ticks", type=int, default=150, help="due rows a second")
    parser.add_argument("--edits", type=int, default=100, help="edits a second")
    parser.add_argument("--beats", type=int, default=3)
    parser.add_argument("--duration", type=float, default=17.0, help="seconds of each; autovacuum comes once a minute")
    parser.add_argument("--rounds", type=int, default=5)


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure the stretches in turn."""
    with ground.database() as database:
        announce_worker(database)
        insert_spread(database, options.ticks * EVERY, EVERY)
        ground.empty("redis")
        with ground.cluster(database, ground.valkey.url) as cluster:
            pids = [ground.postgres.pid, *(cluster.beat().pid for _ in range(options.beats))]
            set_due_spread(database, begin := soon(HEADSTART, EVERY), EVERY)
            execute(database, INSERT_RESTING, [far(60), RESTING])
            time.sleep(max(0.0, begin.timestamp() + SETTLING - time.time()))
            used: dict[str | None, list[float]] = {None: [], **{kind: [] for kind in EDITS}}
            edits = itertools.count()
            kinds = list(used)
            for number in range(options.rounds):
                for kind in kinds[number % len(kinds) :] + kinds[: number % len(kinds)]:
                    used[kind].append(_stretch(database, pids, options, kind, edits))
    ground.empty("redis")
    case = f"{options.ticks:,} ticks a second, {options.beats} beats"
    without = Figure(f"processor of beats and Postgres, {case}", "% of a core", used[None])
    return [without, *(_more(kind, options.edits, case, used) for kind in EDITS)]


def _more(kind: str, edits: int, case: str, used: dict[str | None, list[float]]) -> Figure:
    more = [edited - quiet for edited, quiet in zip(used[kind], used[None], strict=True)]
    return Figure(f"the same with {edits:,} edits of {kind} a second, {case}: more by", "% of a core", more)


def _stretch(
    database: str, pids: Sequence[int], options: argparse.Namespace, kind: str | None, edits: Iterator[int]
) -> float:
    """Let a stretch go by, with edits if there is a kind; return the processor time in % of a core."""
    begun, before = time.time(), sum(map(cpu_of, pids))
    ends = begun + options.duration
    if kind is None:
        time.sleep(options.duration)
    else:
        rows = RESTING if kind == "schedules" else options.ticks * EVERY - 1
        with closing(psycopg2.connect(database)) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            for number in range(round(options.duration * options.edits)):
                time.sleep(max(0.0, begun + number / options.edits - time.time()))
                edit = next(edits)
                cursor.execute(EDITS[kind], [edit, 1 + edit % rows])
            time.sleep(max(0.0, ends - time.time()))
            return _percent(pids, before, begun)
    return _percent(pids, before, begun)


def _percent(pids: Sequence[int], before: float, begun: float) -> float:
    return (sum(map(cpu_of, pids)) - before) / (time.time() - begun) * 100
