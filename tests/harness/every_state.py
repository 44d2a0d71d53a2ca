"""Rows with names of 60 characters in every state, and jobs, nodes, groups and backfills with long texts."""

from __future__ import annotations

from tests.harness.session import Session

LONG = "{:-<60}".format
ERROR = "ConnectionResetError(104, 'Connection reset by peer') while talking to https://shop.example.com/api/v2/orders"
FINAL = ("succeeded", "failed", "revoked", "expired", "lost", "skipped", "untracked")
ACTIVE = ("pending", "sent", "running", "retrying", "buffered")
NODE = (
    "worker-5c9d8b7f4-x2x9z.shop.svc.cluster.local:c8e6a1f0-1111-2222-3333-444455556666:4026531836:{}:271807:49684fc1"
)


def fill(session: Session) -> None:
    """Put them in, past the triggers."""
    session.rows("set session_replication_role = replica")
    _fill_tasks(session)
    _fill_jobs(session)
    for number, (role, silent) in enumerate([("beat", "1 s"), ("worker", "2 s"), ("worker", "3 hours")]):
        session.rows(
            "insert into pgbeat.node (id, role, hostname, pid, version, tracking, started_at, last_seen_at) "
            "values (%s, %s, split_part(%s, ':', 1), %s, '0.1.0', %s, now() - interval '2 d', now() - %s::interval)",
            NODE.format(number),
            role,
            NODE,
            24865 + number,
            role == "worker",
            silent,
        )
    session.rows(
        "insert into pgbeat.task_group (name, paused, pause_reason, max_active) "
        "values (%s, true, 'stocktaking: the warehouse counts until Monday, ask Anna before you resume it', 2)",
        LONG("group"),
    )
    session.rows(
        "insert into pgbeat.backfill (periodic_task, since, until, mode, max_active, state, total, submitted, "
        "skipped, problem, finished_at) select %s, now() - interval '30 d', now() - interval '1 d', 'missing', 3, "
        "state, 31, 5, 2, case when state = 'cancelled' then 'the row was removed while it ran' end, "
        "case when state <> 'running' then now() end "
        "from unnest(array['running', 'finished', 'cancelled']) as state",
        LONG("backfilled"),
    )
    session.rows("set session_replication_role = default")


def _fill_tasks(session: Session) -> None:
    planned = "planned_revision = revision"
    states = {
        "waiting": "next_run_at = now() + interval '4 min 30 s'",
        "overdue": "next_run_at = now() - interval '3 h'",
        "due": "next_run_at = now() - interval '3 s'",
        "paused": "enabled = false, pause_reason = 'stocktaking'",
        "paused-until": "enabled = false, paused_until = now() + interval '3 d'",
        "group-paused": f"group_paused = true, group_name = '{LONG('group')}', next_run_at = now() + interval '2 h'",
        "problem": "problem = 'no beat can read its schedule: the zone Mars/Olympus_Mons is not in the tz database'",
        "to-be-planned": "next_run_at = null, planned_revision = 0",
        "on-demand": "schedule = null, next_run_at = null",
        "finished": "next_run_at = null",
        "ahead": "next_run_at = now() + interval '1 d', last_run_at = now() + interval '5 h'",
        **{f"job-{state}": "next_run_at = now() + interval '40 d'" for state in ACTIVE},
        "backfilled": "next_run_at = now() + interval '1 h'",
    }
    for state, columns in states.items():
        session.insert(
            LONG(state),
            task="shop.reports.nightly.everything_at_once",
            schedule="*/15 8-18 * * mon-fri",
            managed_by="code:shop",
        )
        session.rows(
            f"update pgbeat.periodic_task set {planned}, timezone = 'Europe/Berlin', planned_for = next_run_at "
            "where name = %s",
            LONG(state),
        )
        session.rows(f"update pgbeat.periodic_task set {columns} where name = %s", LONG(state))
    session.insert("short", task="t", schedule="every 1h", next_run_at="2100-01-01 00:00+00")


def _fill_jobs(session: Session) -> None:
    for state in FINAL:
        session.rows(
            "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, reason, task, queue, "
            "created_at, sent_at, started_at, finished_at, error, worker, beat, attempt, sends) "
            "values (gen_random_uuid(), %s, now() - interval '2 h', 'schedule', %s, %s, 'shop.reports.nightly', "
            "'slow', now() - interval '2 h', now(), case when %s in ('succeeded', 'failed') "
            "then now() - interval '119 min' end, now() - interval '1 h', %s, %s, %s, 0, 1)",
            LONG("waiting"),
            state,
            "superseded" if state == "skipped" else None,
            state,
            ERROR if state in ("failed", "lost") else None,
            NODE.format(24866),
            NODE.format(24865),
        )
    for state in ACTIVE:
        session.rows(
            "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
            "on_lost, tracking, pickup_deadline, busy_until, check_at, error, worker, beat, started_at, wait_reason) "
            "values (gen_random_uuid(), %s, now() - interval '5 min', 'manual', %s, false, 'shop.reports.nightly', "
            "'{}', 'give_up', 'full', '1 h', now() + interval '1 h', now() + interval '1 h', %s, %s, %s, "
            "case when %s in ('running', 'retrying') then now() - interval '290 s' end, "
            "case when %s = 'buffered' then 'predecessor' end)",
            LONG(f"job-{state}"),
            state,
            ERROR if state == "retrying" else None,
            NODE.format(24866) if state in ("running", "retrying") else None,
            NODE.format(24865),
            state,
            state,
        )
