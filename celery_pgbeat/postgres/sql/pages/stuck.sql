-- Read what is wrong by its code: all that is overdue, rows that cannot be planned, jobs that nothing keeps waiting.
--
-- Each code comes with how many there are, one of them, and since when.
with found (code, name, since, detail) as (
    select code, name, due_at, null::text from {schema}.overdue
    union all
    select 'ahead', name, greatest(last_run_at, planned_from), null from {schema}.periodic_task
    where {is_on} and next_run_at is not null
        and greatest(last_run_at, planned_from) > {schema}.now() + {schema}.patience(mark_lease)
    union all
    select 'problem', name, null, problem from {schema}.periodic_task
    where problem is not null
    union all
    select 'endless', periodic_task, started_at, null from {schema}.active_job
    where state = 'running' and max_run_time is null and owner is null
        and started_at < {schema}.now() - interval '1 day'
    union all
    select 'forgotten', periodic_task, created_at, null from {schema}.active_job as job
    where created_at < {schema}.now() - {schema}.patience(mark_lease) and wait_reason = 'predecessor'
        and not exists (
            select from {schema}.active_job as other
            where other.periodic_task = job.periodic_task and other.wait_reason is distinct from 'predecessor')
    union all
    select 'forgotten', oldest.periodic_task, oldest.created_at, null
    from (
        select periodic_task, created_at, scheduled_for from {schema}.active_job
        where wait_reason = 'upstream' and created_at < {schema}.now() - {schema}.patience(mark_lease)
        order by created_at
        limit 100  -- to read the ends of one takes a millisecond
    ) as oldest
    join {schema}.periodic_task as task on task.name = oldest.periodic_task
    cross join lateral {schema}.ends_for(task.after, task.after_condition, oldest.scheduled_for) as ends
    where ends.missing = '{}'
)
select code, count(*) as number, (array_agg(name order by since, name))[1] as name, min(since) as since,
    (array_agg(detail order by since, name))[1] as detail
from found
group by code
