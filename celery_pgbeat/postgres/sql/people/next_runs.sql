-- Read the next runs of periodic tasks that are to keep them, and lock the rows until they are declared.
select name, next_run_at
from {schema}.periodic_task
where name = any (%(names)s::text[]) and next_run_at is not null
order by name
for no key update
