-- Have up to %(batch)s tasks go on whose upstream tasks have ended; returns 0 if none did and none is left to look at.
--
-- It takes the reasons to look from dependency_to_check: whatever is written from here on is a row of its own, and the
-- next look finds it. A waiting job of which each upstream task has ended is promoted, or recorded as skipped, `after`,
-- if one of them has ended in another way than its row allows. A row without a schedule becomes due, or its occurrence
-- is recorded likewise. What another transaction has locked gets a new row, behind what was not tried as often; a beat
-- does not hurry because of it. What is due already gets none: it gets one when it is decided (the trigger
-- periodic_task_decided_after).
--
-- To read the ends takes long where a row has many upstream tasks, and many before these. So it stops after half a
-- second: half of that for jobs, half for rows, and one of each at least. What is left gets a new row, too, and is the
-- first to be looked at when that is taken.
--
-- A row is locked first, and the ends are read after that, in a statement of their own. The row trigger does not take
-- this for a run that an author has set, because `planned_for` moves too. `planned_revision` moves only where the row
-- has yet to be planned.
-- function
create or replace function {schema}.settle_downstream(most int default 1000) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    most_time constant interval := interval '250 milliseconds';
    stop_at timestamptz;
    names text[];
    reasons int;
    tried int;
    there_may_be_more boolean;
    put_back int;
    jobs uuid[];
    rows_due text[];
    one record;
    ends record;
    was_stopped boolean := false;
    next_with_job int := 1;  -- the place in `names` from which on jobs are to be looked at, and rows
    next_row int := 1;
    left_over int;
    ready uuid[] := '{}';
    ready_blocked_by uuid[] := '{}';
    ended text[] := '{}';
    ended_for timestamptz[] := '{}';
    ended_blocked_by uuid[] := '{}';
    settled int;
    due int;
begin
    with taken as (
        delete from {schema}.dependency_to_check
        where ctid = any (array(
            select ctid from {schema}.dependency_to_check
            order by tries, upstream, downstream
            limit most
            for update skip locked))
        returning upstream, downstream, tries
    )
    select array_agg(name order by tries desc, name), (select count(*) from taken), (select min(tries) from taken)
    into names, reasons, tried
    from (
        select name, max(tries) as tries
        from (
            select downstream as name, tries from taken where downstream is not null
            union all
            select known.downstream, 0 from {schema}.dependency as known
            where known.upstream = any (array(select upstream from taken where upstream is not null))
            union all
            -- Through tasks without a schedule: one that waits further down may wait for just this one to be done.
            select job.periodic_task, 0 from {schema}.active_job as job
            where job.wait_reason = 'upstream' and job.periodic_task in (
                with recursive behind as (
                    select upstream as name from taken where upstream is not null
                    union
                    select known.downstream
                    from behind
                    join {schema}.dependency as known on known.upstream = behind.name
                    join {schema}.periodic_task as stored on stored.name = known.upstream
                    where stored.schedule is null or stored.name in (select upstream from taken)
                )
                select behind.name from behind)
        ) as reason
        group by name
    ) as meant;
    if names is null then
        return (reasons = most)::int;
    end if;
    there_may_be_more := greatest(reasons, cardinality(names)) >= most;
    if cardinality(names) > most then
        insert into {schema}.dependency_to_check (downstream) select unnest(names[most + 1:]);
        names := names[:most];
    end if;

    jobs := array(
        select id from {schema}.active_job
        where wait_reason = 'upstream' and periodic_task = any (names)
        order by id
        for no key update skip locked);
    rows_due := array(
        select name from {schema}.periodic_task
        where name = any (names) and after is not null and schedule is null and next_run_at is null
            and enabled and not group_paused
        order by name
        for no key update skip locked);
    insert into {schema}.dependency_to_check (downstream, tries)
    select locked.name, least(tried + 1, 2000000000)
    from (
        select periodic_task as name from {schema}.active_job
        where wait_reason = 'upstream' and periodic_task = any (names) and id <> all (jobs)
        union
        select name from {schema}.periodic_task
        where name = any (names) and after is not null and schedule is null and next_run_at is null
            and enabled and not group_paused and name <> all (rows_due)
    ) as locked;
    get diagnostics put_back = row_count;

    -- The later of two jobs of a row is not ready before the earlier one.
    stop_at := clock_timestamp() + most_time;
    for one in
        select named.place, job.id, job.scheduled_for, task.after, task.after_condition
        from unnest(names) with ordinality as named (name, place)
        join {schema}.active_job as job on job.periodic_task = named.name
        left join {schema}.periodic_task as task on task.name = job.periodic_task
        where job.id = any (jobs)
        order by named.place, job.scheduled_for
    loop
        continue when one.place < next_with_job;
        select * into ends from {schema}.ends_for(one.after, one.after_condition, one.scheduled_for);
        if ends.missing = '{}' then
            ready := ready || one.id;
            ready_blocked_by := ready_blocked_by || ends.blocked_by;
            next_with_job := one.place;
        else
            next_with_job := one.place + 1;
        end if;
        was_stopped := clock_timestamp() >= stop_at;
        exit when was_stopped;
    end loop;
    if not was_stopped then
        next_with_job := cardinality(names) + 1;
    end if;
    was_stopped := false;
    stop_at := clock_timestamp() + most_time;
    for one in
        select named.place, stored as definition, stored.name
        from unnest(names) with ordinality as named (name, place)
        join {schema}.periodic_task as stored on stored.name = named.name
        where stored.name = any (rows_due)
        order by named.place
    loop
        select * into ends from {schema}.due_after(one.definition);
        if ends.occurrence is not null then
            ended := ended || one.name;
            ended_for := ended_for || ends.occurrence;
            ended_blocked_by := ended_blocked_by || ends.blocked_by;
        end if;
        next_row := one.place + 1;
        was_stopped := clock_timestamp() >= stop_at;
        exit when was_stopped;
    end loop;
    if not was_stopped then
        next_row := cardinality(names) + 1;
    end if;
    insert into {schema}.dependency_to_check (downstream, tries)
    select name, least(tried + 1, 2000000000)
    from (
        select periodic_task as name from {schema}.active_job
        where id = any (jobs) and id <> all (ready) and periodic_task = any (names[next_with_job:])
        union
        select name from unnest(rows_due) as name where name = any (names[next_row:])
    ) as not_looked_at;
    get diagnostics left_over = row_count;

    with skipped as (
        delete from {schema}.active_job as job
        where job.id = any (array(
            select id from unnest(ready, ready_blocked_by) as given (id, blocked_by) where blocked_by is not null))
        returning job
    ),
    recorded as (
        insert into {schema}.finished_job
        select final.* from skipped
        cross join lateral {schema}.archived(job, 'skipped', 'after', blocked_by => (
            select blocked_by from unnest(ready, ready_blocked_by) as given (id, blocked_by)
            where given.id = (job).id)) as final
    ),
    promoted as (
        update {schema}.active_job as job
        set (state, wait_reason, slot, busy_until, check_at, due_by) = (
                select state, wait_reason, slot, busy_until, check_at, due_by
                from {schema}.promoted(job, 'upstream')),
            waited = true
        where job.id = any (array(
            select id from unnest(ready, ready_blocked_by) as given (id, blocked_by) where blocked_by is null))
        returning job.id
    )
    select (select count(*) from skipped) + (select count(*) from promoted) into settled;

    with ended as materialized (
        select stored as definition, stored.name, given.occurrence, given.blocked_by
        from unnest(ended, ended_for, ended_blocked_by) as given (name, occurrence, blocked_by)
        join {schema}.periodic_task as stored on stored.name = given.name
    ),
    recorded as (
        insert into {schema}.finished_job (
            id, periodic_task, scheduled_for, origin, state, reason, blocked_by, created_at, finished_at,
            {copied_to_history})
        select gen_random_uuid(), name, occurrence, 'schedule', 'skipped', 'after', blocked_by,
            {schema}.now(), {schema}.now(), {copied_to_history of (definition)}
        from ended
        where blocked_by is not null
        returning periodic_task
    ),
    to_look_at as (
        insert into {schema}.dependency_to_check (upstream, downstream)
        select periodic_task, null from recorded
        union all
        select null, periodic_task from recorded
    )
    update {schema}.periodic_task as task
    set next_run_at = case when ended.blocked_by is null then {schema}.now() end,
        planned_for = case when ended.blocked_by is null then ended.occurrence end,
        last_run_at = case when ended.blocked_by is null then task.last_run_at else ended.occurrence end,
        planned_revision = task.revision
    from ended
    where task.name = ended.name and task.name = any (rows_due);
    get diagnostics due = row_count;
    return settled + due + (
        left_over > 0
        or there_may_be_more
            and (put_back < cardinality(names) or exists (select from {schema}.dependency_to_check where tries = 0))
    )::int;
end
$$;
-- call
select {schema}.settle_downstream(%(batch)s) as settled
