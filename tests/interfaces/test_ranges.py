"""Constraints refuse instants, durations, numbers and texts with which no statement could work."""

from __future__ import annotations

from contextlib import closing

import psycopg2

from celery_pgbeat.postgres.database import Database
from tests.harness.jobs import bury, make_job
from tests.harness.session import Session

INSTANTS = ("infinity", "-infinity", "0044-01-01 00:00+00 BC", "10000-01-01 00:00+00")
DURATIONS = ("170000000 years", "-1 second", "367 days", "12000000 months -360000000 days")
COUNTS = ("2147483647", "-1")
BIG_COUNTS = ("9223372036854775807",)

BEYOND: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = {
    "periodic_task": {
        ("next_run_at", "planned_for", "last_run_at", "marked_at", "created_at", "updated_at"): INSTANTS,
        ("schedule_set_at", "planned_from", "failures_from", "judged_from", "decided_anew_at"): INSTANTS,
        ("jitter", "min_gap", "max_run_time", "pickup_deadline", "mark_lease"): DURATIONS,
        ("run_count",): COUNTS,
        ("revision", "planned_revision"): BIG_COUNTS,
    },
    "active_job": {
        ("scheduled_for", "due_at", "created_at", "sent_at", "started_at", "attempt_at", "marked_at"): INSTANTS,
        ("busy_until",): ("-infinity", "0044-01-01 00:00+00 BC"),
        ("min_gap", "max_run_time", "pickup_deadline", "mark_lease"): DURATIONS,
        ("run", "attempt", "sends", "resends", "refusals"): COUNTS,
        ("slot",): ("2147483647",),
        ("task", "queue"): ("x" * 4_001,),
        ("periodic_task", "group_name"): ("é" * 401,),
        ("error",): ("x" * 8_001,),
        ("message",): (f'["{"x" * 720_000}"]',),
    },
    "finished_job": {
        ("scheduled_for", "last_scheduled_for", "created_at", "sent_at", "started_at", "finished_at"): INSTANTS,
        ("origin",): ("elsewhere",),
        ("periodic_task",): ("é" * 401,),
        ("task", "queue"): ("x" * 4_001,),
        ("error",): ("x" * 8_001,),
    },
    "periodic_task_state": {
        ("last_started_at", "failures_from", "last_failed_at", "row_created_at"): INSTANTS,
        ("name",): ("é" * 401,),
    },
    "backfill": {
        ("since", "until", "reached", "next_at", "created_at", "marked_at"): INSTANTS,
        ("mark_lease",): DURATIONS,
        ("submitted", "skipped"): ("2000000000000000001", "-1"),
        ("total",): (*BIG_COUNTS, "-1"),
        ("periodic_task",): ("é" * 401,),
    },
    "node": {
        ("started_at", "last_seen_at"): INSTANTS,
        ("id", "hostname", "version"): ("x" * 1_001,),
    },
    "declaration": {
        ("first_seen_at", "last_seen_at", "listening_since"): INSTANTS,
        ("dead_after",): DURATIONS,
    },
    "declaration_in_force": {("revision",): BIG_COUNTS},
    "alert": {("due_at", "raised_at"): INSTANTS},
}
CASES = [
    (table, column, value)
    for table, groups in BEYOND.items()
    for columns, values in groups.items()
    for column in columns
    for value in values
]


def test_what_no_statement_could_work_with_is_refused_whoever_writes_it(migrated_database: str) -> None:
    session = Session(migrated_database)
    session.rows("insert into pgbeat.periodic_task (name, task, schedule) values ('row', 'app.probe', 'every 1h')")
    with closing(Database(migrated_database)) as database:
        bury(database, make_job(database))
        make_job(database)
    session.rows("insert into pgbeat.periodic_task_state (name) values ('row')")
    session.rows("insert into pgbeat.backfill (periodic_task, since, until) values ('row', now(), now())")
    session.rows("insert into pgbeat.node (id, role, hostname, pid, version) values ('n', 'beat', 'h', 1, '1')")
    session.rows("insert into pgbeat.declaration values ('shop', 'hash', now(), now(), now(), '1 min')")
    session.rows("insert into pgbeat.declaration_in_force values ('shop', 'hash', 1)")
    session.rows("insert into pgbeat.alert values ('overdue', 'row', now(), 'a beat is late', now(), 'a beat')")

    session.rows("set session_replication_role = replica")  # as a dump is restored: past every trigger
    taken = []
    for table, column, value in CASES:
        try:
            session.rows(f"update pgbeat.{table} set {column} = %s", value)
            taken.append((table, column, value[:40]))
        except (psycopg2.errors.CheckViolation, psycopg2.errors.DatetimeFieldOverflow):
            pass
    assert [] == taken


def test_a_dump_brings_the_ranges_with_its_tables(migrated_database: str) -> None:
    """What is not valid comes after the rows: they would not be looked at as they are restored."""
    with closing(Database(migrated_database)) as database:
        unlooked = database.execute(
            "select conrelid::regclass::text, conname from pg_constraint "
            "where connamespace = 'pgbeat'::regnamespace and contype = 'c' and not convalidated"
        )
    assert [] == [row for row in unlooked if not row.conrelid.startswith("pgbeat.finished_job")]
