"""The app that every container runs. Its settings are in the environment."""

from celery import Celery

from celery_pgbeat import PgBeat, cron, every

app = Celery("shop")  # the broker is CELERY_BROKER_URL
beat = PgBeat(app)  # the database is PGBEAT_URL


@beat.periodic_task(every("2s"), name="poll-inbox", kwargs={"box": "orders"})
@app.task(name="shop.poll_inbox")
def poll_inbox(box: str) -> str:
    """Run every two seconds, in one worker, however many beats there are."""
    return f"nothing new in {box}"


@beat.periodic_task(cron("0 3 * * *", timezone="Europe/Berlin"), name="nightly-report", max_run_time="30m")
@app.task(name="shop.nightly_report")
def nightly_report() -> str:
    """Run at three in the night, Berlin time."""
    return "all is well"
