-- Promote the buffered jobs that no other job of their row blocks any more; without a list, of all periodic tasks.
--
-- The end of a job promotes the next one by itself (the table trigger `active_job_gone`). This is for the first one
-- that waits, and for a job that was buffered at the very moment at which the one before it ended.
-- function
-- The periodic tasks for which jobs wait, by one probe of the index for each.
create or replace function {schema}.waited_for() returns text[]
language sql stable
as $$
    with recursive waited_for as (
        (select periodic_task from {schema}.active_job where wait_reason = 'predecessor' order by periodic_task limit 1)
        union all
        select (
            select periodic_task from {schema}.active_job
            where wait_reason = 'predecessor' and periodic_task > waited_for.periodic_task
            order by periodic_task
            limit 1)
        from waited_for
        where periodic_task is not null
    )
    select array_agg(periodic_task) from waited_for where periodic_task is not null
$$;

-- What a job becomes when one of its waits is over: that for another job of its row ('predecessor'), or that for the
-- tasks after which it runs ('upstream'). It waits for the next thing, or is to be sent at once, or is for people.
create or replace function {schema}.promoted(job {schema}.active_job, from_waiting_for text) returns table (
    state text, wait_reason text, slot int, busy_until timestamptz, check_at timestamptz, due_by timestamptz
)
language sql stable rows 1
as $$
    select case next.wait_reason
            when 'upstream' then 'waiting' when 'slot' then 'buffered' else {schema}.ready_state(job.kind)
        end,
        next.wait_reason,
        case when next.wait_reason is null and job.group_name is not null then 0 end,
        case
            when next.wait_reason is null then {schema}.ready_busy_until(job.kind, job.pickup_deadline) else 'infinity'
        end,
        case when next.wait_reason is null then {schema}.ready_check_at(job.kind) else 'infinity' end,
        case when next.wait_reason is null then {schema}.now() + job.due_in end
    from (
        select case
            when from_waiting_for = 'predecessor' and job.origin <> 'manual' and exists (
                    select from {schema}.periodic_task as task
                    where task.name = job.periodic_task and {schema}.waits_for_others(task.after, task.schedule))
                then 'upstream'
            when {schema}.is_limited(job.group_name) then 'slot'
        end as wait_reason
    ) as next
$$;

-- Promote the first buffered job of each of these periodic tasks for which no other job is under way; returns how many.
-- If `overlap` has become `allow` meanwhile, all of them. What it waits for next, `promoted` says. A plan that is kept
-- may be older than the data, so each step looks up ids or names in an index and nothing is joined. No index serves
-- `is not distinct from`, so Postgres does not look up by it what it can look up by id.
create or replace function {schema}.promote_first(names text[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    first int;
    rest int;
begin
    update {schema}.active_job as job
    set (state, wait_reason, slot, busy_until, check_at, due_by) = (
            select state, wait_reason, slot, busy_until, check_at, due_by
            from {schema}.promoted(job, 'predecessor')),
        exclusive = true,
        waited = true
    where job.id = any (array(
        select id from {schema}.active_job
        where wait_reason is not distinct from 'predecessor' and id = any (array(
            select first_in_line.id
            from unnest(names) as waited_for (name)
            cross join lateral (
                select waiting.id from {schema}.active_job as waiting
                where waiting.periodic_task = waited_for.name and waiting.wait_reason = 'predecessor'
                order by waiting.scheduled_for, waiting.created_at
                limit 1
            ) as first_in_line
            where not exists (
                select from {schema}.active_job as other
                where other.periodic_task = waited_for.name and other.wait_reason is distinct from 'predecessor'
                offset 0)))
        order by id
        for no key update skip locked));
    get diagnostics first = row_count;
    update {schema}.active_job as job
    set (state, wait_reason, slot, busy_until, check_at, due_by) = (
            select state, wait_reason, slot, busy_until, check_at, due_by
            from {schema}.promoted(job, 'predecessor')),
        waited = true
    where job.id = any (array(
        select id from {schema}.active_job
        where wait_reason is not distinct from 'predecessor' and id = any (array(
            select waiting.id from {schema}.active_job as waiting
            where waiting.wait_reason = 'predecessor' and waiting.periodic_task = any (array(
                select name from {schema}.periodic_task where name = any (names) and overlap = 'allow'))))
        order by id
        for no key update skip locked));
    get diagnostics rest = row_count;
    if first + rest > 0 then
        perform pg_notify({channel}, '');
    end if;
    return first + rest;
end
$$;

-- If a worker starts a lost job at this very moment, that job may become the exclusive one of its name first, and the
-- unique index refuses the promotion. Then each name is promoted by itself; where the index refuses again, the end of
-- the lost job promotes the next one.
create or replace function {schema}.promote_buffered(names text[] default null) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    waiting constant text[] := coalesce(names, {schema}.waited_for());
    one text;
    promoted int := 0;
begin
    begin
        return {schema}.promote_first(waiting);
    exception when unique_violation then
        null;
    end;
    foreach one in array waiting loop
        begin
            promoted := promoted + {schema}.promote_first(array[one]);
        exception when unique_violation then
            null;
        end;
    end loop;
    return promoted;
end
$$;
-- call
select {schema}.promote_buffered(%(names)s::text[]) as promoted
