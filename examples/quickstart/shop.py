"""A shop with two periodic tasks. `python shop.py` adds a third."""

from celery import Celery

from celery_pgbeat import PgBeat, cron, every

app = Celery("shop")  # the broker is CELERY_BROKER_URL
app.conf.timezone = "Europe/Berlin"
beat = PgBeat(app)  # the database is PGBEAT_URL


@beat.periodic_task(every("2s"), name="poll-inbox", kwargs={"box": "orders"})
@app.task(name="shop.poll_inbox")
def poll_inbox(box: str) -> str:
    """Run every two seconds. If a run takes longer, the next one does not start beside it."""
    return f"nothing new in {box}"


@beat.periodic_task(cron("0 3 * * *"), name="nightly-report", max_run_time="30m")
@app.task(name="shop.nightly_report")
def nightly_report() -> str:
    """Run at three in the night, Berlin time."""
    return "all is well"


@app.task(name="shop.greet")
def greet(customer: str) -> str:
    """Run for a customer. A row decides when; see below."""
    return f"Hello, {customer}!"


if __name__ == "__main__":
    row = beat.schedule("greet-ada", task=greet, schedule=every("5s"), args=["Ada"])
    print(f"{row.name}: {row.schedule}")
