-- Read the next runs of periodic tasks, and whether they are still to be planned.
select name, next_run_at, last_run_at, {is_on} and planned_revision <> revision as is_unplanned
from {schema}.periodic_task
where name = any (%(names)s::text[])
order by name
