-- List the groups that a periodic task names, or that have settings or a pause, and count their jobs.
--
-- What is counted is read from indexes alone, each once.
with members as (
    select group_name as name, count(*) as tasks from {schema}.periodic_task
    where group_name is not null
    group by group_name
),
under_way as (
    select group_name as name, count(*) as active from {schema}.active_job
    where slot is not null
    group by group_name
),
queued as (
    select group_name as name, count(*) as waiting from {schema}.active_job
    where wait_reason = 'slot'
    group by group_name
)
select name, known.max_active, coalesce(known.ordered, false) as ordered, known.waits_for,
    coalesce(known.pause_on_failure, false) as pause_on_failure, known.rate_limit,
    coalesce(known.state, 'active') as state, coalesce(known.paused, false) as paused, known.pause_reason,
    coalesce(members.tasks, 0) as tasks,
    coalesce(under_way.active, 0) as active,
    coalesce(queued.waiting, 0) as waiting
from members
full join {schema}.task_group as known using (name)
left join under_way using (name)
left join queued using (name)
order by name
