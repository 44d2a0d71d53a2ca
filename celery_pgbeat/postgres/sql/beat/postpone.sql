-- Postpone due periodic tasks that a blackout window covers now: nothing is decided, they are due again later.
--
-- Fenced by this very mark, as a submit is. It moves next_run_at and takes its mark off: then the row trigger does not
-- run.
with postponed as (
    select *, %(beat)s::text as beat from unnest(
        %(names)s::text[], %(marked_ats)s::timestamptz[], %(due_ats)s::timestamptz[], %(next_run_ats)s::timestamptz[],
        %(planned_fors)s::timestamptz[])
        as postponed (name, marked_at, due_at, next_run_at, planned_for)
),
fenced as materialized (
    select postponed.* from {schema}.periodic_task as task
    join postponed on postponed.name = task.name
    where task.name = any (%(names)s::text[])
        and task.marked_by = postponed.beat
        and task.marked_at = postponed.marked_at
        and task.next_run_at = postponed.due_at
        and task.enabled and not task.group_paused
    order by task.name
    for no key update of task skip locked
)
update {schema}.periodic_task as task
set next_run_at = fenced.next_run_at,
    planned_for = fenced.planned_for,
    marked_by = null,
    marked_at = null,
    taken_over = false
from fenced
where task.name = fenced.name and task.name = any (%(names)s::text[])
returning task.name
