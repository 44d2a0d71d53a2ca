"""P11: every statement of the product is quick on an empty schema and beside 100,000 rows, in anybody's session.

The session is a plain client's: it has JIT where the server has it, and none of the settings of our own connections. A
statement that has to read much is named, with the reason. Each runs in a transaction that is rolled back.
"""

from __future__ import annotations

import re
import time
from contextlib import closing
from typing import Any

import pytest

from celery_pgbeat.postgres.statements import files, statement
from tests.harness.cost import slowness
from tests.harness.session import Session

ROWS = 100_000
QUICK = 0.05  # seconds, on an ordinary machine
TRIES = 3  # the quickest counts: other processes may take the machine for a moment
MORE_TRIES = 20  # of one that was too slow: they may take it for longer

# The values of parameters, by name: one job, one row and one beat of those in the tables.
JOB = "00000000-0000-0000-0000-000000000002"
PENDING = "00000000-0000-0000-0000-000000000004"
FAILED = "10000000-0000-0000-0000-000000000005"
OPEN = "10000000-0000-0000-0000-000000000007"  # a job for people that may be picked up
SENT = "10000000-0000-0000-0000-000000000009"  # one of a worker, that was sent
HELD = "10000000-0000-0000-0000-000000000008"  # one that somebody has
ASKING = "10000000-0000-0000-0000-000000000006"  # a job that waits for a decision
BACKFILL = "00000000-0000-0000-0000-000000000001"
NOW = "2026-12-07 12:00+00"
_TOLD: tuple[tuple[str, Any], ...] = (
    ("name periodic_task", "row-7"),
    ("names lazy_names running_first taking_over", ["row-7"]),
    ("patterns", ["row-7%"]),
    ("begin", "row-7"),
    ("count least", 1),
    ("job id token lowest highest", JOB),
    ("jobs tokens ids there", [JOB]),
    ("backfill", BACKFILL),
    ("beat node", "beat-a"),
    ("worker", "worker-1"),
    ("workers beats nodes", ["worker-1"]),
    ("role", "beat"),
    ("hostname hash version by error problem", "x"),
    ("managed_by manager", "code:shop"),
    ("app", "shop"),
    ("owner who", "ann"),
    ("targets", ["finance"]),
    ("outcome", "succeeded"),
    ("note", "signed"),
    ("schema", "pgbeat"),
    ("broker_problem", None),
    ("closed_queues closed_tasks", ["none"]),
    ("timezone zone", "UTC"),
    ("schedule", "every 2h"),
    ("reason", "not_allowed"),
    ("mode", "missing"),
    ("acts_as", "send"),
    ("full_acts_as", "full"),
    ("states", ["succeeded"]),
    ("ordered pause_on_failure", True),
    ("waits_for", None),
    ("rate_limit", "5/s"),
    ("defaults delays changes", "{}"),
    ("definitions", "[]"),
    ("lease dead_after on_time seconds patience delay pickup_deadline step", 15.0),
    ("pickup_deadlines", [60.0]),
    ("retention", 7 * 86_400.0),
    ("batch most most_buffered", 1000),
    ("limit", 100),
    ("max_active", 3),
    ("revision total", 1),
    ("revisions", [1]),
    ("run attempt fresh pid skipped", 0),
    ("runs attempts", [0]),
    ("after", "row-5"),
    ("others", ["pgbeat_reader"]),
    ("since", "2026-01-01 00:00+00"),
    ("until", "2026-01-02 00:00+00"),
    ("now reached marked_at", NOW),
    ("marked_ats due_ats scheduled_fors next_run_ats planned_fors replaced", [NOW]),
    ("planned_froms untils instants", [NOW]),
    ("may_judge resending starting force resend tracking", True),
    ("late shadow", False),
    ("but decisions", []),
    ("problems errors reasons tasks", [None]),
    ("args kwargs", None),
    (
        "after_at anchor before before_at enabled group_name next_at pattern queue state task with_problem words zone",
        None,
    ),
    ("minutes", 60),
    ("who", "ann"),
    ("change", None),
    ("keep", 365 * 86_400.0),
)
TOLD = {name: value for names, value in _TOLD for name in names.split()}
# Parameters for which a statement needs another value.
_OTHERWISE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("announce_node", {"tracking": False, "mode": "sends"}),
    ("changed_jobs", {"name": None, "since": NOW}),
    ("retry_job", {"id": FAILED}),
    ("fail_job", {"id": ASKING}),
    ("pick_up cancel_job", {"id": OPEN}),
    ("resend_job", {"id": SENT}),
    ("release finish_work", {"id": HELD}),
    ("cancel_backfill", {"id": BACKFILL}),
    ("end_unstarted", {"state": "revoked"}),
    ("finish", {"state": "succeeded"}),
    ("page_of_jobs", {"states": None}),
    ("page_of_tasks page_of_open_tasks look_through", {"managed_by": None}),
    ("lanes", {"since": NOW}),
    ("sent_or_shadowed", {"since": NOW, "until": "2100-01-01 00:00+00"}),
    ("planned_minutes", {"until": "2100-01-01 00:00+00"}),
    ("raise_alerts", {"after": 60.0, "step": 1}),
    ("backfill_history", {"after": NOW}),
    ("upcoming", {"after": None}),
    ("pause snooze", {"until": None}),
    ("write_groups", {"groups": '[{"name": "reports", "max_active": 2}]'}),
    ("write_windows", {"windows": '[{"name": "night", "windows": ["cron: 0 0 * * * PT5H"]}]'}),
    ("delay_jobs", {"jobs": [PENDING], "delays": [30.0], "errors": ["full"]}),
    ("confirm refuse give_back postpone_jobs skip finish_eager", {"jobs": [PENDING]}),
    ("trigger_jobs", {"jobs": '[{"name": "row-7", "args": [7]}]'}),
    ("update", {"changes": '{"queue": "other"}'}),
    ("limit_group pause_group finish_group", {"name": "g"}),
    ("define_group", {"name": "g", "max_active": 1}),
    ("resume_group", {"name": "g", "retry": False}),
    ("check_after", {"later": False}),
    ("order_groups", {"groups": '[{"name": "g1", "waits_for": ["g2"]}]'}),
    ("end_backfill plan report_problem", {"version": 1}),
    ("changes", {"before": 2**63 - 1, "kind": None}),
)
OTHERWISE = {name: told for names, told in _OTHERWISE for name in names.split()}
# Statements of people and programs, beside those in the package.
BESIDES = {
    "the view status, a page": "select * from pgbeat.status order by name limit 50",
    "the view status, a row": "select * from pgbeat.status where name = 'row-7'",
    "the view overdue": "select * from pgbeat.overdue",
    "the view upcoming": "select * from pgbeat.upcoming limit 100",
    "the view job, the newest": "select * from pgbeat.job order by created_at desc limit 100",
    "the view job, of a row": "select * from pgbeat.job where periodic_task = 'row-7'",
    "waited_for": "select pgbeat.waited_for()",
    "pause_is_due": "select pgbeat.pause_is_due('row-7', now(), 3)",
    "count_end": f"select pgbeat.count_end('row-7', '{JOB}', 'failed')",
    "a row inserted": "insert into pgbeat.periodic_task (name, task, schedule) values ('new', 'app.probe', 'every 1h')",
    "a row changed": "update pgbeat.periodic_task set schedule = 'every 2h' where name = 'row-7'",
    "a row removed": "delete from pgbeat.periodic_task where name = 'row-7'",
    "a window": "insert into pgbeat.blackout (name, windows) values ('night', array['0 22 * * * PT8H'])",
}
# Statements that may take longer beside so many rows, and why.
_READS_MUCH = (
    ("lower_tracking", "ends every job that is at the broker, once, when the workers stop reporting"),
    ("pause_group resume_group finish_group", "writes every row of the group"),
    ("recheck_downstream", "writes a turn for each row that comes after others, once an hour"),
    ("recheck_groups", "looks into every group in which a job waits, once an hour"),
    ("recheck_future_marks", "reads every job that is not final, when a beat starts or sees the clock go back"),
    ("read_gauges", "counts the jobs that are not final, once for each scrape"),
    ("graph", "reads the state of every row that takes part, for a person"),
    ("nodes activity longest_running changed_jobs", "reads every job that is not final, for a person"),
    ("names_meant", "reads every row, for a person"),
    ("overdue latest_due health", "as the view"),
    ("starts_of_worker", "reads every job that is not final, once, when a worker ends"),
    ("sent_or_shadowed", "returns every job of the time range, for a person who compares two schedulers"),
    ("names_managed_by", "reads the rows in name order, a page at a time, for an import that takes over"),
    ("recent_minutes", "reads up to a thousand jobs of each of sixty minutes, for a person: some 40 ms here"),
    (
        "stuck longest_waits tasks_in_use calls_in_use routes_in_use zones_in_use due_together stored_runs",
        "reads every row, for `doctor`",
    ),
    ("replan to_replan", "reads every row, for a person or `doctor`, after a change of the zone tables"),
)
READS_MUCH = {
    "the view overdue",
    "the view job, the newest",  # as nodes: no index follows the creation of jobs that are not final
    *(name for names, _ in _READS_MUCH for name in names.split()),
}

# Only our own connections execute these, for a person, and they switch JIT off (postgres/engine.py).
MAY_COMPILE = {"calls_in_use", "changed_jobs", "stuck"}

NAMES = list(files())


def parameters(name: str) -> dict[str, Any]:
    """Return the values of a statement's parameters."""
    wanted = re.findall(r"%\((\w+)\)s", statement(name, "pgbeat"))
    told = TOLD | OTHERWISE.get(name, {})
    return {one: told[one] for one in wanted}


def fill(session: Session) -> None:
    """Make 100,000 rows with their jobs and their history, past the triggers, beside the row that is there."""
    for text in (
        "set session_replication_role = replica",
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at, planned_for, planned_revision, revision, "
        "group_name, managed_by, declared) "
        "select 'row-' || n, 'app.probe', '@hourly', at, at, 1, 1, case when n % 20 = 0 then 'g' end, "
        "case when n <= 50 then 'code:shop' else 'sql' end, case when n <= 50 then '{}'::jsonb end "
        f"from generate_series(1, {ROWS}) n, lateral (select pgbeat.now() + (n - 10) * interval '1 s' as at) as due "
        "where n <> 7",
        "update pgbeat.periodic_task set marked_by = 'beat-a', marked_at = pgbeat.now(), mark_lease = '15 s' "
        "where name in ('row-1', 'row-2')",
        "insert into pgbeat.periodic_task_state (name, failures_in_row, last_started_at) "
        f"select 'row-' || n, n % 3, pgbeat.now() from generate_series(1, {ROWS}) n",
        "insert into pgbeat.task_group (name, max_active) select 'g' || n, 10 from generate_series(1, 1000) n "
        "union all select 'g', 10",
        "insert into pgbeat.group_to_check (group_name) select 'g'",
        "update pgbeat.periodic_task set after = array['row-62'] where name in ('row-60', 'row-61')",
        "update pgbeat.periodic_task set schedule = null, next_run_at = null where name = 'row-61'",
        "insert into pgbeat.dependency (upstream, downstream) "
        f"select 'row-' || n + 1, 'row-' || n from generate_series(100, {ROWS} - 1) n "
        "union all values ('row-62', 'row-60'), ('row-62', 'row-61')",
        "insert into pgbeat.dependency_to_check (upstream) select 'row-62'",
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until, check_at, wait_reason, group_name, slot, token, worker, "
        "marked_by, marked_at, mark_lease, started_at) "
        "select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'row-' || n, pgbeat.now(), 'schedule', "
        "state, false, 'app.probe', '{\"args\": [], \"kwargs\": {}, \"options\": {}}', 'give_up', "
        "case when n % 1000 = 2 then 'result' else 'full' end, '1 hour', "
        "case when state = 'buffered' then 'infinity' else pgbeat.now() + interval '1 hour' end, "
        "case when state = 'buffered' then 'infinity' else pgbeat.now() + interval '1 hour' end, "
        "case when n % 20 = 0 then 'slot' when state = 'buffered' then 'predecessor' end, "
        "case when n % 20 = 0 then 'g' end, case when n = 40 then 1 end, "
        "case when state = 'running' then gen_random_uuid() end, case when state = 'running' then 'worker-1' end, "
        "case when state = 'pending' then 'beat-a' end, case when state = 'pending' then pgbeat.now() end, "
        "case when state = 'pending' then interval '15 s' end, case when state = 'running' then pgbeat.now() end "
        f"from generate_series(1, {ROWS}) n, lateral (select case when n % 20 = 0 or n % 20 = 1 then 'buffered' "
        "when n in (3, 4) then 'pending' when n % 2 = 0 then 'running' else 'sent' end as state) as stands",
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at, sent_at, started_at, worker) "
        "select gen_random_uuid(), 'row-' || n, pgbeat.now(), 'schedule', "
        "case when n % 50 = 0 then 'failed' else 'succeeded' end, 'app.probe', pgbeat.now() - n * interval '10 ms', "
        "pgbeat.now() - n * interval '10 ms', pgbeat.now(), pgbeat.now(), 'worker-1' "
        f"from generate_series(1, {ROWS}) n",
        "insert into pgbeat.node (id, role, hostname, pid, version, tracking) "
        "select 'worker-' || n, 'worker', 'x', n, '1', true from generate_series(1, 20) n "
        "union all select 'beat-a', 'beat', 'x', 0, '1', false",
        "insert into pgbeat.change (at, who, role, kind, name, action, revision, before, columns) "
        "select pgbeat.now(), 'ann', 'ann', 'periodic_task', 'row-' || n % 1000, 'changed', n, '{}', '{queue}' "
        f"from generate_series(1, {ROWS}) n",
        "set session_replication_role = origin",
        "vacuum analyze",
    ):
        session.rows(text)


def texts(session: Session) -> dict[str, str]:
    """Return the texts of all statements, with their values."""
    with session.connection.cursor() as cursor:
        said = {name: cursor.mogrify(statement(name, "pgbeat"), parameters(name)).decode() for name in NAMES}
    return said | BESIDES


def taken(session: Session, text: str) -> float:
    """Return how many seconds a statement takes at its quickest on an ordinary machine.

    If that seems too long, it is tried more often, each time beside a measure of what the machine has left for us.
    """
    seconds: list[float] = []
    while len(seconds) < TRIES or (len(seconds) < MORE_TRIES and min(seconds) > QUICK):
        share = slowness() if len(seconds) >= TRIES else 1.0
        session.rows("begin")
        begun = time.perf_counter()
        session.rows(text)
        seconds.append((time.perf_counter() - begun) / share)
        session.rows("rollback")
    return min(seconds)


def compiles(session: Session, text: str) -> bool:
    """Tell whether Postgres compiles a statement to run it; functions it runs have their own tests."""
    session.rows("begin")
    plan = session.rows(f"explain (analyze) {text}")
    session.rows("rollback")
    return any("JIT" in line["QUERY PLAN"] for line in plan)


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "100,000 rows"])
def test_p11_every_statement_is_quick_in_a_session_of_any_client(migrated_database: str, filled: bool) -> None:
    session = Session(migrated_database)
    with closing(session.connection):
        session.insert("row-7", schedule="@hourly", group_name="g")
        backfill = "insert into pgbeat.backfill (id, periodic_task, since, until) values (%s, 'row-7', %s, %s)"
        session.rows(backfill, BACKFILL, NOW, NOW)
        failed = (
            "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
            "finished_at) select %s, name, pgbeat.now(), 'manual', 'failed', task, pgbeat.now(), pgbeat.now() "
            "from pgbeat.periodic_task"
        )
        session.rows(failed, FAILED)
        asking = (
            "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
            "on_lost, on_error, tracking, pickup_deadline, busy_until, check_at) select %s, 'asks', pgbeat.now(), "
            "'manual', 'error', true, 't', '{}', 'give_up', 'ask', 'full', '1 hour', pgbeat.now(), 'infinity'"
        )
        session.rows(asking, ASKING)
        sent = (
            "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
            "on_lost, tracking, pickup_deadline, busy_until) select %s, 'waits', pgbeat.now(), 'manual', 'sent', true, "
            "'t', '{}', 'give_up', 'full', '1 hour', pgbeat.now() + interval '1 hour'"
        )
        session.rows(sent, SENT)
        work = (
            "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, message, kind, "
            "on_lost, tracking, pickup_deadline, busy_until) select %s, 'work', pgbeat.now(), 'manual', 'pending', "
            "false, '{}', 'human', 'give_up', 'full', '1 hour', 'infinity'"
        )
        session.rows(work, OPEN)
        session.rows(work, HELD)
        session.rows("select pgbeat.pick_up(%s, 'ann')", HELD)
        if filled:
            fill(session)
        said = texts(session)
        seconds = {name: taken(session, text) for name, text in said.items() if not (filled and name in READS_MUCH)}
        compiled = [name for name, text in said.items() if compiles(session, text)]

    assert {} == {name: took for name, took in seconds.items() if took > QUICK}
    assert [] == [name for name in compiled if not (filled and name in MAY_COMPILE)]
