-- What people do with groups; the head of internal/groups.sql explains the words.

-- Set how many jobs of a group may be under way at a time, NULL for no limit.
create or replace function {schema}.limit_group(name text, max_active int) returns {schema}.task_group
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    limited {schema}.task_group;
begin
    insert into {schema}.task_group as known (name, max_active)
    values (limit_group.name, limit_group.max_active)
    on conflict (name) do update set max_active = excluded.max_active
    returning known.* into limited;
    return limited;
end
$$;

-- Pause all periodic tasks of a group. A job that waits for a slot is skipped when it would be sent; in a group that
-- keeps its jobs (`keeps_jobs`) it goes on waiting. Messages already at the broker still run.
create or replace function {schema}.pause_group(name text, reason text default null) returns {schema}.task_group
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    paused {schema}.task_group;
begin
    perform {schema}.refuse_group_of_nobody(pause_group.name);
    insert into {schema}.task_group as known (name, paused, pause_reason)
    values (pause_group.name, true, pause_group.reason)
    on conflict (name) do update set paused = true, pause_reason = excluded.pause_reason
    returning known.* into paused;
    return paused;
end
$$;

-- Set the rules of a group; its state stays. An omitted rule becomes the default.
create or replace function {schema}.define_group(
    name text,
    max_active int default null,
    ordered boolean default false,
    waits_for text[] default null,
    pause_on_failure boolean default false,
    rate_limit text default null
) returns {schema}.task_group
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    defined {schema}.task_group;
begin
    insert into {schema}.task_group as known (name, max_active, ordered, waits_for, pause_on_failure, rate_limit)
    values (define_group.name, define_group.max_active, define_group.ordered, define_group.waits_for,
            define_group.pause_on_failure, define_group.rate_limit)
    on conflict (name) do update
    set max_active = excluded.max_active,
        ordered = excluded.ordered,
        waits_for = excluded.waits_for,
        pause_on_failure = excluded.pause_on_failure,
        rate_limit = excluded.rate_limit
    returning known.* into defined;
    return defined;
end
$$;

-- Finish a group: it takes no new jobs. Its occurrences are skipped, what waits or is under way goes on.
create or replace function {schema}.finish_group(name text) returns {schema}.task_group
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    finished {schema}.task_group;
begin
    perform {schema}.refuse_group_of_nobody(finish_group.name);
    insert into {schema}.task_group as known (name, state)
    values (finish_group.name, 'finished')
    on conflict (name) do update set state = excluded.state
    returning known.* into finished;
    return finished;
end
$$;

-- Resume a paused group, and open a finished one: the next run of each of its rows is the next occurrence after now.
-- The jobs that wait go on; with `retry`, those that have paused the group run again before. Of a group that was never
-- paused only the members know: nothing happens.
create or replace function {schema}.resume_group(name text, retry boolean default false) returns {schema}.task_group
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    resumed {schema}.task_group;
begin
    perform {schema}.refuse_group_of_nobody(resume_group.name);
    perform from {schema}.task_group as known where known.name = resume_group.name for no key update;
    -- In name order, as everywhere where many rows are written: the retries and the resumption write these.
    perform from {schema}.periodic_task as member
    where member.name = any (array(
        select paused.name from {schema}.periodic_task as paused
        where paused.group_paused and paused.group_name = resume_group.name
        union
        select failure.periodic_task from {schema}.group_failure as failure
        where failure.group_name = resume_group.name))
    order by member.name
    for no key update;
    update {schema}.task_group as known set state = 'active'
    where known.name = resume_group.name and known.state = 'finished';
    if resume_group.retry and {schema}.retry_failures_of(resume_group.name) = 0 then
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'group_failure',
            message = format('No failed job has paused the group %s: there is none to retry.',
                             {schema}.quoted(resume_group.name)),
            hint = 'Resume it without retry.';
    end if;
    delete from {schema}.group_failure as failure where failure.group_name = resume_group.name;
    update {schema}.task_group as known set state = 'active'
    where known.name = resume_group.name
    returning known.* into resumed;
    insert into {schema}.group_to_check (group_name) values (resume_group.name);
    if resumed.name is null then
        resumed.name := resume_group.name;
        resumed.paused := false;
        resumed.ordered := false;
        resumed.state := 'active';
        resumed.pause_on_failure := false;
    end if;
    return resumed;
end
$$;
