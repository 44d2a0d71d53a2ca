"""Lists go to Postgres as one text: whatever is in them arrives as it was."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from celery_pgbeat.postgres.arrays import array_text
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.engine import normalise_url

ODD = [
    "",
    "NULL",
    "null",
    "a,b",
    "{",
    "}",
    '"',
    "\\",
    '\\"',
    "'",
    "''",
    " a ",
    "\t\n\r",
    "%s",
    "%(x)s",
    "ünïque 🥬",
    "\x7f",
]
ODD += ["$1", "E'x'", "a\\nb", "}{,\"\\'", ";--"]
BERLIN = timezone(timedelta(hours=2))


@pytest.fixture(params=["psycopg2", "psycopg"])
def database(request: pytest.FixtureRequest, migrated_database: str) -> Iterator[Database]:
    url = normalise_url(migrated_database).set(drivername=f"postgresql+{request.param}")
    made = Database(url.render_as_string(hide_password=False))
    yield made
    made.close()


def there_and_back(database: Database, values: list[Any], kind: str) -> list[Any]:
    rows = database.execute(
        f"select element from unnest(%(values)s::{kind}[]) with ordinality as given (element, place) order by place",
        {"values": array_text(values)},
    )
    return [row[0] for row in rows]


def test_odd_texts_arrive_as_they_were(database: Database) -> None:
    assert [*ODD, None] == there_and_back(database, [*ODD, None], "text")


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_any_texts_arrive_as_they_were(database: Database, values: list[str | None]) -> None:
    assert values == there_and_back(database, values, "text")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int", [1, -1, None]),
        ("float8", [0.1, 1e300, 5e-324, float("inf"), None]),
        ("uuid", [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), None]),
        (
            "timestamptz",
            [
                datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN),
                datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
                datetime(1, 1, 2, tzinfo=timezone.utc),
                None,
                datetime(1, 1, 2, tzinfo=timezone.utc),
                datetime(1, 1, 2, tzinfo=timezone.utc),
                # Two aware datetimes of one zone compare by the wall clock: these are an hour apart.
                datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
                datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
            ],
        ),
    ],
)
def test_values_arrive_as_they_were(database: Database, kind: str, values: list[Any]) -> None:
    found = there_and_back(database, values, kind)

    # A driver may read a uuid as text.
    read = [uuid.UUID(value) if kind == "uuid" and isinstance(value, str) else value for value in found]
    assert [_in_utc(value) for value in values] == [_in_utc(value) for value in read]


def test_an_empty_list_is_an_empty_array(database: Database) -> None:
    assert [] == there_and_back(database, [], "text")


def _in_utc(value: Any) -> Any:
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value


class Names(str, Enum):
    """What people name the entries of their schedule with."""

    PLAIN = "plain"
    ODD = 'a "b", {c}'


def test_a_member_of_an_enum_arrives_as_its_value(database: Database) -> None:
    assert ["plain", 'a "b", {c}'] == there_and_back(database, list(Names), "text")
