"""Small, slow and far: the same beat and worker with small buffers, slow commits, and a long way to Postgres.

Each is beside the same measure without, on another Postgres of the same run. Slow commits are Postgres' `commit_delay`:
it sleeps before each write to the disk, as a slow disk does, and commits that arrive meanwhile share the write. The
link is a proxy that holds each byte back; connecting is not delayed, signing in is.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from benchmarks.fire import fire
from benchmarks.ground import Ground
from benchmarks.lateness import measured
from benchmarks.results import Figure, percentile
from benchmarks.worker import tracked_rate

CONDITIONS: Mapping[str, Mapping[str, Any]] = {
    "1 GB of buffers": {},
    "the vendor's defaults (128 MB)": {"options": {}},
    "commits of 10 ms": {"commit_delay": 0.010},
    "80 ms there and back": {"link_delay": 0.040},
}
PER_SECOND = 100
MEASURES = (
    ("fire rate", "messages/s"),
    (f"lateness p50, {PER_SECOND} a second", "ms"),
    (f"lateness p99, {PER_SECOND} a second", "ms"),
    ("tasks with tracking, 4 processes", "tasks/s"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--rows", type=int, default=100_000, help="all due at one instant, for the fire rate")
    parser.add_argument("--tasks", type=int, default=2_000, help="for the worker")
    parser.add_argument("--repeats", type=int, default=3)


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure each condition in turn, as often as asked."""
    grounds = {name: ground.like(**changes) for name, changes in CONDITIONS.items()}
    figures = {name: [Figure(f"{what}, {name}", unit, []) for what, unit in MEASURES] for name in CONDITIONS}
    for _ in range(options.repeats):
        for name, at in grounds.items():
            for figure, value in zip(figures[name], _values(at, options), strict=True):
                figure.values.append(value)
    plain, *others = figures.values()
    for condition in others:
        for figure, without in zip(condition, plain, strict=True):
            figure.beside("that without", without)
    return [figure for group in figures.values() for figure in group]


def _values(ground: Ground, options: argparse.Namespace) -> tuple[float, ...]:
    (fired,) = fire(ground, options.rows)
    late = [value * 1000 for values in measured(ground, PER_SECOND, 2) for value in values]
    rate, _ = tracked_rate(ground, options.tasks, 4)
    return fired.rate, percentile(late, 0.5), percentile(late, 0.99), rate
