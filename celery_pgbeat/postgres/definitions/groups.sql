-- Groups: what a write to `task_group` means, and which jobs get a slot in a group that has a limit.

-- Whether a group has a limit of jobs that are under way at a time. A group that has no row has none.
create or replace function {schema}.is_limited(group_name text) returns boolean
language sql stable
as $$
    select group_name is not null
        and exists (select from {schema}.task_group where name = group_name and max_active is not null)
$$;

-- Whether a group is paused, by what is committed. A pause and a row that joins the group at the same moment can miss
-- each other; `sync_group_pauses` repairs that.
create or replace function {schema}.is_paused(group_name text) returns boolean
language sql stable
as $$ select group_name is not null and exists (select from {schema}.task_group where name = group_name and paused) $$;

-- The groups in which a job waits that may have a slot, by one probe of the index for each group and each slot.
create or replace function {schema}.groups_with_room() returns setof text
language sql stable rows 10
set search_path = pg_catalog, pg_temp
as $$
    with recursive waited_for as (
        (select group_name from {schema}.active_job where waits_for = 'slot' order by group_name limit 1)
        union all
        select (
            select group_name from {schema}.active_job
            where waits_for = 'slot' and group_name > waited_for.group_name
            order by group_name
            limit 1)
        from waited_for
        where group_name is not null
    )
    select waited_for.group_name
    from waited_for
    left join {schema}.task_group as known on known.name = waited_for.group_name
    where waited_for.group_name is not null
        and (known.max_active is null or known.max_active > (
            select count(*) from {schema}.active_job as other
            where other.group_name = waited_for.group_name and other.slot is not null))
$$;

-- Refuse a group that is wrong before it is written. A group that is not paused has no reason.
create or replace function {schema}.task_group_written() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if not new.paused then
        new.pause_reason := null;
    end if;
    perform {schema}.validate_group(new);
    return new;
end
$$;

drop trigger if exists task_group_written on {schema}.task_group;
create trigger task_group_written
    before insert or update on {schema}.task_group
    for each row execute function {schema}.task_group_written();

-- Set whether the rows of a group are paused; returns how many changed. In name order, as everywhere where many rows
-- are written. The trigger of each row decides what its resumption means.
create or replace function {schema}.regroup_members(name text, paused boolean) returns int
language plpgsql
as $$
declare
    changed int;
begin
    perform from {schema}.periodic_task as member
    where member.group_paused = not regroup_members.paused and member.group_name = regroup_members.name
    order by member.name
    for no key update;
    update {schema}.periodic_task as member
    set group_paused = regroup_members.paused
    where member.group_paused = not regroup_members.paused and member.group_name = regroup_members.name;
    get diagnostics changed = row_count;
    return changed;
end
$$;

-- A write to a group reaches its rows at once, and a job that waits for a slot may find one.
create or replace function {schema}.task_group_changed() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op <> 'INSERT' and (tg_op = 'DELETE' or new.name <> old.name) then
        perform {schema}.regroup_members(old.name, false);
    end if;
    if tg_op <> 'DELETE' then
        perform {schema}.regroup_members(new.name, new.paused);
    end if;
    perform pg_notify({channel}, '');
    return null;
end
$$;

drop trigger if exists task_group_changed on {schema}.task_group;
create trigger task_group_changed
    after insert or update or delete on {schema}.task_group
    for each row execute function {schema}.task_group_changed();

-- Fail: there is no such group.
create or replace function {schema}.refuse_unknown_group(name text) returns void
language plpgsql
as $$
begin
    if refuse_unknown_group.name is null then
        raise exception using errcode = 'invalid_parameter_value', message = 'name is null, not the name of a group';
    end if;
    raise exception using errcode = 'no_data_found', table = 'task_group',
        message = format('No group is named %s.', {schema}.quoted(refuse_unknown_group.name)),
        hint = 'A group is named by the column group_name of a periodic task, or by limit_group().';
end
$$;

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

-- Pause all periodic tasks of a group. A job that waits for a slot is skipped when it would be sent. Messages already
-- at the broker still run.
create or replace function {schema}.pause_group(name text, reason text default null) returns {schema}.task_group
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    paused {schema}.task_group;
begin
    if not exists (select from {schema}.periodic_task as member
                   where member.group_paused in (true, false) and member.group_name = pause_group.name)
        and not exists (select from {schema}.task_group as known where known.name = pause_group.name)
    then
        perform {schema}.refuse_unknown_group(pause_group.name);
    end if;
    insert into {schema}.task_group as known (name, paused, pause_reason)
    values (pause_group.name, true, pause_group.reason)
    on conflict (name) do update set paused = true, pause_reason = excluded.pause_reason
    returning known.* into paused;
    return paused;
end
$$;

-- Resume a paused group: the next run of each of its rows is the next occurrence after now. A group that only its
-- members name was never paused: nothing happens.
create or replace function {schema}.resume_group(name text) returns {schema}.task_group
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    resumed {schema}.task_group;
begin
    update {schema}.task_group as known set paused = false
    where known.name = resume_group.name
    returning known.* into resumed;
    if not found then
        if not exists (select from {schema}.periodic_task as member
                       where member.group_paused in (true, false) and member.group_name = resume_group.name)
        then
            perform {schema}.refuse_unknown_group(resume_group.name);
        end if;
        resumed.name := resume_group.name;
        resumed.paused := false;
    end if;
    return resumed;
end
$$;
