-- Read enabled periodic tasks as monitors want them: one by name, or the first so many by name.
select name, task, args::text, kwargs::text, queue, priority, options::text, sensitive, schedule, timezone,
    coalesce(anchor, start_at, schedule_set_at) as anchor, last_run_at, run_count
from {schema}.periodic_task
where enabled and (%(name)s::text is null or name = %(name)s::text)
order by name
limit %(limit)s
