"""Tests of the orders. Each runs in a transaction that Django rolls back, with all rows of `pgbeat` that it wrote."""

from django.db import connection, transaction
from django.test import SimpleTestCase, TestCase

from celery_pgbeat.django.models import PeriodicTaskStatus
from celery_pgbeat.testing import upcoming
from shop.celery import app, beat
from shop.orders import place_order


class Cancelled(Exception):
    pass


class OrderTest(TestCase):
    def test_an_order_has_a_reminder(self):
        order = place_order("ada@example.com")

        assert beat.get(f"remind-{order.pk}", connection=connection).args == [order.pk]
        assert PeriodicTaskStatus.objects.get(name=f"remind-{order.pk}").problem is None

    def test_an_order_that_fails_leaves_no_reminder(self):
        with self.assertRaises(Cancelled), transaction.atomic():
            place_order("ada@example.com")
            raise Cancelled

        assert not PeriodicTaskStatus.objects.exists()


class ScheduleTest(SimpleTestCase):
    def test_beats_refuse_no_declaration(self):
        runs = upcoming(app, "2026-12-07T00:00Z", "2026-12-08T00:00Z")

        assert "nightly-report" in {run.periodic_task for run in runs}
