-- Store the planned next runs (or the problems) of periodic tasks whose definition is still the one that was planned.
--
-- A row that was edited, paused and resumed, planned or decided by another beat meanwhile is left as it is. So is
-- one with a problem if the schema is newer than this package: a newer one may be able to read what this one cannot.
--
-- A row that is planned again (`replan`) may be due, and marked. Its mark is taken off, so that the submit under way
-- changes nothing. With a problem it keeps the next run that it had, for when it can be planned.
with planned as (
    select * from unnest(
        %(names)s::text[], %(revisions)s::bigint[], %(planned_froms)s::timestamptz[], %(next_run_ats)s::timestamptz[],
        %(planned_fors)s::timestamptz[], %(problems)s::text[], %(pickup_deadlines)s::float8[],
        %(replaced)s::timestamptz[])
        as planned (name, revision, planned_from, next_run_at, planned_for, problem, pickup_deadline, replaced)
),
fenced as materialized (
    select planned.* from {schema}.periodic_task as task
    join planned on planned.name = task.name
    where task.name = any (%(names)s::text[])
        and task.revision = planned.revision
        and task.planned_from = planned.planned_from
        and task.planned_revision <> task.revision
        and task.planned_for is not distinct from planned.replaced
        and (planned.problem is null or %(version)s >= (select max(version) from {schema}.schema_version))
    order by task.name
    for no key update of task skip locked
)
update {schema}.periodic_task as task
set planned_revision = fenced.revision,
    next_run_at = case when fenced.problem is null then fenced.next_run_at else task.next_run_at end,
    planned_for = case when fenced.problem is null then fenced.planned_for else task.planned_for end,
    problem = fenced.problem,
    pickup_deadline = make_interval(secs => fenced.pickup_deadline),
    marked_by = null,
    marked_at = null,
    taken_over = false,
    planned_ahead = null,
    due_ahead = null,
    timezone = coalesce(task.timezone, %(timezone)s)
from fenced
where task.name = fenced.name and task.name = any (%(names)s::text[])
returning task.name, task.next_run_at, task.problem
