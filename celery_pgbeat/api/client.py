"""`PgBeat`: the API, one object per app. `methods/` has its methods."""

from __future__ import annotations

from celery_pgbeat.api.methods.backfills import BackfillMethods
from celery_pgbeat.api.methods.changes import ChangeMethods
from celery_pgbeat.api.methods.groups import GroupMethods
from celery_pgbeat.api.methods.jobs import JobMethods
from celery_pgbeat.api.methods.operations import OperatorMethods
from celery_pgbeat.api.methods.tasks import PeriodicTaskMethods
from celery_pgbeat.api.methods.work import WorkMethods


class PgBeat(
    OperatorMethods, ChangeMethods, BackfillMethods, GroupMethods, JobMethods, WorkMethods, PeriodicTaskMethods
):
    """Periodic tasks in Postgres, from Python.

    Args:
        app: the Celery app. It uses our scheduler then, unless its configuration names another one, and its workers
            guard and track jobs. None for no app: then `periodic_task` cannot be used, and the zone of a row without
            one is known only when a beat has written its app's there. A text in its place is the URL.
        url: `postgresql://user@host/database`; None for `pgbeat_url` of the app's configuration, else PGBEAT_URL.
        schema: the database schema; None for `pgbeat_schema`, else `pgbeat`.

    Raises:
        InvalidSetting: the URL is not a Postgres URL.
        MissingDriver: its driver is not installed.
        TypeError: `app` is neither a Celery app nor a text.

    Example:
        >>> from celery import Celery
        >>> from celery_pgbeat import PgBeat, cron
        >>> app = Celery("shop", broker="redis://localhost")
        >>> beat = PgBeat(app, url="postgresql://localhost/shop")
        >>> @beat.periodic_task(cron("0 3 * * *", timezone="Europe/Berlin"), max_run_time="30m")
        ... @app.task
        ... def nightly_report(): ...
    """
