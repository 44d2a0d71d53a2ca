"""What Alembic would generate beside our tables, with the functions of the documentation and without them."""

from __future__ import annotations

import warnings
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, create_engine
from sqlalchemy.pool import NullPool

from celery_pgbeat import PgBeat
from tests.docs.pages import ROOT, blocks

alembic = pytest.importorskip("alembic", reason="needs alembic: pip install -e '.[test]'")

FUNCTIONS: dict[str, Any] = {}
for block in blocks(ROOT / "docs" / "postgres.md"):
    if "def include_" in block.text:
        exec(block.text, FUNCTIONS)


def generated(database: str, **options: Any) -> list[str]:
    """Return what Alembic would do to bring the database to one new table of a project."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    models = MetaData()
    Table("shop_order", models, Column("id", Integer, primary_key=True))
    with create_engine(database, poolclass=NullPool).connect() as connection, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of SQLAlchemy, about the types of our columns
        context = MigrationContext.configure(connection, opts=options)
        return [str(found[0]) for found in compare_metadata(context, models)]


def test_a_schema_of_its_own_is_not_seen_or_left_out_by_its_name(database: str) -> None:
    with closing(PgBeat(database)) as beat:
        beat.migrate()

    assert ["add_table"] == generated(database)
    assert "remove_table" in generated(database, include_schemas=True)
    named = FUNCTIONS["include_name"]
    assert ["add_table"] == generated(database, include_schemas=True, include_name=named)


def test_tables_in_the_schema_of_the_project_are_left_out_as_tables_without_a_model(database: str) -> None:
    with closing(PgBeat(database, schema="public")) as beat:
        beat.migrate()

    assert "remove_table" in generated(database)
    assert ["add_table"] == generated(database, include_object=FUNCTIONS["include_object"])
