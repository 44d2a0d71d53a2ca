-- Write down why marked periodic tasks cannot be planned; they are not due again before their definition changes.
with reported as (
    select * from unnest(%(names)s::text[], %(marked_ats)s::timestamptz[], %(problems)s::text[])
        as reported (name, marked_at, problem)
)
update {schema}.periodic_task as task
set problem = reported.problem, marked_by = null, marked_at = null, taken_over = false
from reported
where task.name = reported.name and task.name = any (%(names)s::text[])
    and task.marked_by = %(beat)s and task.marked_at = reported.marked_at
returning task.name
