"""Planning: what a decision about a due row costs, beside one question to croniter in the same run.

Ordinary rows: on time, without windows and jitter. A decision finds the next run, the deadline and the job's id.
"first" is the first round, which reads the schedules; the other figures are of the rounds after it. Processor time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone

from croniter import croniter

from benchmarks.ground import Ground
from benchmarks.results import Figure
from celery_pgbeat.planning import Due, Rules, decide

ROUNDS = 5
ROWS = 10_000
QUESTIONS = 1000  # to croniter, in a round
MADE = datetime(2026, 1, 1, tzinfo=timezone.utc)
DUE = datetime(2026, 12, 7, 8, tzinfo=timezone.utc)  # 09:00 in Berlin, a Monday
RULES = Rules(timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))
MICROSECOND = timedelta(microseconds=1)


def due(number: int, schedule: str, zone: str | None = None, anchor: datetime = MADE) -> Due:
    """Return an ordinary row that is due."""
    return Due(
        name=f"task-{number}",
        schedule=schedule,
        timezone=zone,
        anchor=anchor,
        dst="default",
        start_at=None,
        end_at=None,
        max_runs=None,
        run_count=0,
        jitter=None,
        blackout=None,
        blackout_action="defer",
        windows={},
        held_back=None,
        revision=1,
        planned_from=MADE,
        task="shop.report",
        args="[]",
        kwargs="{}",
        queue=None,
        priority=None,
        options="{}",
        sensitive=False,
        catchup="latest",
        catchup_window=None,
        catchup_limit=None,
        max_run_time=None,
        next_run_at=DUE + timedelta(0),  # every row that is read has instants of its own
        planned_for=DUE + timedelta(0),
        last_run_at=DUE - timedelta(minutes=5),
        marked_at=DUE + timedelta(seconds=1),
        taken_over=False,
        created_at=MADE + number * MICROSECOND,
    )


KINDS: Mapping[str, Callable[[int], Due]] = {
    "all every 10s": lambda number: due(number, "every 10s"),
    "all */5 * * * *": lambda number: due(number, "*/5 * * * *"),
    "all 0 9 * * 1-5 in Berlin": lambda number: due(number, "0 9 * * 1-5", "Europe/Berlin"),
    "all every 365d": lambda number: due(number, "every 365d"),
    "ten texts": lambda number: due(number, f"every {10 + number % 10}s"),
    "anchors of their own": lambda number: due(number, "every 10s", anchor=MADE + number * MICROSECOND),
    "texts of their own": lambda number: due(number, f"every {10 + number}s"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add how many rows are due."""
    parser.add_argument("--rows", type=int, default=ROWS, help="how many rows are due")


def run(_ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Decide about rows that share schedules, and about rows that do not."""
    theirs = Figure("croniter: next of */5 * * * *", "us/call", [_croniter() for _ in range(ROUNDS)])
    ours = [figure for kind, made in KINDS.items() for figure in _decided(kind, [made(n) for n in range(options.rows)])]
    return [theirs, *(figure.beside("croniter's next", theirs) for figure in ours)]


def _decided(kind: str, rows: Sequence[Due]) -> list[Figure]:
    """Decide about all rows, round after round: what one takes the first time, and then."""
    first, *others = [_once(rows) for _ in range(ROUNDS + 1)]
    return [Figure(f"{kind}: first", "us/row", [first]), Figure(kind, "us/row", others)]


def _once(rows: Sequence[Due]) -> float:
    begun = time.process_time()
    for row in rows:
        decide(row, RULES)
    return (time.process_time() - begun) / len(rows) * 1e6


def _croniter() -> float:
    theirs = croniter("*/5 * * * *", DUE)
    begun = time.process_time()
    for _ in range(QUESTIONS):
        theirs.set_current(DUE, force=True)
        theirs.get_next(datetime)
    return (time.process_time() - begun) / QUESTIONS * 1e6
