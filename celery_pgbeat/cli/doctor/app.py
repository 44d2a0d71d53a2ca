"""Checks that need the app: its tasks, its workers, and its settings of the broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from celery_pgbeat.beat.send import fanout
from celery_pgbeat.beat.send.broker import CAUTION, CONNECT_TIMEOUT
from celery_pgbeat.cli.doctor.finding import ERROR, NOTE, WARNING, Finding, named_and_counted
from celery_pgbeat.cli.output.values import number
from celery_pgbeat.declare import app_timezone
from celery_pgbeat.declare.signature import mismatch
from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.settings import Settings
from celery_pgbeat.settings.our_scheduler import OURS
from celery_pgbeat.texts.redaction import MASK

REPLY_TIMEOUT = 1.0  # seconds in which workers must reply
VISIBILITY_TIMEOUT = 3600.0  # seconds; kombu's default for Redis
MOST_SHOWN = 10  # unknown tasks that are named; the others are counted
TESTED = ("redis", "amqp")  # the transports for which our promises are tested


def tasks(operators: AdminQueries, settings: Settings, app: Any) -> Iterator[Finding]:
    """Look for rows whose task no worker knows, or that may not be sent."""
    app.loader.import_default_modules()
    app.finalize()
    used = operators.tasks_in_use()
    for row in used:
        if not settings.allows(row["task"]):
            yield Finding(
                ERROR,
                f"The task {row['task']!r}, which {_users(row)}, is not in pgbeat_allowed_tasks: it is never sent.",
                "Add a pattern that matches it, or pause the rows.",
            )
    unknown = [row for row in used if row["task"] not in app.tasks]
    known = _registered_by_workers(app) if unknown else set()
    who = "Neither this app nor any worker that replied knows" if known else "This app does not know"
    unknown = [row for row in unknown if row["task"] not in known]
    yield from named_and_counted(
        [(row,) for row in unknown],
        MOST_SHOWN,
        lambda row: Finding(
            ERROR,
            f"{who} the task {row['task']!r}, which {_users(row)}.",
            "Correct the name, or make the app import the module: see `include` and autodiscover_tasks().",
        ),
        lambda more: Finding(
            ERROR,
            f"{who} {number(more, 'more task')} that rows name.",
            "Fix those above first: the cause may be one module that is not imported.",
        ),
    )


def calls(operators: AdminQueries, app: Any) -> Iterator[Finding]:
    """Look for rows whose arguments do not match the signature of their task, as this app knows it."""
    app.loader.import_default_modules()
    app.finalize()
    wrong = [
        (row, MASK if row["sensitive"] else reason)
        for row in operators.calls_in_use()
        if (task := app.tasks.get(row["task"])) is not None
        and (reason := mismatch(task, row["positions"], row["keywords"])) is not None
    ]
    yield from named_and_counted(
        wrong,
        MOST_SHOWN,
        lambda row, shown: Finding(
            WARNING,
            f"The call does not match the task {row['task']!r}, which {_users(row)}: {shown}.",
            "Correct args and kwargs, or deploy the beats and workers that know this signature.",
        ),
        lambda more: Finding(
            WARNING,
            f"{number(more, 'more kind')} of calls do not match their tasks.",
            "Fix those above first: the cause may be one signature that has changed.",
        ),
    )


def fanouts(operators: AdminQueries, app: Any) -> Iterator[Finding]:
    """Look for tracked rows whose messages a fanout exchange copies, as of a Broadcast: one copy of each runs."""
    app.loader.import_default_modules()
    app.finalize()
    exchanges = fanout.fanouts(app)
    if not exchanges:
        return
    found = [
        (row,)
        for row in operators.routes_in_use()
        if fanout.goes_to(
            exchanges, app, row["task"], row["queue"], {name: row[name] for name in ("exchange", "routing_key")}
        )
    ]
    yield from named_and_counted(
        found,
        MOST_SHOWN,
        lambda row: Finding(
            WARNING,
            f"The messages of the task {row['task']!r}, which {_users(row)}, go to a fanout exchange, which copies "
            "them for each of its queues. One copy of each runs, because the rows are tracked.",
            "If all copies are to run, set tracking = 'send'; else use an ordinary queue.",
        ),
        lambda more: Finding(
            WARNING,
            f"{number(more, 'more kind')} of tracked messages go to a fanout exchange.",
            "Fix those above first: the cause may be one queue.",
        ),
    )


def workers(operators: AdminQueries, app: Any) -> Iterator[Finding]:
    """Compare the workers that reply to Celery's ping with those that have our tracker."""
    try:
        with _connected(app) as connection:
            answering = len(app.control.ping(timeout=REPLY_TIMEOUT, connection=connection))
    except Exception as error:  # noqa: BLE001  each transport has errors of its own
        yield Finding(
            ERROR,
            f"The broker cannot be reached from here: {type(error).__name__}: {error}.",
            "Check that it runs, and check broker_url: while the broker is away beats wait, and send nothing.",
        )
        return
    tracking = sum(node["role"] == "worker" and node["alive"] and node["tracking"] for node in operators.nodes())
    if answering > tracking:
        yield Finding(
            WARNING,
            f"Of {number(answering, 'worker')} that replied to Celery's ping, {tracking} have our tracker.",
            "Restart the others with PgBeat(app) in the app, or with celery_pgbeat.worker in `imports`: the jobs that "
            "they run are neither guarded nor tracked.",
        )


def broker(operators: AdminQueries, app: Any) -> Iterator[Finding]:
    """Look for settings with which messages are lost or delivered twice."""
    connection = app.connection_for_write()
    kind = connection.transport.driver_type
    options: Mapping[str, Any] = {**(connection.transport_options or {}), **app.conf.broker_transport_options}
    if kind == "amqp":
        yield from _of_amqp(options)
    elif kind == "redis":
        yield from _of_redis(options, operators)
    else:
        yield Finding(
            NOTE,
            f"The broker's transport is {kind!r}; our promises are tested with {' and '.join(TESTED)}.",
            "Read in its documentation whether it keeps messages over a restart.",
        )


def scheduler(app: Any) -> Iterator[Finding]:
    """Check that the app's beats are ours, and can start."""
    try:
        app_timezone(app)
    except InvalidSetting as error:
        yield Finding(ERROR, f"No beat of this app can start: {error}", "Correct the setting, and start the beats.")
    configured = app.conf.beat_scheduler
    if configured not in OURS:
        yield Finding(
            WARNING,
            f"beat_scheduler is {configured!r}: a beat of this app sends none of our rows, unless it is started with "
            "-S pgbeat.",
            'Set beat_scheduler = "pgbeat"; or write PgBeat(app) beside the app, and leave beat_scheduler out of its '
            "configuration.",
        )


def _of_amqp(options: Mapping[str, Any]) -> Iterator[Finding]:
    confirms = options.get("confirm_publish")
    if confirms is None:
        yield Finding(
            NOTE,
            "RabbitMQ confirms each message of a beat, but not the messages that tasks send and retry: if the broker "
            "dies, they are lost.",
            'Set broker_transport_options = {"confirm_publish": True}.',
        )
    elif not confirms:
        yield Finding(
            ERROR,
            "confirm_publish is off: if RabbitMQ dies, messages that count as sent are lost.",
            'Remove it from broker_transport_options, or set {"confirm_publish": True}.',
        )


def _of_redis(options: Mapping[str, Any], operators: AdminQueries) -> Iterator[Finding]:
    if "socket_timeout" not in options:
        yield Finding(
            NOTE,
            "Beats wait 5 s for Redis, but a task that sends has no socket_timeout: a frozen Redis blocks it forever.",
            'Set broker_transport_options = {"socket_timeout": 5}.',
        )
    elif not options["socket_timeout"]:
        yield Finding(
            ERROR,
            "socket_timeout is off: a frozen Redis blocks a beat forever.",
            'Remove it from broker_transport_options, or set {"socket_timeout": 5}.',
        )
    timeout = float(options.get("visibility_timeout") or VISIBILITY_TIMEOUT)
    for column, longest in operators.longest_waits().items():
        seconds = longest.total_seconds()
        if seconds > timeout:
            yield Finding(
                WARNING,
                f"The visibility_timeout of Redis is {timeout:g} s, and the longest {column} is {seconds:g} s: a "
                "message that is not acknowledged by then is delivered again, and once more each time.",
                f'Set broker_transport_options = {{"visibility_timeout": {int(seconds * 2)}}}; our guard drops the '
                "second copies, other tasks run twice.",
            )


def _registered_by_workers(app: Any) -> set[str]:
    """Return the tasks of the workers that reply; none if the broker is out of reach."""
    try:
        with _connected(app) as connection:
            answers = app.control.inspect(timeout=REPLY_TIMEOUT, connection=connection).registered() or {}
    except Exception:  # noqa: BLE001  another check reports the broker
        return set()
    return {task.partition(" ")[0] for names in answers.values() for task in names}


@contextmanager
def _connected(app: Any) -> Iterator[Any]:
    """Connect to the broker, with a short time-out."""
    with app.connection_for_write(connect_timeout=CONNECT_TIMEOUT) as connection:
        caution = CAUTION.get(connection.transport.driver_type, {})
        connection.transport_options = {**caution, **(connection.transport_options or {})}
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=CONNECT_TIMEOUT)
        yield connection


def _users(row: Mapping[str, Any]) -> str:
    others = row["rows"] - 1
    return f"{row['name']!r} names" if not others else f"{row['name']!r} and {number(others, 'other')} name"
