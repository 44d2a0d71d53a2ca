-- Look through the next periodic tasks in the order of their next runs, and read those that the caller looks for.
--
-- As `look_through`, but along the index on next_run_at. Tasks without a next run, or that are paused, are not in it.
select task.*
from (
    select name, next_run_at from {schema}.periodic_task
    where {is_on} and next_run_at is not null
        and (%(after_at)s::timestamptz is null
            or next_run_at >= %(after_at)s::timestamptz
                and (next_run_at, name) > (%(after_at)s::timestamptz, %(after)s))
    order by next_run_at, name
    limit %(most)s
) as looked
cross join lateral (
    select name, task, schedule, timezone, dst, anchor, start_at, created_at, next_run_at, enabled, pause_reason,
        paused_by, group_name, kind, after, managed_by, problem, subject
    from {schema}.periodic_task as stored
    where stored.name = looked.name
        and (%(words)s::text is null or strpos(lower(stored.name), lower(%(words)s::text)) > 0)
        and (%(group_name)s::text is null or stored.group_name = %(group_name)s::text)
        and (%(task)s::text is null or stored.task = %(task)s::text)
        and (%(managed_by)s::text is null or stored.managed_by = %(managed_by)s::text)
    limit 1
) as task
order by looked.next_run_at, looked.name
limit %(limit)s
