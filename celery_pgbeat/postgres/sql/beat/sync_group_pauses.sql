-- Pause or resume rows that joined their group at the moment at which it was paused or resumed; returns their names.
--
-- It reads the index once for each paused group, and once for each group whose rows are marked as paused. Rows that
-- another transaction has locked are skipped.
-- function
create or replace function {schema}.sync_group_pauses() returns setof text
language sql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
    with recursive marked_paused as (
        (
            select group_name from {schema}.periodic_task
            where group_paused and group_name is not null
            order by group_name
            limit 1)
        union all
        select (
            select group_name from {schema}.periodic_task
            where group_paused and group_name > marked_paused.group_name
            order by group_name
            limit 1)
        from marked_paused
        where group_name is not null
    ),
    differing as (
        select known.name as group_name, true as paused from {schema}.task_group as known where known.paused
        union all
        select group_name, false from marked_paused where group_name is not null and not {schema}.is_paused(group_name)
    )
    update {schema}.periodic_task as member
    set group_paused = not member.group_paused
    where member.name = any (array(
        select wrong.name
        from differing
        cross join lateral (
            select name from {schema}.periodic_task
            where group_paused = not differing.paused and group_name = differing.group_name
            order by name
            limit 1000
            for no key update skip locked
        ) as wrong))
    returning member.name
$$;
-- call
select {schema}.sync_group_pauses() as name
