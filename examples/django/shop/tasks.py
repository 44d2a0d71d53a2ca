"""The tasks: `poll_inbox` has its schedule here, `nightly_report` in the settings, `remind` a row for each order."""

from celery import shared_task

from celery_pgbeat import every
from shop.celery import app, beat
from shop.models import Order


@beat.periodic_task(every("10s"), name="poll-inbox", kwargs={"box": "orders"})
@app.task
def poll_inbox(box: str) -> str:
    """Run every ten seconds; if a run takes longer, the next one does not start beside it."""
    return f"nothing new in {box}"


@shared_task
def nightly_report() -> int:
    """Run at three in the night, Berlin time."""
    return Order.objects.count()


@shared_task
def remind(order: int) -> str:
    """Run once for an order."""
    return f"A reminder for {Order.objects.get(pk=order).email}"
