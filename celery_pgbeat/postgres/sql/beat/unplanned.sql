-- Read up to %(batch)s periodic tasks whose next run is still to be planned.
--
-- No mark is needed: two beats that plan one row reach the same result, and the fence of plan.sql lets one of them
-- write it. The next read begins after the last name read, so that rows which are locked do not keep those behind them
-- from being planned.
select name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, dst, start_at, end_at,
    max_runs, run_count, {schema}.microseconds(jitter) as jitter_microseconds, blackout, blackout_action,
    case when windows_used is not null then {schema}.windows_of(windows_used)::text end as windows,
    case when next_run_at is null then planned_for end as held_back, revision, planned_from, judged_from,
    planned_for, last_run_at, planned_ahead, {schema}.now() as now
from {schema}.periodic_task
where {is_on} and planned_revision <> revision and name > %(after)s
order by name
limit %(batch)s
