"""Who may do what by the roles that `celery-pgbeat sql --roles` makes, and what nobody may: probes, each refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg2
import pytest
from click.testing import CliRunner, Result
from sqlalchemy.engine import make_url

import celery_pgbeat
from celery_pgbeat.cli import main
from celery_pgbeat.cli.command_line.rights import NEEDS
from celery_pgbeat.declare import define
from celery_pgbeat.declare.sendable import check_sendable
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.postgres.roles import roles_script
from celery_pgbeat.postgres.statements import PARAMETER, files, statement
from celery_pgbeat.settings import Settings
from tests.harness.session import Session

ROOM = Path(celery_pgbeat.__file__).parent
DENIED = "42501"  # SQLSTATE insufficient_privilege
INVALID = "22023"  # SQLSTATE invalid_parameter_value

# Parameters that may not be NULL: limits and durations.
NUMBERS = {"batch", "fresh", "limit", "most", "lease", "seconds", "on_time", "dead_after", "retention", "delay"}

# What the statements need through a trigger or a function, which EXPLAIN does not show.
BEHIND_FUNCTIONS = {
    ("pgbeat_beat", "blackout", "SELECT", None),  # windows_of
    ("pgbeat_beat", "schema_version", "SELECT", None),  # read at the start
    ("pgbeat_worker", "schema_version", "SELECT", None),  # likewise
    ("pgbeat_worker", "active_job", "UPDATE", "exclusive"),  # promoted
    ("pgbeat_worker", "active_job", "UPDATE", "waited"),  # promoted
    ("pgbeat_worker", "active_job", "UPDATE", "slot"),  # promoted
    ("pgbeat_worker", "active_job", "UPDATE", "wait_reason"),  # promoted
    ("pgbeat_worker", "active_job", "UPDATE", "run"),  # ask
    ("pgbeat_beat", "active_job", "INSERT", None),  # mark, submit
    ("pgbeat_beat", "task_group", "UPDATE", "state"),  # grant_slots
    ("pgbeat_beat", "task_group", "UPDATE", "next_turn_at"),  # grant_slots
    ("pgbeat_beat", "task_group", "UPDATE", "last_served"),  # grant_slots
    ("pgbeat_beat", "group_to_check", "UPDATE", "seen"),  # grant_slots
    ("pgbeat_beat", "group_to_check", "DELETE", None),  # grant_slots
    ("pgbeat_beat", "group_failure", "INSERT", None),  # active_job_gone
    ("pgbeat_beat", "group_failure", "SELECT", None),  # pause_failed_groups
    ("pgbeat_beat", "group_failure", "UPDATE", None),  # pause_failed_groups
    ("pgbeat_beat", "group_failure", "DELETE", None),  # pause_failed_groups
    ("pgbeat_beat", "task_group", "UPDATE", "paused"),  # pause_failed_groups
    ("pgbeat_beat", "task_group", "UPDATE", "pause_reason"),  # pause_failed_groups
    ("pgbeat_beat", "dependency_to_check", "DELETE", None),  # settle_downstream
    ("pgbeat_beat", "dependency_to_check", "UPDATE", "upstream"),  # settle_downstream
    ("pgbeat_worker", "dependency", "SELECT", None),  # active_job_gone
    ("pgbeat_worker", "dependency_to_check", "INSERT", "upstream"),  # active_job_gone
    ("pgbeat_worker", "dependency_to_check", "INSERT", "downstream"),  # active_job_waits
    ("pgbeat_worker", "periodic_task", "SELECT", "after"),  # promoted
    ("pgbeat_worker", "periodic_task", "SELECT", "schedule"),  # promoted
    ("pgbeat_worker", "group_failure", "INSERT", None),  # active_job_gone
    ("pgbeat_worker", "group_to_check", "INSERT", "group_name"),  # active_job_gone
    ("pgbeat_worker", "periodic_task", "SELECT", "failures_from"),  # count_end
    ("pgbeat_beat", "periodic_task_state", "INSERT", None),  # count_end
    ("pgbeat_worker", "active_job", "UPDATE", "due_by"),  # promoted
}


@pytest.fixture
def owner(migrated_database: str) -> Session:
    return with_roles(migrated_database)


@pytest.fixture(scope="module")
def untouched(shared_database: str) -> Session:
    """The same on one database, for the many tests that change nothing there."""
    return with_roles(shared_database)


def with_roles(url: str) -> Session:
    session = Session(url)
    session.rows(roles_script("pgbeat"))
    session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, args, queue) "
        "values ('nightly', 'app.probe', '0 3 * * *', '[\"secret\"]', 'mail')"
    )
    return session


@contextmanager
def acting_as(session: Session, role: str) -> Iterator[None]:
    session.rows(f'set role "pgbeat_{role}"')
    try:
        yield
    finally:
        session.rows("reset role")


def said_by(*patterns: str) -> list[str]:
    """Return the names of the statements that these modules say."""
    text = "".join(path.read_text(encoding="utf-8") for pattern in patterns for path in ROOM.glob(pattern))
    names = set(re.findall(r"(?:run|_run|_changed|_tell)\(\s*\"(\w+)\"", text))
    return sorted(names & files().keys())


STATEMENTS = {
    "beat": said_by(
        *(f"postgres/{name}_queries.py" for name in ("beat", "upkeep", "backfill", "code_sync")),
        "beat/**/*.py",
        "measures/*.py",
    ),
    "worker": said_by("postgres/worker_queries.py", "worker/stop/current.py"),
}


def explain(session: Session, name: str) -> None:
    """Plan a statement, which checks what its role may do, without running it."""
    values = {
        parameter: 1 if parameter in NUMBERS else None for parameter in PARAMETER.findall(statement(name, "pgbeat"))
    }
    with session.connection.cursor() as cursor:
        cursor.execute("explain " + statement(name, "pgbeat"), values or None)


@pytest.mark.parametrize(("role", "name"), [(role, name) for role, names in STATEMENTS.items() for name in names])
def test_each_statement_of_a_process_is_allowed_to_its_role(untouched: Session, role: str, name: str) -> None:
    with acting_as(untouched, role):
        explain(untouched, name)


def grants_of(session: Session, role: str) -> list[tuple[str, str, str | None]]:
    return [
        (row["relname"], row["privilege_type"], row["attname"])
        for row in session.rows(
            """
            select relname::text, privilege_type, null::text as attname
            from pg_class cross join aclexplode(relacl)
            where relnamespace = 'pgbeat'::regnamespace and grantee = %s::regrole
            union all
            select relname, privilege_type, attname
            from pg_class join pg_attribute on attrelid = pg_class.oid cross join aclexplode(attacl)
            where relnamespace = 'pgbeat'::regnamespace and grantee = %s::regrole
            order by 1, 2, 3
            """,
            role,
            role,
        )
    ]


@pytest.mark.parametrize("process", ["beat", "worker"])
def test_no_grant_of_a_process_is_more_than_its_statements_need(owner: Session, process: str) -> None:
    role = f"pgbeat_{process}"
    idle = []
    for table, privilege, column in grants_of(owner, role):
        owner.rows(f"begin; revoke {privilege} {f'({column})' if column else ''} on pgbeat.{table} from {role}")
        owner.rows(f"set local role {role}")
        if not any(is_denied(owner, name) for name in STATEMENTS[process] if table in statement(name, "pgbeat")):
            idle.append((role, table, privilege, column))
        owner.rows("rollback")

    assert [grant for grant in BEHIND_FUNCTIONS if grant[0] == role and grant not in idle] == []
    assert [grant for grant in idle if grant not in BEHIND_FUNCTIONS] == []


def is_denied(session: Session, name: str) -> bool:
    session.rows("savepoint here")
    try:
        explain(session, name)
    except psycopg2.errors.InsufficientPrivilege:
        session.rows("rollback to here")
        return True
    return False


def test_the_failure_that_a_worker_reports_pauses_a_group_by_a_beat_and_an_author_resumes_it(owner: Session) -> None:
    owner.rows("select pgbeat.define_group('g', ordered => true, pause_on_failure => true)")
    owner.rows("update pgbeat.periodic_task set group_name = 'g', overlap = 'allow'")
    owner.rows("select pgbeat.trigger('nightly')")
    with acting_as(owner, "beat"):
        assert 1 == owner.value("select pgbeat.grant_slots()")
    with acting_as(owner, "worker"):
        owner.rows(
            "with deleted as (delete from pgbeat.active_job as job returning job) "
            "insert into pgbeat.finished_job select final.* from deleted "
            "cross join lateral pgbeat.archived(job, 'failed') as final"
        )
    with acting_as(owner, "beat"):
        owner.rows(statement("pause_failed_groups", "pgbeat"))
    with acting_as(owner, "author"):
        assert "paused" == owner.value("select state from pgbeat.task_group")
        owner.rows("select pgbeat.resume_group('g', retry => true)")
        owner.rows("select pgbeat.define_group('g', rate_limit => '5/s'), pgbeat.finish_group('g')")
    with acting_as(owner, "beat"):
        assert 1 == owner.value("select pgbeat.grant_slots()")


def test_a_beat_may_give_the_places_of_a_group_and_a_worker_may_free_them(owner: Session) -> None:
    owner.rows("select pgbeat.limit_group('g', 1)")
    owner.rows("update pgbeat.periodic_task set group_name = 'g', overlap = 'allow'")
    for _ in range(2):
        owner.rows("select pgbeat.trigger('nightly')")

    with acting_as(owner, "beat"):
        assert 1 == owner.value("select pgbeat.grant_slots()")
    with acting_as(owner, "worker"):
        owner.rows("delete from pgbeat.active_job where slot = 1")
    with acting_as(owner, "beat"):
        assert 1 == owner.value("select pgbeat.grant_slots()")


@pytest.mark.parametrize("role", ["worker", "beat"])
def test_a_role_that_reports_the_end_of_a_job_may_count_it(owner: Session, role: str) -> None:
    owner.rows("update pgbeat.periodic_task set pause_after_failures = 1")
    with acting_as(owner, role):
        owner.rows("select pgbeat.count_end('nightly', gen_random_uuid(), 'failed')")
        owner.rows("select pgbeat.count_end('nightly', gen_random_uuid(), 'succeeded')")

    assert owner.value("select pause_due from pgbeat.periodic_task_state")


# What each role may do: so that the refusals below are not those of a role that may do nothing.
ALLOWED = {
    "author": [
        "insert into pgbeat.periodic_task (name, task, schedule, args, options) values ('x', 'a', null, '[1]', '{}')",
        "update pgbeat.periodic_task set args = '[2]', next_run_at = now() where name = 'nightly'",
        "delete from pgbeat.periodic_task where name = 'nightly'",
        "insert into pgbeat.blackout (name, windows) values ('weekend', array['cron: 0 0 * * sat P2D'])",
        "select pgbeat.schedule('nightly', 'app.probe', 'every 5m')",
        "select pgbeat.schedule('other', 'app.probe', 'every 5m', timezone => 'Europe/Berlin')",
        "select pgbeat.pause('nightly', 'for now'), pgbeat.resume('nightly'), pgbeat.replan(array['nightly'])",
        "select pgbeat.trigger('nightly'), pgbeat.explain('nightly')",
        """select pgbeat.trigger_many('[{"name": "nightly", "args": [1]}]', true)""",
        "select pgbeat.cancel_backfill(pgbeat.backfill('nightly', '2026-05-01 00:00Z', '2026-05-31 00:00Z', 'all', 2))",
        "update pgbeat.periodic_task set timezone = 'UTC' where name = 'nightly'; "
        "select pgbeat.backfill('nightly', date '2026-05-01', date '2026-05-31')",
        "select pgbeat.unschedule('nightly')",
        "select * from pgbeat.task",
        "select * from pgbeat.job, pgbeat.status, pgbeat.overdue, pgbeat.upcoming, pgbeat.node, pgbeat.backfill",
    ],
    "reader": [
        "select * from pgbeat.job",
        "select * from pgbeat.status",
        "select * from pgbeat.overdue",
        "select * from pgbeat.upcoming",
        "select * from pgbeat.node",
        "select * from pgbeat.blackout",
        "select * from pgbeat.backfill",
        "select name, task, schedule, next_run_at from pgbeat.periodic_task",
        "select pgbeat.explain('nightly')",
    ],
    "person": ["select id, periodic_task, state from pgbeat.my_work('ann', array['finance'])"],
}


@pytest.mark.parametrize(("role", "command"), [(role, command) for role, said in ALLOWED.items() for command in said])
def test_what_a_person_s_role_is_for_it_may_do(owner: Session, role: str, command: str) -> None:
    with acting_as(owner, role):
        owner.rows(command)


MATRIX = {
    "a stranger reads the schema": ("public", "select name from pgbeat.periodic_task"),
    "a stranger starts a job": ("public", "select pgbeat.trigger('nightly')"),
    "a stranger starts many jobs": ("public", "select pgbeat.trigger_many('[]')"),
    "a reader reads arguments": ("reader", "select args from pgbeat.periodic_task"),
    "a reader reads options": ("reader", "select options from pgbeat.periodic_task"),
    "a reader reads messages": ("reader", "select message from pgbeat.active_job"),
    "a reader reads whole rows": ("reader", "select * from pgbeat.periodic_task"),
    "a reader reads the tokens of starts": ("reader", "select token from pgbeat.active_job"),
    "a reader schedules": ("reader", "select pgbeat.schedule('x', 'app.probe')"),
    "a reader pauses": ("reader", "select pgbeat.pause('nightly')"),
    "a stranger plans again": ("public", "select pgbeat.replan()"),
    "a reader plans again": ("reader", "select pgbeat.replan()"),
    "a worker plans again": ("worker", "select pgbeat.replan()"),
    "a reader starts a job": ("reader", "select pgbeat.trigger('nightly')"),
    "a reader starts many jobs": ("reader", "select pgbeat.trigger_many('[]')"),
    "a stranger fills a range": ("public", "select pgbeat.backfill('nightly', '2026-05-01', '2026-05-31')"),
    "a reader fills a range": ("reader", "select pgbeat.backfill('nightly', '2026-05-01', '2026-05-31')"),
    "a reader fills days": ("reader", "select pgbeat.backfill('nightly', date '2026-05-01', date '2026-05-31')"),
    "a reader fills a range of instants": ("reader", "select pgbeat.backfill('nightly', now(), now())"),
    "a reader cancels a backfill": ("reader", "select pgbeat.cancel_backfill(gen_random_uuid())"),
    "an author writes a backfill": (
        "author",
        "insert into pgbeat.backfill (periodic_task, since, until) values ('nightly', now(), now())",
    ),
    "an author drops what somebody asked for": ("author", "delete from pgbeat.backfill"),
    "a worker writes a backfill": ("worker", "update pgbeat.backfill set max_active = 1000"),
    "a reader removes": ("reader", "select pgbeat.unschedule('nightly')"),
    "an author writes a job": (
        "author",
        "insert into pgbeat.active_job (id, periodic_task, task, message, state, origin, scheduled_for, exclusive, "
        "on_lost, tracking, pickup_deadline, busy_until) values (gen_random_uuid(), 'nightly', 'os.system', '{}', "
        "'pending', 'manual', now(), true, 'give_up', 'full', '1 h', now())",
    ),
    "an author ends a job": ("author", "delete from pgbeat.active_job"),
    "an author rewrites a message": ("author", "update pgbeat.active_job set message = '{}'"),
    "an author marks": ("author", "update pgbeat.periodic_task set marked_by = 'me', marked_at = now()"),
    "an author marks by the beats' function": (
        "author",
        "update pgbeat.periodic_task set next_run_at = now(); select pgbeat.mark('me', 15, 10, 5, '{}', '{}', '{}')",
    ),
    "an author submits by the beats' function": (
        "author",
        "select pgbeat.mark('me', 15, 10, 5, '{}', '{}', '{}', true)",
    ),
    "an author plans ahead": ("author", "update pgbeat.periodic_task set planned_ahead = array[now()]"),
    "a reader marks by the beats' function": ("reader", "select pgbeat.mark('me', 15, 10, 5, '{}', '{}', '{}')"),
    "an author confirms": ("author", "select pgbeat.confirm(array[gen_random_uuid()], '{}', 'me')"),
    "an author starts a job": (
        "author",
        "select pgbeat.start(gen_random_uuid(), 0, 0, gen_random_uuid(), 'me', 30, 'app.probe')",
    ),
    "an author decides what was planned": ("author", "update pgbeat.periodic_task set planned_revision = revision"),
    "an author poses as code": ("author", "update pgbeat.periodic_task set declared = '{}'"),
    "an author chooses the seed of ids": (
        "author",
        "insert into pgbeat.periodic_task (name, task, created_at) values ('x', 'a', '2020-01-01')",
    ),
    "an author rewrites history": ("author", "update pgbeat.finished_job set state = 'succeeded'"),
    "an author drops history": ("author", "select pgbeat.prune('1 s')"),
    "an author announces a node": (
        "author",
        "insert into pgbeat.node (id, role, hostname, pid, version) values ('x', 'beat', 'h', 1, '1')",
    ),
    "an author turns nodes away": ("author", "update pgbeat.schema_version set min_compatible = 99"),
    "an author replaces the clock": (
        "author",
        "create or replace function pgbeat.now() returns timestamptz language sql as 'select null::timestamptz'",
    ),
    "an author turns validation off": ("author", "alter table pgbeat.periodic_task disable trigger user"),
    "an author adds to the schema": ("author", "create table pgbeat.mine ()"),
    "a worker defines a task": ("worker", "insert into pgbeat.periodic_task (name, task) values ('x', 'os.system')"),
    "a worker changes what is called": ("worker", "update pgbeat.periodic_task set task = 'os.system'"),
    "a worker changes arguments": ("worker", "update pgbeat.periodic_task set args = '[1]'"),
    "a worker reads all arguments": ("worker", "select args from pgbeat.periodic_task"),
    "a worker changes a message": ("worker", "update pgbeat.active_job set message = '{}'"),
    "a worker changes a job's task": ("worker", "update pgbeat.active_job set task = 'os.system'"),
    "a worker reads what code declares": ("worker", "select hash from pgbeat.declaration"),
    "a worker gives up what code declares": ("worker", "delete from pgbeat.declaration"),
    "a worker removes": ("worker", "delete from pgbeat.periodic_task"),
    "a worker starts a job": ("worker", "select pgbeat.trigger('nightly')"),
    "a worker starts many jobs": ("worker", "select pgbeat.trigger_many('[]')"),
    "a person reads jobs": ("person", "select * from pgbeat.job"),
    "a person reads what is open": ("person", "select * from pgbeat.open_work"),
    "a person reads jobs' rows": ("person", "select * from pgbeat.active_job"),
    "a person reads definitions": ("person", "select name from pgbeat.periodic_task"),
    "a person defines": ("person", "select pgbeat.schedule('x', null, kind => 'human')"),
    "a person starts a job": ("person", "select pgbeat.trigger('nightly')"),
    "a person explains": ("person", "select pgbeat.explain('nightly')"),
    "a person opens work": (
        "person",
        "insert into pgbeat.open_work (target, due_by, scheduled_for, job) "
        "values ('', now(), now(), gen_random_uuid())",
    ),
    "a person cancels by the inner function": (
        "person",
        "select pgbeat.cancel_unstarted(gen_random_uuid(), 'because')",
    ),
    "a person has a job sent again": ("person", "select pgbeat.resend_job(gen_random_uuid())"),
    "a person cancels what is no work": ("person", "select pgbeat.cancel_job(gen_random_uuid())"),
    "a reader picks work up": ("reader", "select pgbeat.pick_up(gen_random_uuid(), 'ann')"),
    "a reader releases work": ("reader", "select pgbeat.release(gen_random_uuid())"),
    "a reader finishes work": ("reader", "select pgbeat.finish(gen_random_uuid(), 'succeeded')"),
    "a reader cancels": ("reader", "select pgbeat.cancel_job(gen_random_uuid())"),
    "a reader has a job sent again": ("reader", "select pgbeat.resend_job(gen_random_uuid())"),
    "a worker has a job sent again": ("worker", "select pgbeat.resend_job(gen_random_uuid())"),
    "a reader lists work with its arguments": ("reader", "select pgbeat.my_work('ann')"),
    "a worker picks work up": ("worker", "select pgbeat.pick_up(gen_random_uuid(), 'ann')"),
    "a beat removes": ("beat", "delete from pgbeat.periodic_task"),
    "a beat deletes history": ("beat", "delete from pgbeat.finished_job"),
    "a beat rewrites history": ("beat", "update pgbeat.finished_job set state = 'succeeded'"),
    "a beat changes the schema": ("beat", "alter table pgbeat.node add column x int"),
}


@pytest.mark.parametrize("probe", MATRIX)
def test_what_a_role_is_not_for_is_refused(untouched: Session, probe: str) -> None:
    role, command = MATRIX[probe]
    untouched.rows("drop role if exists pgbeat_public; create role pgbeat_public")
    with acting_as(untouched, role):
        refused = untouched.refusal(command)
    untouched.rows("drop role pgbeat_public")

    # To alter what one does not own is refused by that name, and so by the same SQLSTATE.
    assert DENIED == refused.pgcode


def test_a_person_may_do_what_is_for_people_and_cancel_nothing_else(owner: Session) -> None:
    owner.rows("select pgbeat.schedule('sign off', null, kind => 'human', overlap => 'allow')")
    jobs = [owner.value("select pgbeat.trigger('sign off')") for _ in range(2)]
    machine = owner.value("select pgbeat.trigger('nightly')")

    with acting_as(owner, "person"):
        for command in ("pick_up(%s, 'ann')", "release(%s)", "pick_up(%s, 'bob')", "finish(%s, 'succeeded')"):
            assert "sign off" == owner.value(f"select pgbeat.{command}", jobs[0])
        assert "sign off" == owner.value("select pgbeat.cancel_job(%s, 'no need')", jobs[1])
        refused = owner.refusal(f"select pgbeat.cancel_job('{machine}')")

    assert f"Job {machine} is no open task for people, and " in str(refused)
    assert "pending" == owner.value("select state from pgbeat.job where id = %s", machine)
    owner.rows("update pgbeat.active_job set state = 'sent', sends = 1 where id = %s", machine)
    with acting_as(owner, "author"):
        assert "nightly" == owner.value("select pgbeat.resend_job(%s)", machine)
        assert "nightly" == owner.value("select pgbeat.cancel_job(%s)", machine)


def test_a_stranger_may_call_no_function(owner: Session) -> None:
    functions = "select oid::regprocedure::text as name from pg_proc where pronamespace = 'pgbeat'::regnamespace "
    owner.rows("drop role if exists pgbeat_public; create role pgbeat_public")
    found = owner.rows(functions + "and has_function_privilege('pgbeat_public', oid, 'execute')")
    owner.rows("drop role pgbeat_public")

    assert [] == found


def test_every_column_is_either_the_reader_s_or_hidden_from_him_on_purpose(owner: Session) -> None:
    hidden = {
        f"{row['relname']}.{row['attname']}"
        for row in owner.rows(
            "select relname, attname from pg_class join pg_attribute on attrelid = pg_class.oid "
            "where relnamespace = 'pgbeat'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition "
            "and attnum > 0 and not attisdropped "
            "and not has_column_privilege('pgbeat_reader', pg_class.oid, attnum, 'select')"
        )
    }
    assert {
        "periodic_task.args",
        "periodic_task.kwargs",
        "periodic_task.options",
        "periodic_task.declared",
        "active_job.message",
        "active_job.token",
        "finished_job.restart_data",
        "finished_job.arguments",
        "group_to_check.group_name",
        "group_to_check.seen",
        "dependency_to_check.upstream",
        "dependency_to_check.downstream",
        "dependency_to_check.tries",
        "last_author.what",
        "last_author.transaction",
        "change.arguments_before",
        "change.arguments_after",
    } == hidden


def test_the_script_may_be_run_again_and_takes_back_what_it_does_not_know(owner: Session) -> None:
    before = {role: grants_of(owner, f"pgbeat_{role}") for role in ("beat", "worker", "author", "reader")}
    owner.rows("grant insert on pgbeat.periodic_task to pgbeat_reader, public")
    owner.rows("grant update (task) on pgbeat.periodic_task to pgbeat_worker")
    owner.rows("create function pgbeat.later() returns int language sql as 'select 1'")
    owner.rows(roles_script("pgbeat"))

    assert before == {role: grants_of(owner, f"pgbeat_{role}") for role in before}
    assert ["pgbeat_owner"] == [
        row["owner"]
        for row in owner.rows(
            "select relowner::regrole::text as owner from pg_class where relnamespace = 'pgbeat'::regnamespace "
            "union select proowner::regrole::text from pg_proc where pronamespace = 'pgbeat'::regnamespace "
            "union select nspowner::regrole::text from pg_namespace where nspname = 'pgbeat'"
        )
    ]
    assert [] == owner.rows(
        "select oid::regprocedure from pg_proc cross join aclexplode(coalesce(proacl, acldefault('f', proowner))) "
        "where pronamespace = 'pgbeat'::regnamespace and grantee = 0"
    )


def test_the_history_of_days_to_come_is_written_and_read_by_the_roles_too(owner: Session) -> None:
    insert = (
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) values (gen_random_uuid(), 'nightly', now(), 'schedule', 'succeeded', 'app.probe', "
        "now() + interval '20 days', now())"
    )
    with acting_as(owner, "beat"):
        assert 6 == owner.value("select pgbeat.make_days(20)")
        owner.rows(insert)
    with acting_as(owner, "worker"):
        owner.rows(insert)
    with acting_as(owner, "reader"):
        assert 2 == owner.value("select count(*) from pgbeat.job")


@pytest.mark.parametrize(
    "call",
    [
        *(
            f"prune{more[0]}({duration}{more[1]})"
            for more in (("", ""), ("_changes", ", 1000"))
            for duration in ("'-30 days'", "'23 hours'", "'0'", "null", "'200 years'", "'1000 months -30000 days'")
        ),
        *(f"prune_changes('2 days', {most})" for most in (-1, 0, 100_001, "null")),
        *(f"make_days({days})" for days in (-1, 367, 2_147_483_647, "null")),
    ],
)
def test_a_beat_deletes_nothing_that_the_settings_keep_and_makes_no_number_of_days(owner: Session, call: str) -> None:
    owner.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) values (gen_random_uuid(), 'nightly', now(), 'schedule', 'succeeded', 'a', now(), now())"
    )
    changes = owner.value("select count(*) from pgbeat.change")
    with acting_as(owner, "beat"):
        assert "22023" == owner.refusal(f"select pgbeat.{call}").pgcode
    assert (1, changes) == (
        owner.value("select count(*) from pgbeat.job"),
        owner.value("select count(*) from pgbeat.change"),
    )


def test_a_duration_of_months_against_days_keeps_as_long_as_it_compares(owner: Session) -> None:
    """Postgres compares 1,000 months as 30,000 days, and subtracts 83 years: 30,437 days."""
    owner.rows("update pgbeat.change set at = now() - interval '36 hours'")
    with acting_as(owner, "beat"):
        assert 0 == owner.value("select pgbeat.prune_changes('-1000 months 30002 days', 1000)")
        assert 1 <= owner.value("select pgbeat.prune_changes('1000 months -29999 days', 1000)")


# Names looked up elsewhere.


def test_what_acts_for_the_owner_looks_names_up_in_pg_catalog_alone(owner: Session) -> None:
    assert {
        "explain": ["search_path=pg_catalog, pg_temp"],
        "trigger": ["search_path=pg_catalog, pg_temp"],
        "backfill": ["search_path=pg_catalog, pg_temp"],
        "cancel_backfill": ["search_path=pg_catalog, pg_temp"],
        "fail_job": ["search_path=pg_catalog, pg_temp"],
        "is_backfilled": ["search_path=pg_catalog, pg_temp"],
        "make_days": ["search_path=pg_catalog, pg_temp"],
        "prune": ["search_path=pg_catalog, pg_temp"],
        "replan": ["search_path=pg_catalog, pg_temp"],
        "retry_failures_of": ["search_path=pg_catalog, pg_temp"],
        "run_again": ["search_path=pg_catalog, pg_temp"],
        "trigger_many": ["search_path=pg_catalog, pg_temp"],
        "after_removed": ["search_path=pg_catalog, pg_temp"],
        "after_written": ["search_path=pg_catalog, pg_temp"],
        "resend_job": ["search_path=pg_catalog, pg_temp"],
        "cancel_unstarted": ["search_path=pg_catalog, pg_temp"],
        "cancel_work": ["search_path=pg_catalog, pg_temp"],
        "decided_after": ["search_path=pg_catalog, pg_temp"],
        "finish": ["search_path=pg_catalog, pg_temp"],
        "my_work": ["search_path=pg_catalog, pg_temp"],
        "one_author": ["search_path=pg_catalog, pg_temp"],
        "pick_up": ["search_path=pg_catalog, pg_temp"],
        "planned_again": ["search_path=pg_catalog, pg_temp"],
        "release": ["search_path=pg_catalog, pg_temp"],
        "try_lock": ["search_path=pg_catalog, pg_temp"],
        "task_group_to_be_written": ["search_path=pg_catalog, pg_temp"],
        "work_changed": ["search_path=pg_catalog, pg_temp"],
        "prune_changes": ["search_path=pg_catalog, pg_temp"],
        "record_changed": ["search_path=pg_catalog, pg_temp"],
        "record_created": ["search_path=pg_catalog, pg_temp"],
        "record_next_run": ["search_path=pg_catalog, pg_temp"],
        "task_group_changed": ["search_path=pg_catalog, pg_temp"],
        "replan_users_of_window": ["search_path=pg_catalog, pg_temp"],
        "record_removed": ["search_path=pg_catalog, pg_temp"],
        "record_group": ["search_path=pg_catalog, pg_temp"],
        "record_window": ["search_path=pg_catalog, pg_temp"],
        "start_manual_job": ["search_path=pg_catalog, pg_temp"],
    } == {
        row["proname"]: [setting for setting in row["proconfig"] if setting.startswith("search_path")]
        for row in owner.rows(
            "select proname, proconfig from pg_proc where pronamespace = 'pgbeat'::regnamespace and prosecdef"
        )
    }


def test_temporary_tables_of_our_names_do_not_fool_functions_of_the_owner(owner: Session) -> None:
    with acting_as(owner, "author"):
        for name in ("periodic_task", "active_job", "finished_job", "node"):
            owner.rows(f"create temporary table {name} (like pgbeat.{name})")
        owner.rows("create temporary view job as select 1 as id")
        job = owner.value("select pgbeat.trigger('nightly')")
        said = owner.value("select pgbeat.explain('nightly')")
        more = owner.value("""select job from pgbeat.trigger_many('[{"name": "nightly", "args": [1]}]', true)""")
    assert {job, more} == {row["id"] for row in owner.rows("select id from pgbeat.active_job")}
    assert said.startswith("'nightly' is not running")
    assert 0 == owner.value("select count(*) from pg_temp.active_job")


# Better matches than the catalogue's own for calls that our bodies make, and operators likewise.
OVERLOADS = {
    "format": ("(text, text)", "text"),
    "concat_ws": ("(text, text, text)", "text"),
    "jsonb_build_object": ("(text, jsonb, text, jsonb, text, integer, text, jsonb, text, text, text, text)", "jsonb"),
    "char_length": ("(pgbeat.periodic_task)", "integer"),
    "array_to_string": ("(text[], varchar)", "text"),
    "pg_notify": ("(text, varchar)", "void"),
    "quote_literal": ("(varchar)", "text"),
}


def test_better_matches_in_a_schema_of_the_search_path_are_never_called(owner: Session) -> None:
    owner.rows("create schema trap; create table trap.caught (by text)")
    for name, (arguments, answer) in OVERLOADS.items():
        owner.rows(
            f"create function trap.{name}{arguments} returns {answer} language plpgsql as "
            f"'begin insert into trap.caught values (''{name}''); return null; end'"
            if answer != "void"
            else f"create function trap.{name}{arguments} returns void language plpgsql as "
            f"'begin insert into trap.caught values (''{name}''); end'"
        )
    owner.rows(
        "create function trap.times(int, interval) returns interval language plpgsql as "
        "'begin insert into trap.caught values (''*''); return $2; end'"
    )
    owner.rows("create operator trap.* (function = trap.times, leftarg = int, rightarg = interval)")
    owner.rows("set search_path = trap, pg_catalog, public")
    # The control: a statement of one's own does fall into it.
    owner.rows("select format('%s'::text, 'x'::text), 2 * interval '1 second'")
    assert {"format", "*"} == {row["by"] for row in owner.rows("delete from trap.caught returning by")}

    owner.rows("set search_path = pg_catalog, trap")
    owner.refusal("insert into pgbeat.periodic_task (name, task, schedule) values ('x', 'a', '0 25 * * *')")
    owner.refusal("insert into pgbeat.periodic_task (name, task, options) values ('x', 'a', '{\"link\": 1}')")
    owner.rows("select pgbeat.schedule('x', 'app.probe', 'every 5m')")
    many = (
        """select * from pgbeat.trigger_many('[{"name": "x", "args": [1]}, {"name": "x", "kwargs": {"a": 1}}]', true)"""
    )
    owner.rows(many)
    owner.refusal(many.replace("[1]", "{}"))
    owner.rows("delete from pgbeat.active_job")
    owner.rows("select pgbeat.trigger('x'), pgbeat.explain('x'), pgbeat.pause('x'), pgbeat.promote_buffered()")
    owner.rows("select * from pgbeat.status; select * from pgbeat.overdue; select * from pgbeat.job")
    owner.rows("select pgbeat.make_days(20), pgbeat.prune('30 days')")
    owner.rows("update pgbeat.periodic_task set next_run_at = now() - interval '1 day', enabled = true")
    owner.rows("select * from pgbeat.status; select * from pgbeat.overdue")
    owner.rows("delete from pgbeat.active_job")

    assert [] == owner.rows("select by from trap.caught")


def test_every_public_function_looks_names_up_in_pg_catalog_alone(owner: Session) -> None:
    assert set() == {
        row["proname"]
        for row in owner.rows(
            "select proname from pg_proc where pronamespace = 'pgbeat'::regnamespace "
            "and not coalesce(proconfig::text like '%search_path=%', false) "
            "and (prorettype = 'trigger'::regtype or proname in ('schedule', 'unschedule', 'pause', 'resume', "
            "'trigger', 'trigger_many', 'explain', 'promote_buffered', 'make_days', 'prune', 'validate_schedule', "
            "'similar_name', 'windows_of'))"
        )
    }


# What a row may not hold, by either door.


def nested(levels: int) -> Any:
    """Return lists in lists."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


class Raw(str):
    """JSON that Python could not write."""


REFUSED = {
    "the serializer pickle": ({"options": {"serializer": "pickle"}}, "'pickle'"),
    "the serializer yaml": ({"options": {"serializer": "yaml"}}, "'yaml'"),
    "the serializer msgpack": ({"options": {"serializer": "msgpack"}}, "'msgpack'"),
    "pickle by its content type": ({"options": {"serializer": "application/x-python-serialize"}}, "x-python-serialize"),
    "a content type": ({"options": {"content_type": "application/x-python-serialize"}}, "'content_type'"),
    "a content encoding": ({"options": {"content_encoding": "binary"}}, "'content_encoding'"),
    "a link": ({"options": {"link": [{"task": "os.system"}]}}, "'link'"),
    "a link on errors": ({"options": {"link_error": []}}, "'link_error'"),
    "a chain": ({"options": {"chain": []}}, "'chain'"),
    "a chord": ({"options": {"chord": {}}}, "'chord'"),
    "a task id": ({"options": {"task_id": "1"}}, "'task_id'"),
    "a root": ({"options": {"root_id": "1"}}, "'root_id'"),
    "a producer": ({"options": {"producer": "x"}}, "'producer'"),
    "a connection": ({"options": {"connection": "amqp://elsewhere"}}, "'connection'"),
    "another task by a header": ({"options": {"headers": {"task": "os.system"}}}, "'task'"),
    "another id by a header": ({"options": {"headers": {"id": "1"}}}, "'id'"),
    "our own header": ({"options": {"headers": {"pgbeat": {}}}}, "'pgbeat'"),
    "an option that closes the statement": ({"options": {"x'); drop table pgbeat.node; --": 1}}, "drop table"),
    "headers that are no object": ({"options": {"headers": [["task", "x"]]}}, "headers"),
    "options of 100 kB": ({"options": {"headers": {"x": "y" * 100_000}}}, "100022 bytes, more than 65536"),
    "arguments of 100 kB": ({"args": ["y" * 100_000]}, "bytes together, more than 65536"),
    "a name of 201 characters": ({"name": "x" * 201}, "201 characters, not 1 to 200"),
    "a task of 1,001 characters": ({"task": "x" * 1001}, "task has 1001 characters, more than 1000"),
    "a queue of 1,001 characters": ({"queue": "x" * 1001}, "queue has 1001 characters, more than 1000"),
    "a subject of 1,001 characters": ({"subject": "x" * 1001}, "subject has 1001 characters, more than 1000"),
    "arguments nested 102 levels deep": ({"args": nested(101)}, "args is nested more than 100 levels deep"),
    "arguments nested 3,000 levels deep": ({"args": Raw("[" * 3000 + "]" * 3000)}, "args is nested more than 100"),
    "keyword arguments nested so": ({"kwargs": {"a": nested(100)}}, "kwargs is nested more than 100 levels deep"),
    "a header nested so": ({"options": {"headers": {"a": nested(100)}}}, "options is nested more than 100 levels deep"),
    "a number of 310 digits": ({"args": [10**309]}, "args has a number of more than 309 digits"),
    "a negative one": ({"kwargs": {"a": {"b": -(10**309)}}}, "kwargs has a number of more than 309 digits"),
    "a number of 60,000 digits": ({"args": Raw(f"[{'9' * 60_000}]")}, "args has a number of more than 309 digits"),
    "a time limit of 1e400": ({"options": Raw('{"time_limit": 1e400}')}, "options has a number of more than"),
    "a time limit of a thousand years": (
        {"options": {"time_limit": 3.2e10}},
        "not a number of seconds from 0 to 31622400",
    ),
    "a soft one": ({"options": {"soft_time_limit": 31_622_401}}, "not a number of seconds from 0 to 31622400"),
    "a countdown beyond the calendar": ({"options": {"countdown": 1e12}}, "not a number of seconds from 0 to 31622400"),
    "an expiry beyond the calendar": ({"options": {"expires": -1e12}}, "not a number of seconds up to 31622400"),
    "a queue that is kombu's": ({"queue": "unacked"}, "queue is 'unacked', a name that the broker or Celery keeps"),
    "a queue that is kombu's lock": ({"queue": "unacked_mutex"}, "a name that the broker or Celery keeps for itself"),
    "a queue that is a table of bindings": ({"queue": "_kombu.binding.x"}, "a name that the broker or Celery keeps"),
    "a queue that is a result": ({"queue": "celery-task-meta-1"}, "a name that the broker or Celery keeps for itself"),
    "the exchange of remote control": (
        {"options": {"exchange": "celery.pidbox"}},
        "a name that the broker or Celery keeps",
    ),
    "the exchange of events": (
        {"options": {"exchange": "celeryev"}},
        "a name that the broker or Celery keeps for itself",
    ),
    "replies to a mailbox": ({"options": {"reply_to": "a\n.celery.pidbox"}}, "a name that the broker or Celery keeps"),
    "a line break in a name": ({"name": "a\nb"}, "name has the control character U+000A: take it out"),
    "an escape in a task": ({"task": "a\x1b[31m"}, "task has the control character U+001B: take it out"),
    "a C1 control in a queue": ({"queue": "a\x9b"}, "queue has the control character U+009B: take it out"),
    "a tab in a subject": ({"subject": "a\tb"}, "subject has the control character U+0009: take it out"),
    "a line break in a shadow": ({"options": {"shadow": "a\nb"}}, "options['shadow'] has the control character U+000A"),
    "a schedule of 251 characters": ({"schedule": "0 " * 126}, "longer than 250 characters"),
}


@pytest.mark.parametrize("probe", REFUSED)
def test_what_no_row_may_hold_is_refused_by_sql_naming_the_value(untouched: Session, probe: str) -> None:
    columns, word = REFUSED[probe]
    columns = {"name": "x", "task": "app.probe", **columns}
    values = [psycopg2.extras.Json(value) if isinstance(value, (dict, list)) else value for value in columns.values()]
    with acting_as(untouched, "author"):
        refused = untouched.refusal(
            f"insert into pgbeat.periodic_task ({', '.join(columns)}) values ({', '.join(['%s'] * len(columns))})",
            *values,
        )

    assert INVALID == refused.pgcode
    assert word in str(refused)


@pytest.mark.parametrize("subject", ["x" * 1001, "a\tb"])
def test_an_update_of_a_text_without_effect_is_refused_too(owner: Session, subject: str) -> None:
    with acting_as(owner, "author"):
        refused = owner.refusal("update pgbeat.periodic_task set subject = %s", subject)

    assert INVALID == refused.pgcode
    owner.rows("alter table pgbeat.periodic_task disable trigger user")
    owner.rows("update pgbeat.periodic_task set subject = %s", subject)
    owner.rows("alter table pgbeat.periodic_task enable trigger user")
    owner.rows("update pgbeat.periodic_task set queue = 'other'")  # what is there already hinders no other change


@pytest.mark.parametrize("probe", REFUSED)
def test_what_no_row_may_hold_is_refused_by_python_naming_the_value(probe: str) -> None:
    columns, word = REFUSED[probe]
    given: dict[str, Any] = {"name": "x", "task": "app.probe", "schedule": None, **columns}
    with pytest.raises((InvalidPeriodicTask, ValueError), match=re.escape(word)):
        declared(given)


def declared(given: dict[str, Any]) -> None:
    if any(isinstance(value, Raw) for value in given.values()):
        check_sendable(None, given.get("options", "{}"), given.get("args", "[]"), "{}")
    else:
        define(given.pop("name"), given.pop("task"), given.pop("schedule"), given, Settings(), "UTC")


def test_what_is_nested_a_hundred_levels_deep_and_has_three_hundred_and_nine_digits_is_taken(owner: Session) -> None:
    args, kwargs = [*nested(99), 10**309 - 1], {"a": nested(99), "b": "9" * 400}
    define("x", "app.probe", None, {"args": args, "kwargs": kwargs}, Settings(), "UTC")
    owner.insert("x", args=psycopg2.extras.Json(args), kwargs=psycopg2.extras.Json(kwargs))


@pytest.mark.parametrize("text", ["a\0b", {"a": "\0"}], ids=["in a name", "in an argument"])
def test_the_character_nul_is_refused(owner: Session, text: Any) -> None:
    name, kwargs = (text, {}) if isinstance(text, str) else ("x", text)
    with pytest.raises(InvalidPeriodicTask, match="NUL"):
        define(name, "app.probe", None, {"kwargs": kwargs}, Settings(), "UTC")
    if isinstance(text, dict):
        command = "insert into pgbeat.periodic_task (name, task, kwargs) values ('x', 'a', '{\"a\": \"\\u0000\"}')"
        assert "22P05" == owner.refusal(command).pgcode


HOSTILE = [
    "'; drop table pgbeat.periodic_task; --",
    '"; drop schema pgbeat cascade; --',
    "%s %(name)s {schema} {0}",
    "$$; select pg_sleep(9); $$",
    "\\'; \\x00",
    "snow ☃ and \U0001f4a3",
    "a" * 200,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_a_text_wherever_it_stands(owner: Session, text: str) -> None:
    with acting_as(owner, "author"):
        owner.rows(
            "select pgbeat.schedule(%s, %s, 'every 5m', queue => %s, subject => %s, kwargs => %s, options => %s)",
            text,
            text,
            text,
            text,
            psycopg2.extras.Json({text: text}),
            psycopg2.extras.Json({"headers": {text: text}, "routing_key": text}),
        )
        owner.rows("select pgbeat.pause(%s, %s)", text, text)
        owner.rows("select pgbeat.resume(%s)", text)
        job = owner.value("select pgbeat.trigger(%s)", text)
        in_the_way = owner.refusal("select pgbeat.trigger(%s)", text)
        unknown = owner.refusal("select pgbeat.pause(%s)", text[:-1] + "?")
    row = owner.task(text)

    assert (text, text, text, {text: text}) == (row["name"], row["task"], row["queue"], row["kwargs"])
    assert ("55006", "P0002") == (in_the_way.pgcode, unknown.pgcode)
    assert 1 == owner.value("select count(*) from pgbeat.active_job where id = %s", job)
    assert 2 == owner.value("select count(*) from pgbeat.periodic_task")


def test_the_revision_of_windows_begins_again_before_it_would_overflow(owner: Session) -> None:
    owner.rows("insert into pgbeat.blackout (name, windows) values ('night', %s)", ["0 0 * * * PT5H"])
    owner.rows("update pgbeat.periodic_task set blackout = array['window: night']")
    owner.rows("update pgbeat.periodic_task set windows_revision = 9223372036854775807")
    with acting_as(owner, "author"):
        owner.rows("update pgbeat.blackout set windows = %s", ["0 1 * * * PT5H"])

    assert 2**63 - 1 != owner.value("select windows_revision from pgbeat.periodic_task")


@pytest.mark.parametrize("role", ["author", "worker"])
@pytest.mark.parametrize(
    ("table", "columns"), [("dependency_to_check", "(downstream, tries)"), ("group_to_check", "(group_name, seen)")]
)
def test_an_author_and_a_worker_write_reasons_to_look_and_not_what_beats_note_in_them(
    owner: Session, role: str, table: str, columns: str
) -> None:
    values = "('a', 1)" if table == "dependency_to_check" else "('a', true)"
    with acting_as(owner, role):
        assert DENIED == owner.refusal(f"insert into pgbeat.{table} {columns} values {values}").pgcode
        owner.rows(f"insert into pgbeat.{table} ({columns.strip('()').partition(',')[0]}) values ('a')")


@pytest.mark.parametrize("column", ["group_paused = true", "windows_revision = 7"])
def test_an_author_writes_no_column_that_a_group_or_a_window_sets(owner: Session, column: str) -> None:
    with acting_as(owner, "author"):
        assert DENIED == owner.refusal(f"update pgbeat.periodic_task set {column}").pgcode


def test_an_author_pauses_a_group_and_changes_a_window_with_all_rows_that_name_it(owner: Session) -> None:
    owner.rows("insert into pgbeat.blackout (name, windows) values ('night', %s)", ["0 0 * * * PT5H"])
    owner.rows("update pgbeat.periodic_task set blackout = array['window: night'], group_name = 'reports'")
    with acting_as(owner, "author"):
        owner.rows("select pgbeat.pause_group('reports', 'month end')")
        owner.rows("update pgbeat.blackout set windows = %s", ["0 1 * * * PT5H"])

    row = owner.task("nightly")
    assert (True, 1) == (row["group_paused"], row["windows_revision"])
    assert [("group", "paused"), ("window", "changed")] == [
        (entry["kind"], entry["action"])
        for entry in owner.rows("select * from pgbeat.change where kind <> 'periodic_task' order by id")
    ][-2:]

    with acting_as(owner, "author"):
        owner.rows("select pgbeat.resume_group('reports')")
    assert not owner.task("nightly")["group_paused"]


# --- the commands of each role


WORDS = {
    "explain": ("explain", "nightly"),
    "job show": ("job", "show", str(UUID(int=7))),
    "top": ("top", "--once"),
    "work take": ("work", "take", str(UUID(int=7))),
    "work done": ("work", "done", str(UUID(int=7))),
    "work release": ("work", "release", str(UUID(int=7))),
}


def run_as(database: str, role: str, *words: str) -> Result:
    url = make_url(database).update_query_dict({"options": f"-c role=pgbeat_{role}"})
    return CliRunner().invoke(main, ["--url", url.render_as_string(hide_password=False), *words])


@pytest.mark.parametrize(
    ("role", "command"),
    [(role, one) for role in ("reader", "person") for one in NEEDS[role] if one != "web"],
)
def test_a_role_may_run_the_commands_that_need_it(
    owner: Session, migrated_database: str, role: str, command: str
) -> None:
    made = owner.value("select pgbeat.trigger('nightly')")
    owner.rows("update pgbeat.active_job set id = %s where id = %s", str(UUID(int=7)), made)
    words = WORDS.get(command, tuple(command.split()))
    for by in (role, "author"):
        done = run_as(migrated_database, by, *words)

        assert not re.search("denied|lacks a right|Usage:", done.output + done.stderr), (by, done.output)


@pytest.mark.parametrize(
    ("role", "words", "needed"),
    [
        ("reader", ("list", "--json"), "`list` needs a member of pgbeat_author"),
        ("reader", ("upcoming", "nightly"), "`upcoming` needs a member of pgbeat_author"),
        ("reader", ("show", "nightly"), "`show` needs a member of pgbeat_author"),
        ("reader", ("pause", "nightly"), "`pause` needs a member of pgbeat_author"),
        ("reader", ("work", "list"), "`work list` needs a member of pgbeat_person"),
        ("person", ("list",), "`list` needs a member of pgbeat_reader"),
        ("person", ("group", "list"), "`group list` needs a member of pgbeat_reader"),
    ],
)
@pytest.mark.usefixtures("owner")
def test_a_command_that_a_user_may_not_run_names_the_role(
    migrated_database: str, role: str, words: tuple[str, ...], needed: str
) -> None:
    done = run_as(migrated_database, role, *words)

    said = " ".join(done.stderr.split())
    assert (1, True, True) == (done.exit_code, "permission denied for" in said, needed in said), said
    assert "CONTEXT" not in said


def test_the_page_has_the_commands_of_each_role() -> None:
    page = (ROOM.parent / "docs" / "security.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `pgbeat_(\w+)` \| (`.*`) \|$", page, re.MULTILINE))

    assert {role: set(names) for role, names in NEEDS.items()} == {
        role: set(re.findall("`([^`]+)`", table[role])) for role in NEEDS
    }


@pytest.mark.parametrize("role", ["reader", "author", "worker"])
@pytest.mark.usefixtures("owner")
def test_the_doctor_advises_no_grant_to_a_user_that_has_another_role(migrated_database: str, role: str) -> None:
    findings = json.loads(run_as(migrated_database, role, "doctor", "--json").stdout)["findings"]
    (found,) = [one for one in findings if "grants" == one["check"]]

    assert "note" == found["severity"]
    assert f"The user 'pgbeat_{role}' is a member of pgbeat_{role}: not one for beats" in found["what"]
    assert "grant" not in found["mend"]


@pytest.mark.usefixtures("owner")
def test_the_doctor_names_the_checks_for_which_its_user_lacks_a_right(migrated_database: str) -> None:
    skipped = json.loads(run_as(migrated_database, "person", "doctor", "--json").stdout)["skipped"]

    assert "this user lacks a right: permission denied for table periodic_task" == skipped["zones"]


def test_the_roles_of_a_schema_that_is_not_there_are_refused_with_what_to_run_first(database: str) -> None:
    refused = Session(database).refusal(roles_script("pgbeat"))

    assert "the schema pgbeat is not there yet\nHINT:  Run celery-pgbeat migrate first" in str(refused)
