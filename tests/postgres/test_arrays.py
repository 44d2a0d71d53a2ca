"""Lists go to Postgres as one text: whatever is in them arrives as it was."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from celery_pgbeat.planning import Decision, Skipped
from celery_pgbeat.postgres.arrays import array_text, records_text
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


def test_records_arrive_as_they_were(database: Database) -> None:
    """As the type `decision`, which has a field of each kind that a record may have."""
    instants = (datetime(2026, 10, 25, 2, 30, 0, 1, tzinfo=timezone.utc), datetime(1, 1, 2, tzinfo=timezone.utc))
    job, duration = uuid.UUID(int=2**128 - 1), timedelta(seconds=0.1)
    nothing = [None] * 4
    records = [
        [text, *instants, *nothing, job, None, None, text, None, None, None, duration, instants, ()] for text in ODD
    ]
    empty = ["", None, None, *nothing, None, None, None, None, None, None, None, timedelta(), (), ()]

    rows = database.execute(
        "select name, marked_at, old_next_run_at, job::text, scheduled_for, origin, pickup_deadline, planned_ahead, "
        "due_ahead "
        "from unnest(%(records)s::pgbeat.decision[]) with ordinality as given order by ordinality",
        {"records": records_text([*records, empty])},
    )

    found = [[_in_utc(value) for value in row] for row in rows]
    told, ahead = [str(job), None], [list(map(_in_utc, instants)), None]
    expected = [[text, *map(_in_utc, instants), *told, text, 0.1, *ahead] for text in ODD]
    assert expected == [[*row[:7], [_in_utc(one) for one in row[7]], *row[8:]] for row in found[:-1]]
    assert ["", None, None, None, None, None, 0.0, None, None] == found[-1]


def test_values_that_are_equal_and_of_other_types_are_written_each_in_its_way() -> None:
    assert '{"(1,True,1.0)","(True,1.0,1)"}' == records_text([(1, True, 1.0), (True, 1.0, 1)])


def test_a_decision_has_the_fields_of_its_type(database: Database) -> None:
    row, skipped, *others = Decision._fields

    rows = database.execute(
        "select attname from pg_attribute where attrelid = 'pgbeat.decision'::regclass and attnum > 0 order by attnum"
    )

    assert ("row", "skipped") == (row, skipped)
    assert [
        *("name", "marked_at", "old_next_run_at"),
        *(f"skipped_{one.name}" for one in fields(Skipped)),
        *others,
    ] == [name for (name,) in rows]


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
