-- Store the planned next runs (or the problems) of periodic tasks whose definition is still the one that was planned.
--
-- A row that was edited, paused and resumed, or planned by another beat meanwhile is left as it is. So is one with a
-- problem if the schema is newer than this package: a newer package may be able to read what this one cannot.
with planned as (
    select * from unnest(
        %(names)s::text[], %(revisions)s::bigint[], %(planned_froms)s::timestamptz[], %(next_run_ats)s::timestamptz[],
        %(planned_fors)s::timestamptz[], %(problems)s::text[], %(pickup_deadlines)s::float8[])
        as planned (name, revision, planned_from, next_run_at, planned_for, problem, pickup_deadline)
),
fenced as materialized (
    select planned.* from {schema}.periodic_task as task
    join planned on planned.name = task.name
    where task.name = any (%(names)s::text[])
        and task.revision = planned.revision
        and task.planned_from = planned.planned_from
        and task.planned_revision <> task.revision
        and (planned.problem is null or %(version)s >= (select max(version) from {schema}.schema_version))
    order by task.name
    for no key update of task skip locked
)
update {schema}.periodic_task as task
set planned_revision = fenced.revision,
    next_run_at = fenced.next_run_at,
    planned_for = fenced.planned_for,
    problem = fenced.problem,
    pickup_deadline = make_interval(secs => fenced.pickup_deadline),
    timezone = coalesce(task.timezone, %(timezone)s)
from fenced
where task.name = fenced.name and task.name = any (%(names)s::text[])
returning task.name, task.next_run_at, task.problem
