-- Give the free slots of groups to jobs that wait for one, up to %(batch)s in each group; returns how many got one.
--
-- It looks at two hundred groups at most, and takes a thousand reasons at most to look at each of them. If there are
-- more, it returns 1 at least, and the next look finds them. Of the groups that are not limited any more it lets up to
-- %(batch)s jobs go on together. The jobs of a group have their turns in the order of their scheduled_for; under a rate
-- limit the rows of the group take turns, unless it is ordered. internal/groups.sql explains the words.
--
-- The row of a group is locked first. What is under way, and what else keeps the jobs of the group waiting, is read
-- after that, in a statement of its own, which sees what the transaction that had the lock before has committed. A
-- group whose row another transaction locks is skipped. The slots have numbers, and a unique index allows each of them
-- once; in a group that only waits for others, or only has a rate limit, all are 0.
-- function
-- Up to so many jobs of a group that have their turn next, locked, and numbered in that order. Jobs that another
-- transaction locks are left out. But if the first one of an ordered group is locked, none is next. Of one instant what
-- a person started comes first there, so that a failed job that is retried has its place back. Then comes what was made
-- first, and then the names decide. `known` is the row of the group.
create or replace function {schema}.next_in(known {schema}.task_group, most bigint)
returns table (id uuid, periodic_task {schema}.task_name, number bigint)
language plpgsql rows 10
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    names text[] := '{}';
    last_name text := coalesce(known.last_served, '');
    found_name text;
    has_wrapped boolean := false;
begin
    if known.ordered then
        return query
        select first.id, first.periodic_task, 1::bigint from {schema}.active_job as first
        where most > 0 and first.wait_reason is not distinct from 'slot' and first.id = any (array(
            select waiting.id from {schema}.active_job as waiting
            where waiting.wait_reason = 'slot' and waiting.group_name = known.name
            order by waiting.scheduled_for, waiting.origin <> 'manual', waiting.created_at, waiting.periodic_task,
                waiting.id
            limit 1))
        for no key update skip locked;
        return;
    elsif known.rate_interval is null then
        return query
        select waiting.id, waiting.periodic_task,
            row_number() over (order by waiting.scheduled_for, waiting.created_at, waiting.id)
        from (
            select job.id, job.periodic_task, job.scheduled_for, job.created_at from {schema}.active_job as job
            where job.wait_reason = 'slot' and job.group_name = known.name
            order by job.scheduled_for, job.created_at, job.id
            limit greatest(most, 0)
            for no key update skip locked
        ) as waiting;
        return;
    end if;

    -- The rows that take turns: from the one after the last that had one, in the order of their names, and around.
    while cardinality(names) < most loop
        select waiting.periodic_task into found_name from {schema}.active_job as waiting
        where waiting.wait_reason = 'slot' and waiting.group_name = known.name and waiting.periodic_task > last_name
        order by waiting.periodic_task
        limit 1;
        if found then
            exit when has_wrapped and found_name > coalesce(known.last_served, '');
            names := names || found_name;
            last_name := found_name;
        else
            exit when has_wrapped;
            has_wrapped := true;
            last_name := '';
        end if;
    end loop;
    if names = '{}' then
        return;
    end if;
    return query
    select turn.id, turn.periodic_task, turn.number
    from (
        select job.id, job.periodic_task, row_number() over (order by job.round, served.place) as number
        from unnest(names) with ordinality as served (name, place)
        cross join lateral (
            select waiting.id, waiting.periodic_task,
                row_number() over (order by waiting.scheduled_for, waiting.created_at, waiting.id) as round
            from (
                select own.id, own.periodic_task, own.scheduled_for, own.created_at from {schema}.active_job as own
                where own.wait_reason = 'slot' and own.group_name = known.name and own.periodic_task = served.name
                order by own.scheduled_for, own.created_at, own.id
                limit ceil(most::numeric / cardinality(names))
                for no key update skip locked
            ) as waiting
        ) as job
    ) as turn
    where turn.number <= most;
end
$$;

create or replace function {schema}.grant_slots(most int default 1000) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    most_groups constant int := 100;
    most_reasons constant int := 1000;  -- for each group
    seen_with_room constant text[] := array(
        select name from {schema}.seen_groups_with_room() as name order by random() limit most_groups);
    names text[];
    there_are_more boolean;
    locked text[];
    granted int := 0;
    without_limit int;
begin
    -- Each row of group_to_check is a reason to look at a group. What is written from here on is a row of its own, and
    -- the next look finds it.
    with recursive new as (
        (select group_name from {schema}.group_to_check where not seen order by group_name limit 1)
        union all
        select (
            select known.group_name from {schema}.group_to_check as known
            where not known.seen and known.group_name > new.group_name
            order by known.group_name
            limit 1)
        from new
        where new.group_name is not null
    ),
    meant as (
        select unnest(seen_with_room) as group_name
        union
        (select group_name from new where group_name is not null limit most_groups)
    ),
    taken as (
        delete from {schema}.group_to_check
        where ctid = any (array(
            select reason.ctid
            from meant
            cross join lateral (
                select known.ctid from {schema}.group_to_check as known
                where known.group_name = meant.group_name
                limit most_reasons
                for update skip locked
            ) as reason))
        returning group_name
    )
    select array_agg(distinct group_name) into names from taken;
    there_are_more := exists (select from {schema}.group_to_check where not seen);
    if names is null then
        return 0;
    end if;
    locked := array(
        select name from {schema}.task_group as known
        where name = any (names) and known.limited
        order by name
        for no key update skip locked);
    update {schema}.task_group as known
    set state = case when known.state = 'waiting' then 'active' else 'waiting' end
    where known.name = any (locked) and known.waits_for is not null and known.state in ('active', 'waiting')
        and (known.state = 'waiting')
            <> ({schema}.has_waiting(known.name) and {schema}.busy_one_of(known.waits_for) is not null);

    if locked <> '{}' then
        begin
            with given as materialized (
                select head.id, head.periodic_task, head.number, coalesce(place.slot, 0) as slot, known.name,
                    known.rate_interval
                from {schema}.task_group as known
                cross join lateral (
                    select {schema}.most_active(known) as most_active, {schema}.turns_in(known) as number, (
                        select count(*) from {schema}.active_job as other
                        where other.group_name = known.name and other.slot is not null) as taken
                ) as turns
                cross join lateral {schema}.next_in(known, least(turns.number, most)) as head
                -- Among as many numbers as there will be jobs, there is one for each.
                left join lateral (
                    select slot, row_number() over (order by slot) as number
                    from generate_series(1, least(turns.most_active, turns.taken + most)::int) as slot
                    where turns.most_active is not null and not exists (
                        select from {schema}.active_job as other
                        where other.group_name = known.name and other.slot = slot.slot)
                ) as place on place.number = head.number
                where known.name = any (locked) and (place.slot is not null or turns.most_active is null)
            ),
            -- Each counts for the rate limit, from `rate_counts_from` on.
            counted as (
                update {schema}.task_group as known
                set next_turn_at = {schema}.rate_counts_from(known) + used.number * known.rate_interval,
                    last_served = used.last_served
                from (
                    select name, count(*) as number, (array_agg(periodic_task order by number desc))[1] as last_served
                    from given
                    where rate_interval is not null
                    group by name
                ) as used
                where known.name = used.name
            )
            -- A job is ready when a beat may send it, or a person may pick it up (internal/people.sql). It has
            -- waited, so `recover` does not drop it as late. The time for a task for people (`due_in`) begins now.
            update {schema}.active_job as job
            set state = {schema}.ready_state(job.kind), wait_reason = null, slot = given.slot, waited = true,
                busy_until = {schema}.ready_busy_until(job.kind, job.pickup_deadline),
                check_at = {schema}.ready_check_at(job.kind), due_by = {schema}.now() + job.due_in
            from given
            where job.id = given.id;
            get diagnostics granted = row_count;
        exception when unique_violation then
            null;  -- A worker has started a lost job at this very moment, which took a slot: the next look counts it.
        end;
    end if;

    -- The jobs that waited in groups that are not limited any more, or that have no row any more. A stopped group keeps
    -- its jobs.
    update {schema}.active_job as job
    set state = {schema}.ready_state(job.kind), wait_reason = null, slot = 0, waited = true,
        busy_until = {schema}.ready_busy_until(job.kind, job.pickup_deadline),
        check_at = {schema}.ready_check_at(job.kind), due_by = {schema}.now() + job.due_in
    where job.id = any (array(
        select waiting.id
        from {schema}.active_job as waiting
        where waiting.wait_reason = 'slot' and waiting.group_name = any (array(
            select named.name from unnest(names) as named (name)
            where not {schema}.is_limited(named.name) and not exists (
                select from {schema}.task_group as known
                where known.name = named.name and {schema}.why_stopped(known) is not null)))
        order by waiting.scheduled_for, waiting.created_at
        limit most
        for no key update skip locked));
    get diagnostics without_limit = row_count;

    -- The groups to look at again without another row: those that could not be locked, or with more to grant, or whose
    -- jobs wait for what ends by itself. A group that is full or stopped gets a row when a job ends or it is resumed.
    insert into {schema}.group_to_check (group_name, seen)
    select named.name, true from unnest(names) as named (name)
    where {schema}.has_waiting(named.name) and not exists (
        select from {schema}.task_group as known
        where known.name = named.name
            and (
                known.name = any (locked) and {schema}.free_in(known) <= 0
                or (known.name = any (locked) or not known.limited) and {schema}.why_stopped(known) is not null));
    return granted + without_limit + there_are_more::int;
end
$$;
-- call
select {schema}.grant_slots(%(batch)s) as granted
