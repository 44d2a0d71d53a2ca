"""Who is there, and what hangs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

from celery_pgbeat import __version__
from celery_pgbeat.cli.doctor.finding import ERROR, NOTE, WARNING, Finding
from celery_pgbeat.cli.output import instant, number, text
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.settings import Settings

PATIENCE = timedelta(minutes=1)  # beyond the time at which a beat should have dealt with it


def nodes(operators: AdminQueries, settings: Settings) -> Iterator[Finding]:
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


def stuck(operators: AdminQueries, settings: Settings) -> Iterator[Finding]:
    """Look for what nobody deals with."""
    found = operators.stuck(settings.on_time + PATIENCE)
    for kind, hang in KINDS.items():
        if kind in found:
            yield hang.found(found[kind])


class Hang(NamedTuple):
    """How one kind of hanging is told: of how many rows or jobs, the first of them, and what to do about it."""

    severity: str
    word: str
    what: str
    mend: str

    def found(self, row: dict[str, Any]) -> Finding:
        """Return the finding; `row` has how many there are, and the first: its name, since when, and more of it."""
        said = {
            "number": number(row["number"], self.word),
            "first": f"the first is {row['name']!r} since {instant(row['since'])}",
            "until": f"the first is {row['name']!r} until {instant(row['since'])}",
            "name": row["name"],
            "detail": text(row["detail"] or ""),
        }
        return Finding(self.severity, self.what.format_map(said), self.mend)


KINDS = {
    "late": Hang(
        ERROR,
        "row",
        "Long due and not sent: {number}, {first}.",
        "Look at the logs of the beats, and whether the broker is there: without it beats wait.",
    ),
    "late_lazy": Hang(
        WARNING,
        "row",
        "Due, with lazy arguments that no beat's code declares: {number}, {first}.",
        "Start a beat with the app that declares them, or remove the rows.",
    ),
    "late_marked": Hang(
        ERROR,
        "row",
        "Marked and not sent: {number}, {first}, by {detail}.",
        "A mark lapses by itself, and any live beat takes it over: look whether a beat lives, and at its log.",
    ),
    "unplanned": Hang(
        ERROR,
        "row",
        "Not planned: {number}, {first}.",
        "Look whether a beat lives, and at its log.",
    ),
    "ahead": Hang(
        ERROR,
        "row",
        "Decided up to a time to come, for the clock of the database was ahead: {number}, {until}.",
        "Resume the rows, paused or not, or set their next_run_at: celery-pgbeat resume NAME",
    ),
    "problem": Hang(
        ERROR,
        "row",
        "Cannot be planned: {number}, {name!r}: {detail}.",
        "Mend the definitions, or pause the rows: celery-pgbeat list --with-problem",
    ),
    "unsent": Hang(
        ERROR,
        "job",
        "Not at the broker yet: {number}, {first}.",
        "Look whether the broker is there, and at the logs of the beats.",
    ),
    "silent": Hang(
        ERROR,
        "job",
        "Silent past busy_until, and not judged: {number}, {first}.",
        "Look whether a beat lives: one that has seen the database for pgbeat_dead_after judges them.",
    ),
    "endless": Hang(
        WARNING,
        "job",
        "Running for more than a day without a max_run_time: {number}, {first}.",
        "Give the row a max_run_time, or end the task: while it runs, the next runs are skipped or wait.",
    ),
    "forgotten": Hang(
        ERROR,
        "job",
        "Buffered, and waiting for nothing: {number}, {first}.",
        "A live beat releases them with each sign of life: look whether one lives, and at its log.",
    ),
}
