-- Pause up to %(batch)s periodic tasks whose jobs have failed too often in a row; returns each with the reason.
--
-- Without a reason it returns those for which a pause was due and is not any more: resumed since, paused by a person,
-- changed or removed. A row that another transaction locks is skipped, and its pause stays due: no submit makes a job
-- of it meanwhile.
with failing as materialized (
    select state.name,
        state.failures_in_row || case when state.failures_in_row = 1 then ' failed job' else ' failed jobs in a row' end
            || ', the last at ' || {schema}.shown(state.last_failed_at) || ': ' || state.last_failed_job as reason
    from {schema}.periodic_task_state as state
    join {schema}.periodic_task as task on task.name = state.name
    where state.pause_due and task.enabled
        and state.failures_from = task.failures_from and state.failures_in_row >= task.pause_after_failures
    order by state.name
    limit %(batch)s
    for no key update of state, task skip locked
),
outdated as materialized (
    select state.name from {schema}.periodic_task_state as state
    where state.pause_due and not exists (
        select from {schema}.periodic_task as task
        where task.name = state.name and task.enabled
            and {schema}.pause_is_due(task.name, task.failures_from, task.pause_after_failures))
    order by state.name
    limit %(batch)s
    for no key update skip locked
),
paused as (
    update {schema}.periodic_task as task
    set enabled = false, pause_reason = failing.reason, paused_by = 'pgbeat', paused_until = null
    from failing
    where task.name = failing.name and task.name = any (array(select name from failing))
),
cleared as (
    update {schema}.periodic_task_state
    set pause_due = false
    where name = any (array(select name from failing) || array(select name from outdated))
)
select name, reason from failing
union all
select name, null from outdated where name not in (select name from failing)
