"""What anybody writes into a row, by Python, SQL or a file, is refused in words or is a row that can be planned."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg2
import pytest
from hypothesis import strategies as st

from celery_pgbeat import PgBeat
from celery_pgbeat.api.importing import Importer
from celery_pgbeat.declare import KNOWN_OPTIONS
from celery_pgbeat.declare.columns import READERS
from celery_pgbeat.embedded.databases import create_database, drop_database
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.planning import Rules, plan
from celery_pgbeat.postgres.operators import Operators
from celery_pgbeat.settings import Settings
from tests.fuzz.fuzzing import MARKS, fuzzed, quickly
from tests.fuzz.values import anything, as_json, simple, spans, texts
from tests.store.session import Session
from tests.store.ticks import beat as store_of
from tests.unit.schedules.schedule_texts import ZONES, any_text
from tests.unit.schedules.wrong_texts import lists_of_windows, wrong_texts

pytestmark = MARKS

REFUSALS = (InvalidPeriodicTask, InvalidSchedule)
RULES = Rules(timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))
# What Postgres itself says of a value that is of no type of the column: it never comes to our triggers.
OF_NO_TYPE = {"22P02", "22007", "22008", "22003", "42804", "22P05", "22015", "22009", "54000"}
OURS = "22023"

instants = st.one_of(
    st.datetimes(timezones=st.just(timezone.utc)).map(datetime.isoformat),
    st.sampled_from(
        ("2026-12-09", "infinity", "-infinity", "now", "2026-13-01", "0001-01-01T00:00:00Z", "99999-01-01")
    ),
)
words = {
    "overlap": ("skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other", "allow", "Skip"),
    "catchup": ("latest", "none", "earliest", "all", "some"),
    "dst": ("default", "skip", "once", "all", "never"),
    "blackout_action": ("defer", "skip", "wait"),
    "on_lost": ("mark", "rerun", "forget"),
    "tracking": ("full", "result", "send", "none"),
    "timezone": (*ZONES, "Mars/Olympus", "+02:00", "../../etc/passwd", ""),
}
likely: dict[str, st.SearchStrategy[Any]] = {
    "args": st.lists(anything, max_size=3),
    "kwargs": st.dictionaries(texts, anything, max_size=3),
    "options": st.dictionaries(st.one_of(st.sampled_from(sorted(KNOWN_OPTIONS)), texts), anything, max_size=3),
    "blackout": lists_of_windows(),
    **dict.fromkeys(("jitter", "catchup_window", "min_gap", "max_run_time"), spans),
    **dict.fromkeys(("anchor", "start_at", "end_at"), instants),
    **{column: st.sampled_from(choices) for column, choices in words.items()},
}
columns = st.fixed_dictionaries(
    {"name": st.one_of(st.just("a"), st.just("b"), texts), "task": st.one_of(st.just("app.probe"), texts)},
    optional={
        "schedule": st.one_of(any_text, wrong_texts),
        **{column: st.one_of(likely.get(column, simple), likely.get(column, simple), anything) for column in READERS},
    },
)


def check_words(refusal: str) -> None:
    assert 0 < len(refusal) < 5_000


INSERT = """
do $$
declare given record; columns text;
begin
    select string_agg(quote_ident(key), ', ') into columns from jsonb_object_keys(%s::jsonb) as key;
    execute 'insert into pgbeat.periodic_task (' || columns || ') select ' || columns
        || ' from jsonb_populate_record(null::pgbeat.periodic_task, $1)' using %s::jsonb;
end $$
"""


@pytest.fixture(scope="module")
def place(postgres_server: str, migrated_template: str, unique_name: Any) -> Iterator[tuple[PgBeat, Session, Any]]:
    """One database for all examples."""
    name = unique_name()
    url = create_database(postgres_server, name, template=migrated_template)
    door, session, store = PgBeat(url=url), Session(url), store_of(url)
    yield door, session, store
    session.connection.close()
    store.database.close()
    door.close()
    drop_database(postgres_server, name)


def in_sql(session: Session, row: str) -> tuple[str, str] | None:
    """Insert a row; return SQLSTATE and message of its refusal, None where it stands."""
    try:
        session.rows(INSERT, row, row)
    except psycopg2.Error as error:
        return str(error.pgcode), str(error)
    return None


@fuzzed(row=columns)
def test_python_takes_only_what_sql_takes_and_either_refuses_in_words(place: Any, row: dict[str, Any]) -> None:
    door, _, _ = place
    given = dict(row)
    name, task, schedule = given.pop("name"), given.pop("task"), given.pop("schedule", None)
    try:
        quickly(lambda: door._define(name, task, schedule, given, "api"))
    except REFUSALS as refusal:
        check_words(str(refusal))
        return
    door.schedule(name, task, schedule, **given)
    door.unschedule(name)


@fuzzed(row=columns)
def test_sql_refuses_in_words_and_what_it_takes_a_beat_can_plan(place: Any, row: dict[str, Any]) -> None:
    _, session, store = place
    text = as_json(row)
    if text is None:
        return
    refusal = in_sql(session, text)
    if refusal is not None:
        code, message = refusal
        assert code == OURS or code in OF_NO_TYPE, (code, message)
        check_words(message)
        return
    planned = [quickly(lambda one=one: plan(one, RULES)) for one in store.unplanned(10)]
    store.plan(planned, "UTC")
    (stored,) = session.rows("delete from pgbeat.periodic_task returning next_run_at, problem")
    assert stored["problem"] is None or 0 < len(stored["problem"]) <= 500


@fuzzed(
    lines=st.lists(
        st.one_of(columns.map(as_json).filter(bool), st.text(max_size=30), anything.map(as_json).filter(bool)),
        max_size=4,
    )
)
def test_a_file_is_taken_or_refused_with_the_numbers_of_its_lines(place: Any, lines: list[str]) -> None:
    door, _, _ = place
    with Importer(Operators(door.database), Settings()) as importer:
        try:
            list(importer.compare(lines))
        except InvalidPeriodicTask as refusal:
            check_words(str(refusal))
