"""What a view calls when a customer orders."""

from django.db import connection, transaction

from shop.celery import beat
from shop.models import Order


def place_order(email: str) -> Order:
    """Store an order and its reminder: both are committed, or neither is."""
    with transaction.atomic():
        order = Order.objects.create(email=email)
        beat.schedule(
            f"remind-{order.pk}",
            task="shop.tasks.remind",
            schedule="2099-12-24 08:00",  # once, in the zone of the app
            args=[order.pk],
            connection=connection,
        )
        return order
