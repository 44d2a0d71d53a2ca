-- List the groups that a periodic task names, or that have a limit or a pause, with what is under way and waits.
--
-- The names by one probe of the index each; what is counted is read from indexes alone.
with recursive named as (
    (select group_paused, group_name from {schema}.periodic_task where group_name is not null order by 1, 2 limit 1)
    union all
    select next.group_paused, next.group_name
    from named
    cross join lateral (
        select group_paused, group_name from {schema}.periodic_task
        where group_name is not null and (group_paused, group_name) > (named.group_paused, named.group_name)
        order by 1, 2
        limit 1
    ) as next
),
every as (
    select group_name as name from named
    union
    select name from {schema}.task_group
)
select every.name, known.max_active, coalesce(known.paused, false) as paused, known.pause_reason,
    (
        select count(*) from {schema}.periodic_task
        where group_paused in (true, false) and group_name = every.name
    ) as tasks,
    (select count(*) from {schema}.active_job where group_name = every.name and slot is not null) as active,
    (select count(*) from {schema}.active_job where group_name = every.name and waits_for = 'place') as waiting
from every
left join {schema}.task_group as known on known.name = every.name
order by every.name
