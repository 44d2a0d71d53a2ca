-- Read enabled periodic tasks for monitors: one by name, or the first ones in name order.
select name, task, args::text, kwargs::text, queue, priority, options::text, sensitive, schedule, timezone,
    coalesce(anchor, start_at, schedule_set_at) as anchor, last_run_at, run_count
from {schema}.periodic_task
where enabled and (%(name)s::text is null or name = %(name)s::text)
order by name
limit %(limit)s
