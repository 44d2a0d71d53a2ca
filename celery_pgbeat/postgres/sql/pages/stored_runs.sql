-- Read up to %(limit)s periodic tasks with the next run that a beat has planned, and what decides when it should be.
select name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, dst, start_at, end_at,
    max_runs, run_count, {schema}.microseconds(jitter) as jitter_microseconds, blackout, blackout_action,
    case when windows_used is not null then {schema}.windows_of(windows_used)::text end as windows,
    null::timestamptz as held_back, revision, planned_from, judged_from, planned_for, last_run_at, planned_ahead,
    {schema}.now() as now, next_run_at
from {schema}.periodic_task
where {is_on} and planned_for > {schema}.now() and name = any (array(select {schema}.to_replan(null, null)))
order by name
limit %(limit)s
