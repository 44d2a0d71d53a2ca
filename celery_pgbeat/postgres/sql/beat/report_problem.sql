-- Write down why marked periodic tasks cannot be planned; they are not due again before their definition changes.
--
-- A row that another transaction locks is skipped: it is reported when its lease is over, unless its definition has
-- changed by then. If the schema is newer than this package, no row is reported: when the lease is over, a newer beat
-- may understand the row.
with reported as (
    select * from unnest(%(names)s::text[], %(marked_ats)s::timestamptz[], %(problems)s::text[])
        as reported (name, marked_at, problem)
),
fenced as materialized (
    select reported.* from {schema}.periodic_task as task
    join reported on reported.name = task.name
    where task.name = any (%(names)s::text[])
        and task.marked_by = %(beat)s
        and task.marked_at = reported.marked_at
        and %(version)s >= (select max(version) from {schema}.schema_version)
    order by task.name
    for no key update of task skip locked
)
update {schema}.periodic_task as task
set problem = fenced.problem, marked_by = null, marked_at = null, taken_over = false
from fenced
where task.name = fenced.name and task.name = any (%(names)s::text[])
returning task.name
