"""P11: cost follows what is due. What the statements of an idle beat read, on tables that Postgres has looked at."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.statements import statement
from celery_pgbeat.postgres.worker_queries import Finish, MessageCopy, Start, Unstarted, WorkerQueries
from tests.harness.reads import LOOK, read_by
from tests.harness.session import Session
from tests.harness.ticks import beat, decided
from tests.postgres import test_every_statement

ROWS = 5_000
GAP = timedelta(seconds=30)
# As `mark` and `submit` do, whose plans EXPLAIN does not show.
MAKES_JOBS = (
    "select made.* from unnest(array[gen_random_uuid()]) as job cross join pgbeat.periodic_task as stored "
    "cross join lateral pgbeat.new_job(stored, job, now(), now(), 'schedule', true, null, "
    "interval '1 h', 'UTC', 'full', 'beat', now(), interval '1 s') as made"
)


@pytest.fixture
def store(migrated_database: str) -> BeatQueries:
    store = beat(migrated_database)
    store.database.execute(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) "
        "select 'row-' || n, 'app.probe', 'every 1h', pgbeat.now() + n * interval '1 minute' "
        f"from generate_series(1, {ROWS}) n"
    )
    store.database.execute(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until, check_at, wait_reason) select gen_random_uuid(), "
        "'row-' || mod(n, 5), pgbeat.now(), 'catchup', 'buffered', false, 'app.probe', '{}', 'give_up', 'full', "
        "'1 hour', 'infinity', 'infinity', 'predecessor' "
        f"from generate_series(1, {ROWS}) n"
    )
    store.database.execute(
        "insert into pgbeat.periodic_task_state (name, failures_in_row) "
        f"select 'row-' || n, 2 from generate_series(1, {ROWS}) n"
    )
    for table in ("periodic_task", "active_job", "periodic_task_state"):
        store.database.execute(f"vacuum analyze pgbeat.{table}")
    return store


def said(session: Session, by: BeatQueries | WorkerQueries, saying: Callable[[], object]) -> str:
    """Return what it would say to Postgres."""
    texts: list[str] = []

    def heard(name: str, **parameters: Any) -> list[Any]:
        with session.connection.cursor() as cursor:
            texts.append(cursor.mogrify(statement(name, "pgbeat"), parameters).decode())
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by.database, "run", heard)
        saying()
    (text,) = texts
    return text


def explained(store: BeatQueries, sql: str, **parameters: object) -> str:
    return "\n".join(row[0] for row in store.database.execute(f"explain (analyze, timing off) {sql}", dict(parameters)))


def test_p11_a_look_reads_no_table_as_a_whole_and_few_rows(store: BeatQueries, migrated_database: str) -> None:
    session = Session(migrated_database)

    assert {} == read_by(session)["as a whole"]
    assert read_by(session)["rows"] < 20


def test_p11_a_look_reads_once_what_many_groups_wait_for(store: BeatQueries, migrated_database: str) -> None:
    store.database.execute("insert into pgbeat.task_group (name) values ('busy')")
    store.database.execute(
        "insert into pgbeat.task_group (name, waits_for) select 'group-' || n, array['busy'] "
        "from generate_series(1, 300) n"
    )
    store.database.execute("update pgbeat.periodic_task set group_name = 'busy', next_run_at = pgbeat.now()")
    store.database.execute("delete from pgbeat.group_to_check")
    store.database.execute(
        "insert into pgbeat.group_to_check select 'group-' || n, true from generate_series(1, 300) as n"
    )
    session = Session(migrated_database)
    session.rows("set track_functions = 'all'")

    session.rows("begin")
    session.rows(LOOK)
    calls = session.value("select calls from pg_stat_xact_user_functions where funcname = 'is_busy'")

    assert 1 == calls


def test_p11_a_look_whose_plan_was_kept_since_the_tables_were_empty_reads_none_of_them_as_a_whole(
    migrated_database: str,
) -> None:
    """Until Postgres looks at a table that has grown, a plan of before serves."""
    session = Session(migrated_database)
    session.rows("alter table pgbeat.periodic_task set (autovacuum_enabled = false)")
    for _ in range(10):  # after some the plan is one for all values
        session.rows("select pgbeat.look(15, '{}', '{}', '{}')")
    session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) select 'row-' || n, 'app.probe', "
        "'every 1h', pgbeat.now() + n * interval '1 minute' from generate_series(1, 1000) n"
    )

    assert {} == read_by(session)["as a whole"]
    assert read_by(session)["rows"] < 20


@pytest.mark.parametrize("due", [3, 300])
def test_p11_a_mark_reads_what_is_due(store: BeatQueries, migrated_database: str, due: int) -> None:
    store.database.execute(
        f"update pgbeat.periodic_task set next_run_at = pgbeat.now() where substr(name, 5)::int <= {due}"
    )
    store.database.execute("vacuum analyze pgbeat.periodic_task")
    session = Session(migrated_database)
    for _ in range(10):  # after some the plan is one for all values
        session.rows("select from pgbeat.mark('beat-a', 15, 0, 0, '{}', '{}', '{}')")

    found = read_by(session, "select from pgbeat.mark('beat-a', 15, 1000, 10, '{}', '{}', '{}')")

    assert {} == found["as a whole"]
    assert due <= found["rows"] < 2 * due + 20  # what it finds by place, once it has locked it, is not counted


@pytest.mark.parametrize("due", [3, 300])
def test_p11_a_mark_that_submits_at_once_reads_what_is_due(
    store: BeatQueries, migrated_database: str, due: int
) -> None:
    store.database.execute(
        "set session_replication_role = replica; update pgbeat.periodic_task set next_run_at = pgbeat.now(), "
        "planned_for = pgbeat.now(), planned_ahead = array[pgbeat.now(), pgbeat.now() + interval '1 hour'], "
        f"overlap = 'allow' where substr(name, 5)::int <= {due}; "
        "reset session_replication_role"
    )
    store.database.execute("vacuum analyze pgbeat.periodic_task")
    session = Session(migrated_database)
    for _ in range(10):
        session.rows("select from pgbeat.mark('beat-a', 15, 0, 0, '{}', '{}', '{}', true, 3600)")

    found = read_by(session, "select from pgbeat.mark('beat-a', 15, 1000, 10, '{}', '{}', '{}', true, 3600)")

    assert {} == found["as a whole"]
    assert due <= found["rows"] < 2 * due + 20
    session.rows("select from pgbeat.mark('beat-a', 15, 1000, 10, '{}', '{}', '{}', true, 3600)")
    assert due == session.value("select count(*) from pgbeat.active_job where marked_by = 'beat-a'")


def test_p11_a_confirm_reads_the_jobs_that_it_confirms(store: BeatQueries, migrated_database: str) -> None:
    store.database.execute(
        "update pgbeat.active_job set state = 'pending', wait_reason = null, marked_by = 'beat-a' "
        "where id = any (array(select id from pgbeat.active_job limit 100))"
    )
    ((jobs,),) = store.database.execute("select array_agg(id)::text from pgbeat.active_job where marked_by = 'beat-a'")
    session = Session(migrated_database)
    for _ in range(10):
        session.rows("select from pgbeat.confirm('{}', '{}', 'beat-a')")

    found = read_by(session, f"select from pgbeat.confirm('{jobs}', '{{}}', 'beat-a')")

    assert {} == found["as a whole"]
    assert 100 <= found["rows"] < 200


@pytest.mark.parametrize("due", [3, 300])
def test_p11_a_submit_reads_the_rows_that_it_submits(store: BeatQueries, migrated_database: str, due: int) -> None:
    store.database.execute(
        f"update pgbeat.periodic_task set next_run_at = pgbeat.now() where substr(name, 5)::int between 6 and {due + 5}"
    )
    decisions = [decided(row) for row in store.mark(1000)]
    session = Session(migrated_database)
    for _ in range(10):
        session.rows(said(session, store, lambda: store.submit([], "UTC", True, True)))

    found = read_by(session, said(session, store, lambda: store.submit(decisions, "UTC", True, True)))

    assert {} == found["as a whole"]
    assert 2 * due <= found["rows"] < 3 * due + 20


@pytest.mark.parametrize(
    ("overlap", "state"), [("skip", "running"), ("terminate_other", "running"), ("cancel_other", "sent")]
)
@pytest.mark.parametrize("due", [3, 300])
def test_p11_a_submit_of_rows_that_a_job_blocks_reads_these_and_their_jobs(
    store: BeatQueries, migrated_database: str, due: int, overlap: str, state: str
) -> None:
    store.database.execute(
        f"update pgbeat.periodic_task set next_run_at = pgbeat.now(), overlap = '{overlap}' "
        f"where substr(name, 5)::int between 6 and {due + 5}"
    )
    store.database.execute(
        "update pgbeat.active_job as job set periodic_task = 'row-' || number, "
        f"state = '{state}', exclusive = true, wait_reason = null "
        "from (select id, 5 + row_number() over () as number from pgbeat.active_job) as numbered "
        f"where job.id = numbered.id and number <= {due + 5}"
    )
    store.database.execute("vacuum analyze pgbeat.active_job")
    decisions = [decided(row) for row in store.mark(1000)]
    session = Session(migrated_database)
    for _ in range(10):
        session.rows(said(session, store, lambda: store.submit([], "UTC", True, True)))

    answered = session.rows(f"begin; {said(session, store, lambda: store.submit(decisions, 'UTC', True, True))}")
    session.rows("rollback")
    found = read_by(session, said(session, store, lambda: store.submit(decisions, "UTC", True, True)))

    assert due == len({row["name"] for row in answered})
    assert {} == found["as a whole"]
    assert 4 * due <= found["rows"] < 15 * due + 20


@pytest.mark.parametrize("ended", [3, 300])
def test_p11_finishes_read_the_jobs_that_they_finish_and_those_that_waited_for_them(
    store: BeatQueries, migrated_database: str, ended: int
) -> None:
    store.database.execute(
        "update pgbeat.active_job as job set periodic_task = 'row-' || number / 2, "
        "state = case mod(number, 2) when 0 then 'sent' else 'buffered' end, "
        "wait_reason = case mod(number, 2) when 1 then 'predecessor' end "
        "from (select id, row_number() over () as number from pgbeat.active_job) as numbered where job.id = numbered.id"
    )
    store.database.execute("vacuum analyze pgbeat.active_job")
    rows = store.database.execute(f"select id from pgbeat.active_job where state = 'sent' limit {ended}")
    reports = WorkerQueries(store.database)
    starts = [Start(row.id, 0, 0, uuid.uuid4(), "worker-a") for row in rows]
    assert all(reports.start(start, timedelta(minutes=1)) for start in starts)
    session = Session(migrated_database)
    for _ in range(10):
        session.rows(said(session, reports, lambda: reports.finish_many([])))

    finishes = [Finish(start, "succeeded") for start in starts]
    found = read_by(session, said(session, reports, lambda: reports.finish_many(finishes)))

    assert {} == found["as a whole"]
    assert 3 * ended <= found["rows"] < 15 * ended + 20


@pytest.mark.parametrize("ended", [3, 100])
def test_p11_dropped_messages_read_the_jobs_that_they_end(
    store: BeatQueries, migrated_database: str, ended: int
) -> None:
    store.database.execute("update pgbeat.active_job set periodic_task = id::text, state = 'sent', wait_reason = null")
    store.database.execute("vacuum analyze pgbeat.active_job")
    rows = store.database.execute(f"select id from pgbeat.active_job limit {ended}")
    reports, session = WorkerQueries(store.database), Session(migrated_database)
    for _ in range(10):
        session.rows(said(session, reports, lambda: reports.end_unstarted_many([])))

    ends = [Unstarted(MessageCopy(row.id, 0, 0), "expired", "worker-a") for row in rows]
    found = read_by(session, said(session, reports, lambda: reports.end_unstarted_many(ends)))

    assert {} == found["as a whole"]
    assert 2 * ended <= found["rows"] < 15 * ended + 20


# What makes plans in a session: the functions themselves, and what shares their triggers with them.
BEFORE = (
    "delete from pgbeat.active_job where id = gen_random_uuid()",
    "select pgbeat.promote_buffered('{}')",
    "select pgbeat.count_end('nobody', gen_random_uuid(), 'failed')",
    "select pgbeat.pause_is_due(name, failures_from, 3) from pgbeat.periodic_task",
)


@pytest.mark.parametrize("first", ["itself", "others"])
def test_p11_plans_that_were_kept_since_the_tables_were_small_serve_when_they_have_grown(
    migrated_database: str, first: str
) -> None:
    session, store = Session(migrated_database), beat(migrated_database)
    reports = WorkerQueries(store.database)
    session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at, overlap, pause_after_failures) "
        "select 'due-' || n, 'app.probe', 'every 1h', pgbeat.now(), 'skip', 3 from generate_series(1, 10) n"
    )
    for table in ("periodic_task", "active_job", "periodic_task_state"):
        session.rows(f"alter table pgbeat.{table} set (autovacuum_enabled = false)")
        session.rows(f"vacuum analyze pgbeat.{table}")  # none of them again, or plans were made anew
    itself = [
        said(session, store, lambda: store.submit([], "UTC", True, True)),
        said(session, reports, lambda: reports.start_spaced(Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "w"), GAP)),
        said(session, reports, lambda: reports.finish_many([])),
        said(session, reports, lambda: reports.end_unstarted_many([])),
    ]
    for text in [*itself, *BEFORE] if first == "itself" else [*BEFORE, *itself]:
        for _ in range(8):
            session.rows(text)
    grow(session)
    decisions = [decided(row) for row in store.mark(3)]
    session.rows("update pgbeat.active_job set periodic_task = 'due-1' where periodic_task = 'row-1'")
    session.rows("update pgbeat.active_job set min_gap = '1 s' where periodic_task = 'row-2'")
    (spaced_job,) = session.rows(
        "select id from pgbeat.active_job where periodic_task = 'row-2' and state = 'sent' limit 1"
    )
    early = Start(spaced_job["id"], 0, 0, uuid.uuid4(), "worker-a")
    ids = session.rows("select id from pgbeat.active_job where state = 'sent' and min_gap is null limit 6")
    starts = [Start(row["id"], 0, 0, uuid.uuid4(), "worker-a") for row in ids[:3]]
    assert all(reports.start(start, timedelta(minutes=1)) for start in starts)
    ends = [Finish(start, "failed", "ValueError") for start in starts]
    unstarted = [Unstarted(MessageCopy(row["id"], 0, 0), "failed", "worker-a") for row in ids[3:]]

    said_now = {
        "submit": (said(session, store, lambda: store.submit(decisions, "UTC", True, True)), 100),
        "start_spaced": (said(session, reports, lambda: reports.start_spaced(early, GAP)), 20),
        "finish_many": (said(session, reports, lambda: reports.finish_many(ends)), 200),
        "end_unstarted_many": (said(session, reports, lambda: reports.end_unstarted_many(unstarted)), 200),
    }
    found = {name: (read_by(session, text), most) for name, (text, most) in said_now.items()}

    assert {} == {name: read["as a whole"] for name, (read, _) in found.items() if read["as a whole"]}
    assert {} == {name: read["rows"] for name, (read, most) in found.items() if not 0 < read["rows"] < most}


def grow(session: Session) -> None:
    """Let the tables grow to thousands of rows."""
    session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) select 'row-' || n, 'app.probe', "
        "'every 1h', pgbeat.now() + n * interval '1 minute' from generate_series(1, 3000) n"
    )
    session.rows("insert into pgbeat.periodic_task_state (name) select 'row-' || n from generate_series(1, 3000) n")
    session.rows(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until, check_at, wait_reason, pause_after_failures) "
        "select gen_random_uuid(), 'row-' || n / 2, pgbeat.now(), 'schedule', "
        "(array['sent', 'buffered'])[1 + mod(n, 2)], false, 'app.probe', '{}', 'give_up', 'full', '1 hour', "
        "'infinity', 'infinity', (array[null, 'predecessor'])[1 + mod(n, 2)], 3 from generate_series(2, 6001) n"
    )


def test_a_mark_waits_for_no_disk_and_what_is_said_after_it_does(migrated_database: str) -> None:
    """A mark that a crash of Postgres takes away fences off the submit of who bore it."""
    session = Session(migrated_database)
    session.rows("begin")
    session.rows("select from pgbeat.mark('beat-a', 15, 1, 0, '{}', '{}', '{}')")
    assert "off" == session.value("show synchronous_commit")
    session.rows("commit")
    assert "on" == session.value("show synchronous_commit")


def test_p11_waiting_jobs_are_found_by_one_probe_for_each_name(store: BeatQueries) -> None:
    plan = explained(store, "select array_agg(x) from unnest(pgbeat.waited_for()) as x")
    assert "rows=5 " in plan
    (row,) = store.database.execute("select pgbeat.waited_for() as names")
    assert [f"row-{n}" for n in range(5)] == row.names


def test_p11_rows_that_cannot_be_planned_are_found_among_all_others_by_index(store: BeatQueries) -> None:
    assert "periodic_task_with_problem" in explained(store, statement("problems", "pgbeat"), limit=10)


def test_p11_a_heartbeat_reads_no_job_that_runs(store: BeatQueries, migrated_database: str) -> None:
    store.database.execute(
        "update pgbeat.active_job set state = 'running', wait_reason = null, token = gen_random_uuid(), "
        "busy_until = pgbeat.now() + interval '29 s', check_at = pgbeat.now() + random() * interval '29 s'"
    )
    store.database.execute("vacuum analyze pgbeat.active_job")
    session = Session(migrated_database)

    found = read_by(session, statement("forget_nodes", "pgbeat"))

    assert "Index Scan using active_job_to_check" in explained(store, statement("forget_nodes", "pgbeat"))
    assert 0 == found["as a whole"].get("active_job", 0)
    assert found["rows"] < 20


def test_p11_the_first_runs_are_found_without_sorting_all_of_one_instant(store: BeatQueries) -> None:
    store.database.execute("update pgbeat.periodic_task set next_run_at = '2100-03-01' where next_run_at is not null")
    store.database.execute("vacuum analyze pgbeat.periodic_task")

    now = datetime(2100, 1, 1, tzinfo=timezone.utc)
    plan = explained(store, statement("soonest", "pgbeat"), after_at=now, limit=10)

    assert "Index Scan using periodic_task_due on periodic_task" in plan
    assert "Seq Scan" not in plan


def test_postgres_inlines_the_functions_that_statements_share(migrated_database: str) -> None:
    """One that is not inlined would be planned in each call."""
    session = Session(migrated_database)
    shared = re.compile(r"\b(archived|lost|new_job|is_marked|pickup_within)\(")
    plans = {}
    with session.connection.cursor() as cursor:
        for name in test_every_statement.NAMES:
            if shared.search(statement(name, "pgbeat")):
                cursor.execute(
                    f"explain verbose {statement(name, 'pgbeat')}", test_every_statement.parameters(name) or None
                )
                plans[name] = "\n".join(line for (line,) in cursor)
        cursor.execute(f"explain verbose {MAKES_JOBS}")
        plans["one that makes jobs"] = "\n".join(line for (line,) in cursor)

    assert {"finish", "judge", "recover"} <= set(plans)
    assert [] == [name for name, plan in plans.items() if shared.search(plan)]
