"""Any row, by Python, SQL or a file, is refused with an explanation or can be planned."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import psycopg2
import pytest

from celery_pgbeat import PgBeat
from celery_pgbeat.api.importing import Importer
from celery_pgbeat.beat.decide.planner import LONGEST_PROBLEM, Planner
from celery_pgbeat.declare import KNOWN_OPTIONS
from celery_pgbeat.declare.columns import READERS
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings
from tests.fuzz.fuzzing import MARKS, attack, quickly
from tests.fuzz.mutations import mutated
from tests.harness.schedule_texts import ZONES
from tests.harness.session import Session
from tests.harness.ticks import beat as store_of
from tests.harness.values import DURATIONS, INSTANTS, NUMBERS, TEXTS, as_json, odd

pytestmark = MARKS

RULES = Rules(timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))
# Errors of Postgres itself for a value that does not fit the type of the column: our triggers never see it.
OF_NO_TYPE = {"22P02", "22007", "22008", "22003", "42804", "22P05", "22015", "22009", "54000"}
OURS = "22023"
OF_OTHER_ROWS = ("after names ", "No periodic task may wait for itself")  # only Postgres knows which rows there are

LIKELY: dict[str, tuple[Any, ...]] = {
    "after": (["a"], ["b"], [], ["b", "b"], "b"),
    "after_condition": ("success", "finish", "failure"),
    "kind": ("task", "human", "robot"),
    "overlap": ("skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other", "allow", "Skip"),
    "catchup": ("latest", "none", "earliest", "all", "some"),
    "dst": ("default", "skip", "once", "all", "never"),
    "blackout_action": ("defer", "skip", "wait"),
    "on_lost": ("give_up", "rerun", "forget"),
    "tracking": ("full", "result", "send", "none"),
    "timezone": (*ZONES, "Mars/Olympus", "+02:00", "../../etc/passwd", ""),
    **dict.fromkeys(("jitter", "catchup_window", "min_gap", "max_run_time"), DURATIONS),
    **dict.fromkeys(("anchor", "start_at", "end_at"), INSTANTS),
}
OPTIONS = sorted(KNOWN_OPTIONS)


def row_of(numbers: random.Random) -> dict[str, Any]:
    """Return a row of which most is good."""
    name, task = ("a" if numbers.random() < 0.9 else odd(numbers) for _ in range(2))
    row = {"name": name, "task": task if task != "a" else "app.probe"}
    if numbers.random() < 0.8:
        row["schedule"] = mutated(numbers)
    for column in numbers.sample(sorted(READERS), numbers.choice((0, 1, 1, 2, 3, 6))):
        row[column] = odd(numbers) if numbers.random() < 0.3 else likely(numbers, column)
    return row


def likely(numbers: random.Random, column: str) -> Any:
    """Return a value such as the column may have, or nearly."""
    few = range(numbers.randrange(4))
    if column in LIKELY:
        return numbers.choice(LIKELY[column])
    if column == "blackout":
        return [mutated(numbers) for _ in few]
    if column == "args":
        return [odd(numbers) for _ in few]
    if column in ("kwargs", "options"):
        keys = OPTIONS if column == "options" else TEXTS
        return {
            numbers.choice(keys): numbers.choice((odd(numbers), numbers.choice((*DURATIONS, *INSTANTS)))) for _ in few
        }
    return numbers.choice((numbers.choice(NUMBERS), numbers.choice(TEXTS), numbers.randint(0, 300), True))


def check_words(refusal: str, most: int = 5_000) -> None:
    assert 0 < len(refusal) < most


INSERT = """
do $$
declare given record; columns text;
begin
    select string_agg(quote_ident(key), ', ') into columns from jsonb_object_keys(%s::jsonb) as key;
    execute 'insert into pgbeat.periodic_task (' || columns || ') select ' || columns
        || ' from jsonb_populate_record(null::pgbeat.periodic_task, $1)' using %s::jsonb;
end $$
"""


class Place(NamedTuple):
    """One database for all inputs, in the ways in which it is reached."""

    door: PgBeat
    session: Session
    store: BeatQueries


@pytest.fixture(scope="module")
def place(shared_database: str) -> Iterator[Place]:
    made = Place(PgBeat(url=shared_database), Session(shared_database), store_of(shared_database))
    yield made
    made.session.connection.close()
    made.store.database.close()
    made.door.close()


def test_python_accepts_only_rows_that_sql_accepts_and_both_explain_a_refusal(place: Place) -> None:
    attack(partial(check_python, place))


def check_python(place: Place, numbers: random.Random) -> None:
    row = row_of(numbers)
    name, task, schedule = row.pop("name"), row.pop("task"), row.pop("schedule", None)
    try:
        quickly(lambda: place.door._define(name, task, schedule, row, "api"))
    except (InvalidPeriodicTask, InvalidSchedule) as refusal:
        check_words(str(refusal))
        return
    try:
        place.door.schedule(name, task, schedule, **row)
    except InvalidPeriodicTask as refusal:
        if not str(refusal).startswith(OF_OTHER_ROWS):
            raise
    else:
        place.door.unschedule(name)


def test_sql_explains_a_refusal_and_a_beat_can_plan_each_row_that_it_accepts(place: Place) -> None:
    attack(partial(check_sql, place))


def check_sql(place: Place, numbers: random.Random) -> None:
    text = as_json(row_of(numbers))
    if text is None:
        return
    place.session.rows("delete from pgbeat.periodic_task")
    try:
        place.session.rows(INSERT, text, text)
    except psycopg2.Error as refusal:
        check_refusal(refusal, text)
        return
    quickly(lambda: Planner(place.store, Settings(), RULES, time.monotonic).plan(10))
    problem = place.session.value("select problem from pgbeat.periodic_task")
    assert problem is None or 0 < len(problem) <= LONGEST_PROBLEM


def check_refusal(refusal: psycopg2.Error, text: str) -> None:
    assert refusal.pgcode == OURS or refusal.pgcode in OF_NO_TYPE, (str(refusal), text)
    check_words(str(refusal.diag.message_primary))


def test_a_file_is_accepted_or_refused_with_the_numbers_of_its_lines(place: Place) -> None:
    attack(partial(check_file, place))


def check_file(place: Place, numbers: random.Random) -> None:
    lines = []
    for _ in range(numbers.randrange(5)):
        line = as_json(row_of(numbers) if numbers.random() < 0.8 else odd(numbers)) or ""
        at = numbers.randrange(len(line) + 1)
        lines.append(line if numbers.random() < 0.8 else line[:at] + numbers.choice(TEXTS) + line[at + 1 :])
    with Importer(AdminQueries(place.door.database), Settings()) as importer:
        try:
            list(importer.compare(lines))
        except InvalidPeriodicTask as refusal:
            check_words(str(refusal), len(lines) * 5_000)
