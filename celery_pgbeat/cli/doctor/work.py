"""Who is there, and what hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from celery_pgbeat import __version__
from celery_pgbeat.cli.doctor.finding import ERROR, NOTE, WARNING, Finding
from celery_pgbeat.cli.output import instant, number, text
from celery_pgbeat.postgres.operators import Operators
from celery_pgbeat.settings import Settings

PATIENCE = timedelta(minutes=1)  # beyond the time at which a beat should have dealt with it
Row = dict[str, Any]


def nodes(operators: Operators, settings: Settings) -> Iterator[Finding]:
    """Look who lives."""
    found = [node for node in operators.nodes(settings.dead_after) if node["alive"]]
    workers = [node for node in found if node["role"] == "worker"]
    if len(found) == len(workers):
        yield Finding(
            ERROR,
            f"No beat was heard of within {settings.dead_after.total_seconds():g} s: nothing is sent.",
            "Start one, or better two: celery -A app beat",
        )
    if not any(node["tracking"] for node in workers):
        yield Finding(
            WARNING,
            "No worker announces our tracker: nothing keeps a job from starting twice, and overlaps are not seen.",
            "Restart the workers with PgBeat(app) in the app, or with celery_pgbeat.worker in `imports`.",
        )
    others = sorted({node["version"] for node in found} - {__version__})
    if others:
        yield Finding(
            NOTE,
            f"Nodes run version {', '.join(map(text, others))}, this is {__version__}.",
            "Nothing to do while a deployment is under way; else upgrade the older ones.",
        )


def stuck(operators: Operators, settings: Settings) -> Iterator[Finding]:
    """Look for what nobody deals with."""
    found = operators.stuck(settings.on_time + PATIENCE)
    for kind, say in KINDS.items():
        if kind in found:
            yield say(found[kind])


def _late(row: Row) -> Finding:
    return Finding(
        ERROR,
        f"Long due and not sent: {_shown(row, 'row')}.",
        "Look at the logs of the beats, and whether the broker is there: without it beats wait.",
    )


def _late_lazy(row: Row) -> Finding:
    return Finding(
        WARNING,
        f"Due, with lazy arguments that no beat's code declares: {_shown(row, 'row')}.",
        "Start a beat with the app that declares them, or remove the rows.",
    )


def _late_marked(row: Row) -> Finding:
    return Finding(
        ERROR,
        f"Marked and not sent: {_shown(row, 'row')}, by {text(row['detail'])}.",
        "A mark lapses by itself, and any live beat takes it over: look whether a beat lives, and at its log.",
    )


def _unplanned(row: Row) -> Finding:
    return Finding(
        ERROR,
        f"Not planned: {_shown(row, 'row')}.",
        "Look whether a beat lives, and at its log.",
    )


def _problem(row: Row) -> Finding:
    return Finding(
        ERROR,
        f"Cannot be planned: {number(row['number'], 'row')}, {row['name']!r}: {row['detail']}.",
        "Mend the definitions, or pause the rows: celery-pgbeat list --with-problem",
    )


def _unsent(row: Row) -> Finding:
    return Finding(
        ERROR,
        f"Not at the broker yet: {_shown(row, 'job')}.",
        "Look whether the broker is there, and at the logs of the beats.",
    )


def _silent(row: Row) -> Finding:
    return Finding(
        ERROR,
        f"Silent past busy_until, and not judged: {_shown(row, 'job')}.",
        "Look whether a beat lives: one that has seen the database for pgbeat_dead_after judges them.",
    )


def _endless(row: Row) -> Finding:
    return Finding(
        WARNING,
        f"Running for more than a day without a max_run_time: {_shown(row, 'job')}.",
        "Give the row a max_run_time, or end the task: while it runs, the next runs are skipped or wait.",
    )


def _forgotten(row: Row) -> Finding:
    return Finding(
        ERROR,
        f"Buffered, and waiting for nothing: {_shown(row, 'job')}.",
        "A live beat releases them with each sign of life: look whether one lives, and at its log.",
    )


def _shown(row: Row, word: str) -> str:
    """Return how many there are, the first of them, and since when."""
    return f"{number(row['number'], word)}, the first is {row['name']!r} since {instant(row['since'])}"


KINDS: dict[str, Callable[[Row], Finding]] = {
    "late": _late,
    "late_lazy": _late_lazy,
    "late_marked": _late_marked,
    "unplanned": _unplanned,
    "problem": _problem,
    "unsent": _unsent,
    "silent": _silent,
    "endless": _endless,
    "forgotten": _forgotten,
}
