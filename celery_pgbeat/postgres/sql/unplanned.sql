-- Read up to %(batch)s periodic tasks whose next run is still to be planned.
--
-- No mark is needed: two beats that plan one row reach the same answer, and the fence of plan.sql
-- lets one of them write it. Each beat starts at another place, so that they share a long list.
select name, schedule, timezone, coalesce(anchor, start_at, schedule_set_at) as anchor, dst, start_at, end_at,
    max_runs, run_count, revision, planned_from
from {schema}.periodic_task
where enabled and problem is null and planned_revision <> revision
order by name
limit %(batch)s
