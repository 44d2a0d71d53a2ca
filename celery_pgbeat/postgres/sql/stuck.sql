-- Read what is stuck: rows that no beat decides, jobs that no beat sends or judges, rows that cannot be planned.
--
-- Something is stuck when the time at which a beat should have dealt with it is more than `patience` seconds ago. Each
-- kind comes with how many there are, one of them, and since when.
with late as (
    select name, next_run_at, marked_by, marked_at, lazy from {schema}.periodic_task
    where {is_on} and next_run_at < {schema}.now() - make_interval(secs => %(patience)s)
),
found (kind, name, since, detail) as (
    select case when lazy then 'late_lazy' else 'late' end, name, next_run_at, null::text from late
    where marked_at is null
    union all
    select 'late_marked', name, next_run_at, marked_by from late
    where marked_at is not null and not {schema}.is_marked(marked_at, make_interval(secs => %(patience)s))
    union all
    select 'unplanned', name, updated_at, null from {schema}.periodic_task
    where {is_on} and planned_revision <> revision
        and updated_at < {schema}.now() - make_interval(secs => %(patience)s)
    union all
    select 'ahead', name, greatest(last_run_at, planned_from), null from {schema}.periodic_task
    where {is_on} and next_run_at is not null
        and greatest(last_run_at, planned_from) > {schema}.now() + make_interval(secs => %(patience)s)
    union all
    select 'problem', name, null, problem from {schema}.periodic_task
    where problem is not null
    union all
    select 'unsent', periodic_task, created_at, null from {schema}.active_job
    where state = 'pending' and created_at < {schema}.now() - make_interval(secs => %(patience)s)
        and not {schema}.is_marked(marked_at, make_interval(secs => %(patience)s))
    union all
    select 'silent', periodic_task, busy_until, null from {schema}.active_job
    where busy_until < {schema}.now() - make_interval(secs => %(patience)s) and state not in ('pending', 'error')
    union all
    select 'lost_message', job.periodic_task, lost.noticed_at, null
    from {schema}.lost_message as lost
    join {schema}.active_job as job on job.id = lost.job and {is_still_lost}
    union all
    select 'undecided', periodic_task, busy_until, null from {schema}.active_job
    where state = 'error' and busy_until < {schema}.now() - make_interval(secs => %(patience)s)
    union all
    select 'endless', periodic_task, started_at, null from {schema}.active_job
    where state = 'running' and max_run_time is null and owner is null
        and started_at < {schema}.now() - interval '1 day'
    union all
    select 'undone', periodic_task, due_by, null from {schema}.active_job
    where state in ('created', 'running') and due_by < {schema}.now() - make_interval(secs => %(patience)s)
    union all
    select 'forgotten', periodic_task, created_at, null from {schema}.active_job as job
    where created_at < {schema}.now() - make_interval(secs => %(patience)s)
        and case waits_for
            when 'predecessor' then not exists (
                select from {schema}.active_job as other
                where other.periodic_task = job.periodic_task and other.waits_for is distinct from 'predecessor')
            when 'slot' then group_name in (select {schema}.groups_with_room())
        end
    union all
    select 'forgotten', oldest.periodic_task, oldest.created_at, null
    from (
        select periodic_task, created_at, scheduled_for from {schema}.active_job
        where waits_for = 'upstream' and created_at < {schema}.now() - make_interval(secs => %(patience)s)
        order by created_at
        limit 100  -- to read the ends of one takes a millisecond
    ) as oldest
    join {schema}.periodic_task as task on task.name = oldest.periodic_task
    cross join lateral {schema}.ends_for(task.after, task.after_condition, oldest.scheduled_for) as ends
    where ends.missing = '{}'
)
select kind, count(*) as number, (array_agg(name order by since, name))[1] as name, min(since) as since,
    (array_agg(detail order by since, name))[1] as detail
from found
group by kind
