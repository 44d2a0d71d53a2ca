-- Have up to %(batch)s tasks go on whose upstream tasks have ended; returns 0 if none did and none is left to look at.
--
-- It takes the turns from dependency_turn: whatever is written from here on is a row of its own, and the next look
-- finds it. A waiting job of which each upstream task has ended is released, or recorded as skipped, `after`, if one of
-- them has ended in another way than its row allows. A row without a schedule becomes due, or its occurrence is
-- recorded likewise. What another transaction has locked gets a new turn, behind what was not tried as often; a beat
-- does not hurry because of it. What is due already gets none: it gets one when it is decided (the trigger
-- periodic_task_decided_after).
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
    names text[];
    turns int;
    tried int;
    there_may_be_more boolean;
    put_back int;
    jobs uuid[];
    rows_due text[];
    settled int;
    due int;
begin
    with taken as (
        delete from {schema}.dependency_turn
        where ctid = any (array(
            select ctid from {schema}.dependency_turn
            order by tries, upstream, downstream
            limit most
            for update skip locked))
        returning upstream, downstream, tries
    )
    select array_agg(name order by name), (select count(*) from taken), (select min(tries) from taken)
    into names, turns, tried
    from (
        select downstream as name from taken where downstream is not null
        union
        select known.downstream from {schema}.dependency as known
        where known.upstream = any (array(select upstream from taken where upstream is not null))
        union
        -- Through tasks without a schedule: one that waits further down may wait for just this one to be done.
        select job.periodic_task from {schema}.active_job as job
        where job.waits_for = 'upstream' and job.periodic_task in (
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
    ) as meant;
    if names is null then
        return (turns = most)::int;
    end if;
    there_may_be_more := greatest(turns, cardinality(names)) >= most;
    if cardinality(names) > most then
        insert into {schema}.dependency_turn (downstream) select unnest(names[most + 1:]);
        names := names[:most];
    end if;

    jobs := array(
        select id from {schema}.active_job
        where waits_for = 'upstream' and periodic_task = any (names)
        order by id
        for no key update skip locked);
    rows_due := array(
        select name from {schema}.periodic_task
        where name = any (names) and after is not null and schedule is null and next_run_at is null
            and enabled and not group_paused
        order by name
        for no key update skip locked);
    insert into {schema}.dependency_turn (downstream, tries)
    select locked.name, tried + 1
    from (
        select periodic_task as name from {schema}.active_job
        where waits_for = 'upstream' and periodic_task = any (names) and id <> all (jobs)
        union
        select name from {schema}.periodic_task
        where name = any (names) and after is not null and schedule is null and next_run_at is null
            and enabled and not group_paused and name <> all (rows_due)
    ) as locked;
    get diagnostics put_back = row_count;

    with ready as materialized (
        select job.id, ends.blocked_by
        from {schema}.active_job as job
        left join {schema}.periodic_task as task on task.name = job.periodic_task
        cross join lateral {schema}.ends_for(task.after, task.after_condition, job.scheduled_for) as ends
        where job.id = any (jobs) and ends.missing = '{}'
    ),
    skipped as (
        delete from {schema}.active_job as job
        where job.id = any (array(select id from ready where blocked_by is not null))
        returning job
    ),
    recorded as (
        insert into {schema}.finished_job
        select final.* from skipped
        cross join lateral {schema}.archived(job, 'skipped', 'after', blocked_by => (
            select blocked_by from ready where id = (job).id)) as final
    ),
    released as (
        update {schema}.active_job as job
        set (state, waits_for, slot, busy_until, check_at, due_by) = (
                select state, waits_for, slot, busy_until, check_at, due_by
                from {schema}.released(job, 'upstream')),
            waited = true
        where job.id = any (array(select id from ready where blocked_by is null))
        returning job.id
    )
    select (select count(*) from skipped) + (select count(*) from released) into settled;

    with ended as materialized (
        select stored as definition, stored.name, ends.occurrence, ends.blocked_by
        from {schema}.periodic_task as stored
        cross join lateral {schema}.due_after(stored) as ends
        where stored.name = any (rows_due) and ends.occurrence is not null
    ),
    recorded as (
        insert into {schema}.finished_job (
            id, periodic_task, scheduled_for, origin, state, reason, blocked_by, task, queue, created_at, finished_at,
            group_name)
        select gen_random_uuid(), name, occurrence, 'schedule', 'skipped', 'after', blocked_by,
            (definition).task, (definition).queue, {schema}.now(), {schema}.now(), (definition).group_name
        from ended
        where blocked_by is not null
        returning periodic_task
    ),
    to_look_at as (
        insert into {schema}.dependency_turn (upstream, downstream)
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
        there_may_be_more
            and (put_back < cardinality(names) or exists (select from {schema}.dependency_turn where tries = 0))
    )::int;
end
$$;
-- call
select {schema}.settle_downstream(%(batch)s) as settled
