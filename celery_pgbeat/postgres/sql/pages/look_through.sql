-- Look through the next periodic tasks in name order, and read those that the caller looks for, as a list shows them.
--
-- However few there are, it reads no more than `most` of them, in the order of the primary key: `looked_until` says
-- where that ended. `words` alone is looked for in the names, which that index has; all other filters need the row. Of
-- the tasks with something overdue it knows the next 1,000.
select task.*
from (
    select name from {schema}.periodic_task
    where name > %(after)s
        and (%(group_name)s::text is null or group_name = %(group_name)s::text)
    order by name
    limit %(most)s
) as looked
cross join lateral (
    select name, task, schedule, timezone, dst, anchor, start_at, created_at, next_run_at, enabled, pause_reason,
        paused_by, group_name, kind, after, managed_by, problem, subject
    from {schema}.periodic_task as stored
    where stored.name = looked.name
        and (%(task)s::text is null or stored.task = %(task)s::text)
        and (%(managed_by)s::text is null or stored.managed_by = %(managed_by)s::text)
        and case %(state)s::text
            when 'on' then {is_on stored} and stored.next_run_at is not null
            when 'paused' then not stored.enabled or stored.group_paused
            when 'problem' then stored.problem is not null
            when 'overdue' then stored.name = any (array(
                select distinct name from {schema}.overdue where name > %(after)s order by name limit 1000))
            when 'active' then exists (
                select from {schema}.active_job as job where job.periodic_task = stored.name)
            when 'idle' then {is_on stored} and stored.next_run_at is null
            else true
        end
    limit 1
) as task
where %(words)s::text is null or strpos(lower(looked.name), lower(%(words)s::text)) > 0
order by looked.name
limit %(limit)s
