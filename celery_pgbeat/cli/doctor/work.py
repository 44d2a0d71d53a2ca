"""The nodes, and the rows and jobs that are stuck."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

from celery_pgbeat import __version__
from celery_pgbeat.cli.doctor.finding import ERROR, NOTE, WARNING, Finding
from celery_pgbeat.cli.exchange.due_together import MANY
from celery_pgbeat.cli.output.no_beat import without_beat
from celery_pgbeat.cli.output.times import instant
from celery_pgbeat.cli.output.values import number, text
from celery_pgbeat.postgres.admin_queries import AdminQueries

PLANNING = timedelta(minutes=10)  # in which living beats plan the rows of a large import


def nodes(operators: AdminQueries) -> Iterator[Finding]:
    """Check that beats and workers are alive, and of one version."""
    found = [node for node in operators.nodes() if node["alive"]]
    workers = [node for node in found if node["role"] == "worker"]
    no_beat = operators.no_beat()
    if no_beat is not None:
        yield Finding(ERROR, without_beat(no_beat), "Start one, or better two: `celery -A app beat`")
    for node in found:
        if node["broker_problem"] is not None:
            yield Finding(
                ERROR,
                f"The beat {text(node['hostname'])}:{node['pid']} says of its broker since "
                f"{instant(node['broker_problem_since'])}: {text(node['broker_problem'])}",
                "Mend the broker. What is due waits until it takes messages, then `catchup` decides about it.",
            )
    yield from _modes({node["mode"]: node["hostname"] for node in found if node["role"] == "beat"})
    if not any(node["tracking"] for node in workers):
        yield Finding(
            WARNING,
            "No worker has our tracker: a job may start twice, and overlapping runs are not detected.",
            "Restart the workers with PgBeat(app) in the app, or with celery_pgbeat.worker in `imports`.",
        )
    others = sorted({node["version"] for node in found} - {__version__})
    if others:
        yield Finding(
            NOTE,
            f"Nodes run version {', '.join(map(text, others))}, this is {__version__}.",
            "Nothing to do during a deployment; else upgrade the older nodes.",
        )


def _modes(hosts: dict[str, str]) -> Iterator[Finding]:
    """Look for beats in shadow, and for those that send beside them; given are the modes, each with a host."""
    if "shadow" not in hosts:
        return
    if len(hosts) == 1:
        yield Finding(
            NOTE,
            "The beats are in shadow (pgbeat_shadow): they record what they would send, and send nothing.",
            "Compare that with what the other scheduler sends: celery-pgbeat compare",
        )
        return
    other = next(host for mode, host in hosts.items() if mode != "shadow")
    rest = "the others send." if "sends" in hosts else "the others wait: nothing is sent."
    yield Finding(
        ERROR,
        f"A beat on the host {text(hosts['shadow'])!r} is in shadow (pgbeat_shadow), and one on the host "
        f"{text(other)!r} is not. Those in shadow decide nothing now, and {rest}",
        "Set pgbeat_shadow alike for all beats, and restart those that had another value.",
    )


def stuck(operators: AdminQueries) -> Iterator[Finding]:
    """Look for all that is overdue, and for rows and jobs that no beat can handle."""
    found = operators.stuck()
    for code, trouble in TROUBLES.items():
        if code == "unplanned" and code in found and _are_being_planned(operators, found[code]):
            yield BEING_PLANNED.found(found[code])
        elif code in found:
            yield trouble.found(found[code])


def _are_being_planned(operators: AdminQueries, unplanned: dict[str, Any]) -> bool:
    """Return whether living beats may still be planning these rows: a large import takes them minutes."""
    beats = [node for node in operators.nodes() if node["role"] == "beat" and node["alive"]]
    return any(node["now"] - unplanned["since"] < PLANNING for node in beats)


class Trouble(NamedTuple):
    """How one code is reported: the number, the first of them, and how to fix it."""

    severity: str
    word: str
    what: str
    mend: str

    def found(self, row: dict[str, Any]) -> Finding:
        """Return the finding; `row` has the number, and of the first one the name, the time and a detail."""
        said = {
            "number": number(row["number"], self.word),
            "first": f"the first is {row['name']!r} since {instant(row['since'])}",
            "until": f"the first is {row['name']!r} until {instant(row['since'])}",
            "name": row["name"],
            "detail": text(row["detail"] or ""),
        }
        return Finding(self.severity, self.what.format_map(said), self.mend)


BEING_PLANNED = Trouble(
    NOTE,
    "row",
    "Still to be planned: {number}, {first}.",
    "Wait: beats plan many new rows in steps. Rows that are due go first.",
)
END_IT = "Give the row a max_run_time, or end the task: while it runs, the next runs are skipped or wait."
# By the codes of the view `overdue` and of `stuck.sql`.
TROUBLES = {
    "undecided": Trouble(
        ERROR,
        "row",
        "Overdue and not sent: {number}, {first}.",
        "Look at the logs of the beats, and check the broker: without it beats wait.",
    ),
    "lazy": Trouble(
        WARNING,
        "row",
        "Due, with lazy arguments that no beat's code declares: {number}, {first}.",
        "Start a beat with the app that declares them, or remove the rows.",
    ),
    "marked": Trouble(
        ERROR,
        "row",
        "Marked and not sent: {number}, {first}.",
        "A mark lapses, and then any live beat takes the row over: check that a beat is alive, and look at its log.",
    ),
    "unplanned": Trouble(
        ERROR,
        "row",
        "Not planned: {number}, {first}.",
        "Check that a beat is alive, and look at its log.",
    ),
    "unresumed": Trouble(
        ERROR,
        "row",
        "Paused until a time that is over: {number}, {first}.",
        "Check that a beat is alive, and look at its log; or resume the rows: celery-pgbeat resume NAME",
    ),
    "ahead": Trouble(
        ERROR,
        "row",
        "Decided up to an instant in the future, because the clock of the database was ahead: {number}, {until}.",
        "Resume the rows, paused or not, or set their next_run_at: celery-pgbeat resume NAME",
    ),
    "problem": Trouble(
        ERROR,
        "row",
        "Cannot be planned: {number}, {name!r}: {detail}.",
        "Fix the definitions, or pause the rows: celery-pgbeat list --with-problem",
    ),
    "unsent": Trouble(
        ERROR,
        "job",
        "Not at the broker yet: {number}, {first}.",
        "Check the broker, and look at the logs of the beats.",
    ),
    "unstarted": Trouble(
        ERROR,
        "job",
        "Waiting for a worker: {number}, {first}.",
        "Check that workers are alive and read the queues of these jobs: `celery-pgbeat jobs --state sent`.",
    ),
    "silent": Trouble(
        ERROR,
        "job",
        "Silent past busy_until, and not judged: {number}, {first}.",
        "Check that a beat is alive: one that has reached the database for pgbeat_dead_after judges them.",
    ),
    "lost_message": Trouble(
        ERROR,
        "job",
        "Waiting for a worker, but the broker has lost its message: {number}, {first}.",
        "Send each again, or end it: `celery-pgbeat job resend ID` or `celery-pgbeat job cancel ID`; "
        "`celery-pgbeat jobs --state sent`.",
    ),
    "decision": Trouble(
        WARNING,
        "job",
        "Failed, and waiting for a decision (on_error = 'ask'): {number}, {first}.",
        "Decide: `celery-pgbeat job retry ID` or `celery-pgbeat job fail ID`; `celery-pgbeat jobs --state error`.",
    ),
    "work": Trouble(
        WARNING,
        "job",
        "A task for people that is overdue: {number}, {first}.",
        "Ask who has it (`celery-pgbeat explain NAME`), or cancel it: `celery-pgbeat job cancel ID`.",
    ),
    "blocking": Trouble(
        WARNING,
        "job",
        "Running without a max_run_time, and blocking the next runs: {number}, {first}.",
        END_IT,
    ),
    "endless": Trouble(
        WARNING,
        "job",
        "Running for more than a day without a max_run_time: {number}, {first}.",
        END_IT,
    ),
    "forgotten": Trouble(
        ERROR,
        "job",
        "Waits, though nothing keeps it waiting: {number}, {first}.",
        "A beat promotes such jobs with each heartbeat: check that one is alive, and look at its log.",
    ),
}


def due_together(operators: AdminQueries) -> Iterator[Finding]:
    """Look for many rows that are due at one instant, and so burden the broker and the workers all at once."""
    found = operators.due_together(MANY)
    if found is None:
        return
    of_one_start = found["intervals"] > found["number"] / 2
    rows, at = number(found["number"], "row"), instant(found["next_run_at"])
    yield Finding(
        NOTE,
        f"{rows} are due at once, at {at}. One of them is {found['name']!r}.",
        "Rows of one INSERT count their intervals from one instant: give them a jitter, or an anchor each."
        if of_one_start
        else "Give them a jitter, or write H in the cron text: a time that is fixed by the row's name.",
    )
