"""The worker's part: lets each job start once, and tells Postgres what became of it.

Importing this package is all there is to do, by `imports = ("celery_pgbeat.worker",)` in the Celery
configuration or by `PgBeat(app)`. It is harmless in any other process: it waits for the signal of a starting
worker, and only there anything else is loaded.

Invariant: the main process never waits for Postgres, and no process uses what another one connected.
"""

from __future__ import annotations

import logging
from typing import Any

from celery import current_app, signals

logger = logging.getLogger(__name__)


def install(app: Any, *, main: bool = True) -> None:
    """Guard and track an app's tasks in this process; where the worker's signals arrive they call it.

    `main` says that this is the worker's main process, the one that receives messages. Calling it again
    guards the tasks that were registered since.

    Raises:
        InvalidSetting: a `pgbeat_*` setting is wrong.
        MissingDriver: the driver for `pgbeat_url` is not installed.
        MissingExtra: a setting asks for an extra that is not installed.
    """
    from celery_pgbeat.redaction import hide_secret_settings
    from celery_pgbeat.worker.installation import install_agent

    hide_secret_settings()
    install_agent(app, main=main)


@signals.worker_init.connect(dispatch_uid="celery_pgbeat.worker_init")
def _on_worker_init(sender: Any, **_: Any) -> None:
    from celery_pgbeat.errors import PgBeatError

    try:
        install(sender.app)
    except PgBeatError as error:
        # A signal swallows every exception, and this worker would run jobs unguarded without a word.
        raise SystemExit(f"celery-pgbeat: {error}") from error


@signals.worker_process_init.connect(dispatch_uid="celery_pgbeat.worker_process_init")
def _on_worker_process_init(**_: Any) -> None:
    """Guard what was registered late; in a spawned process, which inherits nothing, all."""
    install(current_app._get_current_object(), main=False)
