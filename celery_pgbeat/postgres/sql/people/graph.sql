-- Read the periodic tasks that take part in a dependency, or one of them with everything upstream and downstream of it.
--
-- Given a name, it follows the dependencies from there in both directions, and also returns a task that takes part in
-- none. The state is that of the view status, which takes up to a millisecond for each row. Most rows only wait, and
-- have no job: for these it is said here, and a test compares the two.
with recursive upstream as (
    select %(name)s::text as name where %(name)s::text is not null
    union
    select known.upstream from upstream join {schema}.dependency as known on known.downstream = upstream.name
),
downstream as (
    select %(name)s::text as name where %(name)s::text is not null
    union
    select known.downstream from downstream join {schema}.dependency as known on known.upstream = downstream.name
),
meant as (
    select name from upstream
    union
    select name from downstream
    union
    select known.upstream from {schema}.dependency as known where %(name)s::text is null
    union
    select known.downstream from {schema}.dependency as known where %(name)s::text is null
)
select name, task.schedule, task.after, task.after_condition,
    coalesce(
        case
            when {is_on task} and task.group_name is null and task.planned_revision = task.revision
                and greatest(task.last_run_at, task.planned_from) <= {schema}.now()
                and not exists (select from {schema}.active_job as job where job.periodic_task = name)
            then case
                when task.next_run_at > {schema}.now() then 'waiting'
                when task.next_run_at is null and task.schedule is null and task.after is not null
                then 'after other tasks'
            end
        end,
        (select state from {schema}.status where status.name = task.name)) as state
from meant
join {schema}.periodic_task as task using (name)
order by name
