-- Read what decides the coming runs of one periodic task.
select name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, schedule_set_at, dst,
    start_at, end_at, max_runs, run_count, {schema}.microseconds(jitter) as jitter_microseconds,
    blackout, blackout_action,
    case when windows_used is not null then {schema}.windows_of(windows_used)::text end as windows,
    case when planned_revision <> revision and next_run_at is null then planned_for end as held_back, revision,
    planned_from, judged_from, enabled and not group_paused as enabled, problem, planned_revision, next_run_at,
    planned_for, last_run_at, planned_ahead, {schema}.now() as now, after is not null as runs_after_others
from {schema}.periodic_task
where name = %(name)s
