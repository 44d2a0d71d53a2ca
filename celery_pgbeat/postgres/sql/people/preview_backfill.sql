-- Read what decides which occurrences of a periodic task a backfill would submit, and how far back the history goes.
--
-- The function gets only the columns that it reads, not the whole row: a role that may not read arguments can run it
-- too.
select name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, dst, start_at, end_at,
    max_runs, run_count, {schema}.microseconds(jitter) as jitter_microseconds, blackout, blackout_action,
    null::text as windows, null::timestamptz as held_back, revision, planned_from,
    {schema}.undecided_from(jsonb_populate_record(null::{schema}.periodic_task, jsonb_build_object(
        'enabled', enabled, 'group_paused', group_paused, 'paused_until', paused_until, 'updated_at', updated_at,
        'schedule', schedule, 'problem', problem,
        'next_run_at', next_run_at, 'planned_for', planned_for, 'planned_from', planned_from, 'judged_from',
        judged_from,
        'revision', revision, 'planned_revision', planned_revision))) as undecided_from,
    {schema}.now() as now,
    (select min(created_at) from {schema}.finished_job) as history_since
from {schema}.periodic_task as stored
where name = %(name)s
