-- Resume paused periodic tasks; returns the names of those that existed, and whether their group is paused.
--
-- All or none. In name order, as everywhere where many rows are written; a row that another transaction has locked is
-- waited for, as resume() does. Rows that are paused are resumed in one go: resume() for each row takes six times as
-- long. What resume() does to rows that were decided ahead, it does here too.
with locked as materialized (
    select name, enabled, group_paused,
        coalesce(greatest(last_run_at, planned_from) > {schema}.now(), false) as is_ahead
    from {schema}.periodic_task
    where name = any (%(names)s::text[])
    order by name
    for no key update
),
resumed as (
    update {schema}.periodic_task as stored
    set enabled = true
    from locked
    where stored.name = locked.name and not locked.enabled
    returning stored.name, stored.group_paused
)
select name, group_paused from resumed
union all
select name, group_paused from locked where enabled and not is_ahead
union all
select again.name, again.group_paused
from locked
cross join lateral {schema}.resume(locked.name) as again
where locked.enabled and locked.is_ahead
