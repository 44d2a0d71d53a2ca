"""A shop with two periodic tasks and a command line that makes a third."""

from celery import Celery

from celery_pgbeat import PgBeat, cron, every

app = Celery("shop")  # the broker is CELERY_BROKER_URL
app.conf.timezone = "Europe/Berlin"
beat = PgBeat(app)  # the database is PGBEAT_URL


@beat.periodic_task(every("2s"), name="poll-inbox", kwargs={"box": "orders"})
@app.task(name="shop.poll_inbox")
def poll_inbox(box: str) -> str:
    """Run every two seconds; a run that takes longer is never overtaken by the next."""
    return f"nothing new in {box}"


@beat.periodic_task(cron("0 3 * * *"), name="nightly-report", max_run_time="30m")
@app.task(name="shop.nightly_report")
def nightly_report() -> str:
    """Run at three in the night, Berlin time."""
    return "all is well"


@app.task(name="shop.greet")
def greet(customer: str) -> str:
    """Run when somebody has asked for it."""
    return f"Hello, {customer}!"


if __name__ == "__main__":
    row = beat.schedule("greet-ada", task=greet, schedule=every("5s"), args=["Ada"])
    print(f"{row.name}: {row.schedule}")
