"""The worker's part: lets each job start once, reports to Postgres what became of it, and stops it on request.

    start/    may this job start: the message, the guard
    report/   what became of it: signal handlers, pipe, thread, queue; the heartbeat
    stop/     shall it stop: stop requests, the signal to the process, `current()`

To use it, import this package: by `imports = ("celery_pgbeat.worker",)` in the Celery configuration, or by
`PgBeat(app)`. In any other process the import changes nothing: the rest is loaded when the signal of a starting worker
arrives.

Invariant: receiving messages never waits for Postgres, and no process uses a connection of another one.
"""

from __future__ import annotations

from typing import Any

from celery import current_app, signals


def install(app: Any, *, main: bool = True) -> None:
    """Guard and track an app's tasks in this process; the handlers of Celery's signals call it.

    `main`: this is the worker's main process, the one that receives messages. Calling it again guards the tasks that
    were registered since.

    Raises:
        InvalidSetting: a `pgbeat_*` setting is wrong.
        MissingDriver: the driver for `pgbeat_url` is not installed.
        MissingExtra: a setting asks for an extra that is not installed.
    """
    from celery_pgbeat.texts.redaction import hide_secret_settings
    from celery_pgbeat.worker.installation import install_in_process

    hide_secret_settings()
    install_in_process(app, main=main)


@signals.worker_init.connect(dispatch_uid="celery_pgbeat.worker_init")
def _on_worker_init(sender: Any, **_: Any) -> None:
    from celery_pgbeat.errors import PgBeatError

    try:
        install(sender.app)
    except PgBeatError as error:
        # Celery swallows the exceptions of signal handlers; this worker would run jobs unguarded.
        raise SystemExit(f"celery-pgbeat: {error}") from error


@signals.worker_process_init.connect(dispatch_uid="celery_pgbeat.worker_process_init")
def _on_worker_process_init(**_: Any) -> None:
    """Guard the tasks that were registered late; in a spawned process, which inherits nothing, all tasks."""
    install(current_app._get_current_object(), main=False)
