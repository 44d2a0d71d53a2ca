-- The functions for SQL. Each works inside the caller's own transaction.
--
-- Arguments have the names of the columns; inside a function the argument is written `function.argument`, and a bare
-- name means the column.
--
-- Postgres looks up functions and operators of a body in pg_catalog alone (search_path): a better match that another
-- user has put into a schema of the caller's search_path would run with the caller's rights. Every function here that a
-- statement, a view or a trigger calls sets the search_path; the functions that these call inherit it.

-- A function schedule() with other parameters than the one below would stay beside it, and a call could mean both.
do $$
declare
    other regprocedure;
begin
    for other in
        select oid from pg_proc
        where pronamespace = {channel}::regnamespace and proname = 'schedule'
            and proargnames <> array[{parameter_names}]
    loop
        execute format('drop function %s', other);
    end loop;
end
$$;

-- Declare a periodic task: insert it, or change the columns that differ. An equal definition writes nothing at all.
--
-- An omitted argument becomes the default; columns outside the definition stay: enabled and the pause columns,
-- next_run_at, the state. Without a timezone the app's zone counts: the one that a beat filled in stays, and is equal.
-- `keep_next_run` keeps next_run_at even when the schedule changes (a row without a next run is planned all the same).
-- A row that code declares is refused, unless `take_over` is set: it then belongs to `managed_by`. That may not be the
-- code of an app.
create or replace function {schema}.schedule(
    name text,
    task text,
    schedule text default null,
    {parameters},
    managed_by text default 'sql',
    keep_next_run boolean default false,
    take_over boolean default false
) returns {schema}.periodic_task
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    kept timestamptz;
    declared {schema}.periodic_task;
    wrong constant text := {schema}.not_a_priority(schedule.priority);
begin
    if wrong is not null then  -- else the type of the column would refuse it, with another error
        raise exception using errcode = 'invalid_parameter_value', message = wrong;
    end if;
    perform {schema}.refuse_managers_of_code(array[schedule.managed_by]);
    loop
        -- The lock falls on a row that differs, never on an equal one.
        select next_run_at into kept
        from {schema}.periodic_task as stored
        where stored.name = schedule.name
            and (declared_timezone, {stored.definition}, managed_by)
                is distinct from (schedule.timezone, {schedule.definition}, schedule.managed_by)
        for no key update;
        if found then
            if schedule.take_over is not true then
                perform {schema}.refuse_rows_of_code(array[schedule.name], array[schedule.managed_by]);
            end if;
            update {schema}.periodic_task as stored
            set timezone = case
                    when schedule.timezone is null and declared_timezone is null then timezone
                    else schedule.timezone
                end,
                declared_timezone = schedule.timezone,
                {definition = schedule},
                managed_by = schedule.managed_by
            where stored.name = schedule.name
            returning stored.* into declared;
            if schedule.keep_next_run and declared.next_run_at is distinct from kept then
                update {schema}.periodic_task as stored
                set next_run_at = kept
                where stored.name = schedule.name
                returning stored.* into declared;
            end if;
            return declared;
        end if;

        select * into declared from {schema}.periodic_task as stored where stored.name = schedule.name;
        if found then
            return declared;
        end if;

        insert into {schema}.periodic_task (name, timezone, {definition}, managed_by)
        values (schedule.name, schedule.timezone, {schedule.definition}, schedule.managed_by)
        on conflict do nothing
        returning * into declared;
        if found then
            return declared;
        end if;
        -- Another transaction has inserted the name since we looked: compare with that row.
    end loop;
end
$$;

-- Remove a periodic task; returns whether there was one. Messages already at the broker still run.
create or replace function {schema}.unschedule(name text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    delete from {schema}.periodic_task as stored where stored.name = unschedule.name;
    return found;
end
$$;

-- Pause a periodic task, until a time or until it is resumed. A time in the past is refused: a beat would end such a
-- pause at once.
create or replace function {schema}.pause(name text, reason text default null, until timestamptz default null)
returns {schema}.periodic_task
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    paused {schema}.periodic_task;
begin
    if isfinite(pause.until) and pause.until <= {schema}.now() then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('until is %s, which is in the past', {schema}.shown(pause.until)),
            hint = 'Give a later time, or none: then the pause lasts until it is resumed.';
    end if;
    update {schema}.periodic_task as stored
    set enabled = false, pause_reason = pause.reason, paused_by = {schema}.acting_person(), paused_until = pause.until
    where stored.name = pause.name
    returning stored.* into paused;
    if not found then
        perform {schema}.refuse_unknown(pause.name);
    end if;
    return paused;
end
$$;

-- Resume a paused periodic task. Its next run is the next occurrence after now: occurrences while paused are never
-- caught up.
--
-- The same for a row that is not paused but was decided up to a time in the future, by a clock that was ahead: it is
-- paused first. The row trigger decides whether it was; a pause that was not needed does no harm.
--
-- A notice says if nothing was paused, and if something else keeps the row from running.
create or replace function {schema}.resume(name text) returns {schema}.periodic_task
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    was_enabled boolean;
    resumed {schema}.periodic_task;
begin
    update {schema}.periodic_task as stored
    set enabled = false
    where stored.name = resume.name and enabled and greatest(last_run_at, planned_from) > {schema}.now();
    select enabled into was_enabled from {schema}.periodic_task as stored where stored.name = resume.name;
    update {schema}.periodic_task as stored
    set enabled = true
    where stored.name = resume.name
    returning stored.* into resumed;
    if not found then
        perform {schema}.refuse_unknown(resume.name);
    end if;
    if was_enabled then
        raise notice '% was not paused', {schema}.quoted(resume.name);
    end if;
    if resumed.group_paused or resumed.problem is not null
        or resumed.next_run_at is null and resumed.planned_revision = resumed.revision
    then
        raise notice '% has no next run: %', {schema}.quoted(resume.name),
            {schema}.row_in_words(resumed, null, null)
            || case when resumed.group_paused then '; resume_group() resumes a group' else '' end;
    end if;
    return resumed;
end
$$;

-- Have beats plan the next runs of periodic tasks again, after a change of the time zone tables; returns the names of
-- those concerned, see to_replan().
--
-- A row keeps its next run until a beat has planned it again, so that nothing is lost where no beat does, and the beat
-- knows which occurrence it was to be: see as_it_reads_now in planning/first.py, which reads what was planned ahead
-- too. Of a row that is not planned a mark submits nothing at once. The mark goes: what is being decided by the old
-- tables is decided again. A row that could not be planned is planned from now, unless it is due.
--
-- It has the rights of the owner, because beats alone write planned_revision. The row trigger does not run: an author's
-- next_run_at is a run of its own.
create or replace function {schema}.replan(names text[] default null, zone text default null) returns setof text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    now constant timestamptz := {schema}.now();
    meant text[];
    missing text;
begin
    meant := array(select {schema}.to_replan(replan.names, zone));
    perform from {schema}.periodic_task where name = any (meant) order by name for no key update;
    -- After the wait for a lock, in which a row may have been removed.
    missing := (
        select min(given) from unnest(replan.names) as given
        where not exists (select from {schema}.periodic_task where name = given));
    if missing is not null then
        perform {schema}.refuse_unknown(missing);
    end if;
    meant := array(select {schema}.to_replan(meant, null));  -- while it waited for a lock a row may have changed
    update {schema}.periodic_task
    set planned_revision = -1,
        planned_from = case when next_run_at is null then greatest(now, last_run_at) else planned_from end,
        judged_from = null,
        problem = null,
        marked_by = null,
        marked_at = null,
        taken_over = false,
        updated_at = case when enabled then now else updated_at end
    where name = any (meant);
    if cardinality(meant) > 0 then
        perform pg_notify({channel}, '');
    end if;
    return query select unnest(meant);
end
$$;

revoke execute on function {schema}.replan(text[], text) from public;
