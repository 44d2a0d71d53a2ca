-- The days of the history.

-- Until when a buffered job counts as busy: as long as the jobs of its row, or, for a slot, as the first that has one.
--
-- A function, because otherwise Postgres would estimate a query for each row of the view, so expensive that it
-- compiles.
create or replace function {schema}.busy_until_of_waiting(
    wait_reason text, periodic_task text, group_name text, otherwise timestamptz
) returns timestamptz
language plpgsql stable
as $$
begin
    if wait_reason = 'predecessor' then
        return coalesce((
            select max(job.busy_until) from {schema}.active_job as job
            where job.periodic_task = busy_until_of_waiting.periodic_task and job.wait_reason is null), otherwise);
    elsif wait_reason = 'upstream' then
        return otherwise;
    end if;
    return coalesce((
        select min(job.busy_until) from {schema}.active_job as job
        where job.group_name = busy_until_of_waiting.group_name and job.slot is not null), otherwise);
end
$$;

-- An instant that every client can read, else NULL.
create or replace function {schema}.in_the_calendar(instant timestamptz) returns timestamptz
language sql immutable parallel safe
as $$ select case when instant between '0001-01-02 00:00+00' and '9999-12-30 00:00+00' then instant end $$;

-- The end of a job promotes the next one that waits for it, and has a beat look at its group. If it has failed or is
-- lost, it pauses a group that wants that; one that a person gave up does not, because then a person has decided
-- already. It has a beat look at what comes after its periodic task. It wakes a beat for these, or if there is room for
-- a backfill.
--
-- In a group with rules it writes into group_to_check whether a job waits there or not. One that begins to wait at this
-- moment is not seen here, and a beat that looks at it counts this job as under way until this transaction has
-- committed. Which plan is kept here must not depend on which statement had its plan made first, nor on the settings of
-- the statement that ended the jobs: whether few or many have ended, each is looked up by index.
create or replace function {schema}.active_job_gone() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = auto
as $$
declare
    names text[];
    groups text[];
    wakes boolean := false;
begin
    -- Nearly every confirm deletes no job.
    if not exists (select from deleted) then
        return null;
    end if;
    names := array(
        select ended.periodic_task from (select distinct periodic_task from deleted) as ended
        where exists (
            select from {schema}.active_job as waiting
            where waiting.periodic_task = ended.periodic_task and waiting.wait_reason = 'predecessor'
            offset 0));
    groups := array(select distinct group_name from deleted where group_name is not null);
    if groups <> '{}' then
        insert into {schema}.group_failure (group_name, job, periodic_task, scheduled_for)
        select ended.group_name, ended.id, ended.periodic_task, ended.scheduled_for
        from deleted as ended
        where ended.state <> 'error'
            and exists (
                select from {schema}.task_group as known
                where known.name = ended.group_name and known.pause_on_failure
                offset 0)
            and exists (
                select from {schema}.finished_job as final
                where final.id = ended.id and final.created_at = ended.created_at
                    and final.state in ('failed', 'lost')
                offset 0)
        on conflict do nothing;
        wakes := found;
        insert into {schema}.group_to_check (group_name)
        select known.name from {schema}.task_group as known where known.name = any (groups) and known.limited
        union all
        -- A group that has lost its limit, or its row: its jobs wait until a beat looks.
        select name from unnest(groups) as name
        where {schema}.is_limited(name) is not true and {schema}.has_waiting(name);
        wakes := wakes or exists (select from unnest(groups) as name where {schema}.has_waiting(name)) or exists (
            select from {schema}.task_group as known
            where known.waits_for is not null and known.waits_for && groups and {schema}.has_waiting(known.name));
    end if;
    insert into {schema}.dependency_to_check (upstream)
    select ended.periodic_task from (select distinct periodic_task from deleted) as ended
    where exists (select from {schema}.dependency where upstream = ended.periodic_task offset 0);
    wakes := wakes or found;
    if names <> '{}' then
        perform {schema}.promote_buffered(names);
    end if;
    if wakes or {schema}.is_backfilled(array(select periodic_task from deleted)) then
        perform pg_notify({channel}, '');
    end if;
    return null;
end
$$;

drop trigger if exists active_job_gone on {schema}.active_job;
create trigger active_job_gone
    after delete on {schema}.active_job
    referencing old table as deleted
    for each statement execute function {schema}.active_job_gone();

-- The row of `last_author` that a session locks for as long as it does what only one may do at a time; NULL if another
-- session has it. Not an advisory lock: every user of the database could take that. It acts for the owner: nothing else
-- reads or locks that table.
create or replace function {schema}.try_lock(what text) returns text
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select known.what from {schema}.last_author as known where known.what = try_lock.what for update skip locked
$$;

revoke execute on function {schema}.try_lock(text) from public;

-- The last records of a periodic task by its occurrences: of one that ran, of one that was skipped and has ended with
-- that, of one that was left out. What comes after it asks for no earlier ones.
create or replace function {schema}.last_records(name text) returns setof {schema}.finished_job
language plpgsql stable rows 3
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return query
    (select final.* from {schema}.finished_job as final
     where final.periodic_task = last_records.name and final.state <> 'skipped'
     order by final.scheduled_for desc, final.finished_at desc
     limit 1)
    union all
    (select final.* from {schema}.finished_job as final
     where final.periodic_task = last_records.name and final.state = 'skipped'
         and {schema}.ends_by_skip(final.reason)
     order by coalesce(final.last_scheduled_for, final.scheduled_for) desc, final.finished_at desc
     limit 1)
    union all
    (select final.* from {schema}.finished_job as final
     where final.periodic_task = last_records.name and final.state = 'skipped'
         and not {schema}.ends_by_skip(final.reason)
     order by coalesce(final.last_scheduled_for, final.scheduled_for) desc, final.finished_at desc
     limit 1);
end
$$;

-- For how long something is kept, in days of 24 hours. No caller may have it deleted earlier than the settings allow: a
-- duration that is negative, or that has months against days and so is longer than it compares, would delete all.
create or replace function {schema}.kept_for(what text, duration interval) returns interval
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if (duration between interval '1 day' and interval '36500 days') is not true then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('%s is %s, not 1 day to 36500 days', what, coalesce(duration::text, 'null'));
    end if;
    return {schema}.microseconds(duration) * interval '1 microsecond';
end
$$;
