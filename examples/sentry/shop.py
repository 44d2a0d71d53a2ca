"""Tasks with monitors at Sentry. SENTRY_DSN names the project; without it nothing is reported."""

import sentry_sdk
from celery import Celery
from sentry_sdk.integrations.celery import CeleryIntegration

from celery_pgbeat import PgBeat, cron, every

# In beats and workers, before the beat starts: Sentry wraps Celery's scheduler class.
sentry_sdk.init(integrations=[CeleryIntegration(monitor_beat_tasks=True)])

app = Celery("shop")  # the broker is CELERY_BROKER_URL
app.conf.timezone = "Europe/Berlin"
beat = PgBeat(app)  # the database is PGBEAT_URL


@beat.periodic_task(every("10s"), name="poll-inbox")
@app.task(name="shop.poll_inbox")
def poll_inbox() -> str:
    """Run every ten seconds, without a monitor: Sentry has none of less than a minute."""
    return "nothing new"


@beat.periodic_task(cron("0 3 * * *"), name="nightly-report", max_run_time="30m")
@app.task(name="shop.nightly_report")
def nightly_report() -> str:
    """Run at three in the night, Berlin time, with a monitor of that name."""
    return "all is well"


@beat.periodic_task(cron("0 9 * * mon-fri", timezone="America/New_York"), name="open-the-doors")
@app.task(name="shop.open_the_doors")
def open_the_doors() -> None:
    """Run at nine in New York, and fail: an event, and a check-in of the monitor that says so."""
    raise RuntimeError("the key is lost")
