"""Putting the product's schema into a database."""

from __future__ import annotations

from celery_pgbeat.postgres.engine import create_engine
from celery_pgbeat.postgres.migrate import migrate


def migrate_database(url: str, schema: str = "pgbeat") -> None:
    """Bring the database to this package's schema."""
    engine = create_engine(url)
    try:
        migrate(engine, schema=schema)
    finally:
        engine.dispose()
