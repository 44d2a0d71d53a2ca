"""Gives the tests' database the schema `pgbeat`, which Django's own migrations do not make."""

from contextlib import closing

from django.db import connection
from django.test.runner import DiscoverRunner

from celery_pgbeat import PgBeat
from shop.settings import DATABASE_URL


class Runner(DiscoverRunner):
    """Django's runner, with one more migration."""

    def setup_databases(self, **arguments):
        """Make the tests' databases."""
        databases = super().setup_databases(**arguments)
        url = DATABASE_URL.set(database=connection.settings_dict["NAME"])
        with closing(PgBeat(url=url.render_as_string(hide_password=False))) as beat:
            beat.migrate()
        return databases
