-- Give the free slots of groups to up to %(batch)s jobs that wait for one; returns how many got one.
--
-- In the order of their scheduled_for. The row of a group is locked first. What is under way is counted after that, in
-- a statement of its own, which sees what the transaction that had the lock before has committed. A group whose row
-- another transaction locks is skipped. The slots have numbers, and a unique index allows each of them once.
-- function
create or replace function {schema}.grant_slots(most int default 1000) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    open_groups constant text[] := array(select {schema}.groups_with_room());
    limited text[];
    granted int := 0;
    freed int;
begin
    limited := array(
        select name from {schema}.task_group
        where name = any (open_groups) and max_active is not null
        order by name
        for no key update skip locked);
    if limited <> '{}' then
        begin
            update {schema}.active_job as job
            set state = 'pending', waits_for = null, slot = given.slot, waited = true,
                busy_until = {schema}.now() + job.pickup_deadline, check_at = '-infinity'
            from (
                select head.id, place.slot
                from unnest(limited) as member (group_name)
                join {schema}.task_group as known on known.name = member.group_name
                cross join lateral (
                    select count(*) as taken from {schema}.active_job as other
                    where other.group_name = known.name and other.slot is not null
                ) as under_way
                cross join lateral (
                    select waiting.id,
                        row_number() over (order by waiting.scheduled_for, waiting.created_at, waiting.id) as number
                    from (
                        select id, scheduled_for, created_at from {schema}.active_job
                        where waits_for = 'slot' and group_name = known.name
                        order by scheduled_for, created_at, id
                        limit greatest(least(known.max_active - under_way.taken, most), 0)
                        for no key update skip locked
                    ) as waiting
                ) as head
                -- Among as many numbers as there will be jobs, there is one for each.
                join lateral (
                    select slot, row_number() over (order by slot) as number
                    from generate_series(1, least(known.max_active, under_way.taken + most)::int) as slot
                    where not exists (
                        select from {schema}.active_job as other
                        where other.group_name = known.name and other.slot = slot.slot)
                ) as place on place.number = head.number
            ) as given
            where job.id = given.id;
            get diagnostics granted = row_count;
        exception when unique_violation then
            null;  -- A worker has started a lost job at this very moment, which took a slot: the next look counts it.
        end;
    end if;

    update {schema}.active_job as job
    set state = 'pending', waits_for = null, slot = 0, waited = true,
        busy_until = {schema}.now() + job.pickup_deadline, check_at = '-infinity'
    where job.id = any (array(
        select waiting.id
        from {schema}.active_job as waiting
        where waiting.waits_for = 'slot' and waiting.group_name = any (array(
            select name from unnest(open_groups) as name where not {schema}.is_limited(name)))
        order by waiting.scheduled_for, waiting.created_at
        limit most
        for no key update skip locked));
    get diagnostics freed = row_count;
    return granted + freed;
end
$$;
-- call
select {schema}.grant_slots(%(batch)s) as granted
