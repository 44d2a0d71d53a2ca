-- Read what is stuck: rows that no beat decides, jobs that no beat sends or judges, rows that cannot be planned.
--
-- Everything has `patience` seconds beyond the time at which a beat should have dealt with it. Each kind comes with how
-- many there are, one of them, and since when.
with late as (
    select name, next_run_at, marked_by, marked_at, lazy from {schema}.periodic_task
    where {is_on} and next_run_at < {schema}.now() - make_interval(secs => %(patience)s)
),
unplanned as (
    select name, updated_at from {schema}.periodic_task
    where {is_on} and planned_revision <> revision
        and updated_at < {schema}.now() - make_interval(secs => %(patience)s)
),
ahead as (
    select name, greatest(last_run_at, planned_from) as until from {schema}.periodic_task
    where {is_on} and next_run_at is not null
        and greatest(last_run_at, planned_from) > {schema}.now() + make_interval(secs => %(patience)s)
),
problems as (
    select name, problem from {schema}.periodic_task
    where problem is not null
),
unsent as (
    select periodic_task, created_at from {schema}.active_job
    where state = 'pending' and created_at < {schema}.now() - make_interval(secs => %(patience)s)
        and (marked_at is null
            or marked_at < {schema}.now() - make_interval(secs => %(patience)s)
            or marked_at > {schema}.now() + make_interval(secs => %(patience)s))
),
silent as (
    select periodic_task, busy_until from {schema}.active_job
    where busy_until < {schema}.now() - make_interval(secs => %(patience)s) and state <> 'pending'
),
endless as (
    select periodic_task, started_at from {schema}.active_job
    where state = 'running' and max_run_time is null and started_at < {schema}.now() - interval '1 day'
),
forgotten as (
    select periodic_task, created_at from {schema}.active_job as job
    where waits_for = 'predecessor' and created_at < {schema}.now() - make_interval(secs => %(patience)s)
        and not exists (
            select from {schema}.active_job as other
            where other.periodic_task = job.periodic_task and other.waits_for is distinct from 'predecessor')
    union all
    select periodic_task, created_at from {schema}.active_job as job
    where waits_for = 'slot' and created_at < {schema}.now() - make_interval(secs => %(patience)s)
        and group_name in (select {schema}.groups_with_room())
)
select 'late' as kind, count(*) as number, (array_agg(name order by next_run_at))[1] as name, min(next_run_at) as since,
    null::text as detail
from late where not lazy and marked_at is null
having count(*) > 0
union all
select 'late_lazy', count(*), (array_agg(name order by next_run_at))[1], min(next_run_at), null
from late where lazy and marked_at is null
having count(*) > 0
union all
select 'late_marked', count(*), (array_agg(name order by next_run_at))[1], min(next_run_at), min(marked_by)
from late
where marked_at not between {schema}.now() - make_interval(secs => %(patience)s)
                        and {schema}.now() + make_interval(secs => %(patience)s)
having count(*) > 0
union all
select 'unplanned', count(*), (select name from unplanned order by updated_at, name limit 1), min(updated_at), null
from unplanned
having count(*) > 0
union all
select 'ahead', count(*), (array_agg(name order by until, name))[1], min(until), null from ahead
having count(*) > 0
union all
select 'problem', count(*), min(name), null, (array_agg(problem order by name))[1] from problems
having count(*) > 0
union all
select 'unsent', count(*), (array_agg(periodic_task order by created_at))[1], min(created_at), null from unsent
having count(*) > 0
union all
select 'silent', count(*), (array_agg(periodic_task order by busy_until))[1], min(busy_until), null from silent
having count(*) > 0
union all
select 'endless', count(*), (array_agg(periodic_task order by started_at))[1], min(started_at), null from endless
having count(*) > 0
union all
select 'forgotten', count(*), (array_agg(periodic_task order by created_at))[1], min(created_at), null from forgotten
having count(*) > 0
