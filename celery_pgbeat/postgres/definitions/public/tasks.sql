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
    perform {schema}.refuse_owners_of_code(array[schedule.managed_by]);
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
-- too. Without the ids of its jobs nothing of that is sent. The mark goes: what is being decided by the old tables is
-- decided again. A row that could not be planned is planned
-- from now, unless it is due.
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
        jobs_ahead = null,
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

-- Start a job of a periodic task now; returns its id. See start_manual_job().
create or replace function {schema}.trigger(
    name text, force boolean default false, args jsonb default null, kwargs jsonb default null
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return {schema}.start_manual_job(name, force, args, kwargs, null);
end
$$;

revoke execute on function {schema}.trigger(text, boolean, jsonb, jsonb) from public;

-- Start many jobs now, each as trigger() does, all or none; returns the id of each.
--
-- `jobs` is an array of objects with `name`, and with `args` and `kwargs` for that job alone: what is omitted or null
-- is that of the row. NULL, which jsonb_agg() returns for no rows, starts none. A row may have several of the jobs.
--
-- The rows are locked in name order, as everywhere where many are written; the lock and the fence are those of
-- trigger(). Each step is one statement for all jobs: 10,000 jobs of one row take less than a second, and a minute with
-- a call of trigger() for each.
create or replace function {schema}.trigger_many(jobs jsonb, force boolean default false)
returns table (index int, name text, job uuid)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    ids uuid[];
    known text[];
    wrong record;
    rest int := jsonb_array_length(case when jsonb_typeof(jobs) = 'array' then jobs end);
    made int;
begin
    if jsonb_typeof(jobs) <> 'array' then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('jobs is a JSON %s, not an array', jsonb_typeof(jobs));
    elsif coalesce(rest, 0) = 0 then
        return;
    end if;

    -- What is an object with a name can be looked up; only the row says whether a key may be shown.
    select ordinality - 1 as index, value as job, jsonb_typeof(value) as kind into wrong
    from jsonb_array_elements(jobs) with ordinality
    where jsonb_typeof(value) <> 'object' or jsonb_typeof(value -> 'name') is distinct from 'string'
    order by ordinality
    limit 1;
    if found then
        raise exception using errcode = 'invalid_parameter_value',
            message = case
                when wrong.kind <> 'object' then format('jobs[%s] is a JSON %s, not an object', wrong.index, wrong.kind)
                else format('jobs[%s] has no name of a periodic task', wrong.index)
            end,
            hint = 'Write each job as {"name": "nightly", "args": [], "kwargs": {}}; args and kwargs may be omitted.';
    end if;

    with locked as (
        select name from {schema}.periodic_task
        where name in (select value ->> 'name' from jsonb_array_elements(jobs))
        order by name
        for no key update
    ),
    fenced as (
        update {schema}.periodic_task as stored
        set marked_by = null, marked_at = null
        from locked
        where stored.name = locked.name
        returning stored.name
    )
    select array_agg(name) into known from fenced;
    select ordinality - 1 as index, value ->> 'name' as name into wrong
    from jsonb_array_elements(jobs) with ordinality
    where value ->> 'name' <> all (coalesce(known, '{}'))
    order by ordinality
    limit 1;
    if found then
        raise exception using errcode = 'no_data_found',
            message = format('jobs[%s]: %s', wrong.index, {schema}.unknown_in_words(wrong.name));
    end if;
    perform {schema}.refuse_finished_group(member.group_name)
    from (
        select distinct group_name from {schema}.periodic_task where name = any (known) and group_name is not null
    ) as member;

    select given.index, given.why into wrong
    from (
        select asked.index, case
            when asked.job - array['name', 'args', 'kwargs'] <> '{}' then format(
                'has %s, which is none of name, args and kwargs',
                case
                    when (asked.definition).sensitive is not false then '<sensitive>'
                    else (
                        select {schema}.quoted(key) from jsonb_object_keys(asked.job) as key
                        where key not in ('name', 'args', 'kwargs')
                        limit 1
                    )
                end)
            when not asked.has_arguments then null
            when (asked.definition).lazy then format(
                'the arguments of %s are computed when it is sent (BeatLazyFunc): trigger it without arguments',
                {schema}.quoted((asked.definition).name))
            else {schema}.wrong_arguments(asked.definition)
        end as why
        from {schema}.jobs_asked_for(jobs) as asked
        offset 0
    ) as given
    where given.why is not null
    order by given.index
    limit 1;
    if found then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('jobs[%s]: %s', wrong.index, wrong.why);
    end if;

    ids := array(select gen_random_uuid() from generate_series(1, rest));
    loop
        if force is not true then
            select asked.index, asked.nth, (asked.definition).name, (asked.definition).overlap, other.id, other.state
            into wrong
            from {schema}.jobs_asked_for(jobs) as asked
            left join lateral (
                select id, state from {schema}.active_job
                where periodic_task = (asked.definition).name and asked.nth = 1
                order by created_at
                limit 1
            ) as other on true
            where (asked.definition).overlap <> 'allow' and (asked.nth > 1 or other.id is not null)
                and not exists (select from {schema}.active_job where id = ids[asked.index + 1])
            order by asked.index
            limit 1;
            if wrong.id is not null then
                raise exception using errcode = 'object_in_use',
                    message = format('A job of %s is not final yet: %s (%s)',
                                     {schema}.quoted(wrong.name), wrong.id, wrong.state),
                    hint = case
                        when wrong.state = 'error' then 'Decide about it with retry_job() or fail_job(), '
                        else 'Wait for its end, '
                    end || 'or send one beside it with force => true.';
            elsif found then
                raise exception using errcode = 'object_in_use',
                    message = format('jobs[%s] is one more job of %s, whose overlap (%s) permits one at a time: set '
                                         'overlap to allow, or start them with force',
                                     wrong.index, {schema}.quoted(wrong.name), wrong.overlap);
            end if;
        end if;
        insert into {schema}.active_job
        select fresh.*
        from (
            select asked.definition, ids[asked.index + 1] as id, asked.index,
                (asked.definition).overlap <> 'allow' and asked.nth = 1 and not exists (
                    select from {schema}.active_job where periodic_task = (asked.definition).name) as exclusive,
                case when {schema}.is_limited((asked.definition).group_name) then 'slot' end as waits_for
            from {schema}.jobs_asked_for(jobs) as asked
            where not exists (select from {schema}.active_job where active_job.id = ids[asked.index + 1])
            offset 0
        ) as asked
        cross join lateral {schema}.new_job(
            -- In an ordered group their turns come in the order of the call.
            asked.definition, asked.id, {schema}.now() + asked.index * interval '1 microsecond', null, 'manual',
            asked.exclusive, asked.waits_for,
            coalesce((asked.definition).pickup_deadline, interval '1 day')) as fresh
        on conflict do nothing;
        get diagnostics made = row_count;
        rest := rest - made;
        exit when rest = 0;
        -- A worker has started a lost job of one of these names since we looked: that job blocks this one now.
    end loop;
    -- One entry for each periodic task, in name order.
    perform {schema}.record_act(
        'triggered', asked.name, job => case when asked.count = 1 then asked.first end,
        details => case when asked.count > 1 then jsonb_build_object('jobs', asked.count) end)
    from (
        select value ->> 'name' as name, count(*) as count, (array_agg(ids[ordinality]))[1] as first
        from jsonb_array_elements(jobs) with ordinality
        group by 1
        order by 1
        offset 0
    ) as asked;
    perform pg_notify({channel}, '');
    return query
        select (ordinality - 1)::int, value ->> 'name', ids[ordinality]
        from jsonb_array_elements(jobs) with ordinality
        order by ordinality;
end
$$;

revoke execute on function {schema}.trigger_many(jsonb, boolean) from public;

-- Run a job that has failed again. One that waits for a decision runs again itself, under its own id. One that has
-- ended without success is submitted again, as a new manual job of its periodic task.
--
-- `arguments_of` says whose arguments it has: those of the job, where they are known (of a job that waits for a
-- decision, of a manual job, and of a lost one that never started), or those that the row has now. All else is as for
-- trigger(), with the caller's rights. Any other job that is not final is refused.
create or replace function {schema}.retry_job(
    id uuid, force boolean default false, out job uuid, out periodic_task text, out arguments_of text
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    ended record;
    present record;
    arguments jsonb;
begin
    if retry_job.id is null then
        raise exception using errcode = 'invalid_parameter_value', message = 'id is null, not the id of a job';
    end if;
    periodic_task := {schema}.run_again(retry_job.id);
    if periodic_task is not null then
        job := retry_job.id;
        arguments_of := 'job';
        return;
    end if;
    select known.periodic_task, known.task, known.state, known.finished_at is not null as is_final into ended
    from {schema}.job as known
    where known.id = retry_job.id
    limit 1;
    if not found then
        raise exception using errcode = 'no_data_found', table = 'job',
            message = format('There is no job %s: jobs are kept for pgbeat_retention', retry_job.id);
    elsif not ended.is_final then
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'job',
            message = format('Job %s of %s is %s, not final: wait for its end',
                             retry_job.id, {schema}.quoted(ended.periodic_task), ended.state)
                || case
                    when ended.state = 'sent' then ', or have its message sent again with resend_job()' else ''
                end;
    elsif ended.state = 'succeeded' then
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'job',
            message = format('Job %s of %s has succeeded: trigger() starts another one',
                             retry_job.id, {schema}.quoted(ended.periodic_task));
    end if;

    select task.task, task.lazy into present
    from {schema}.periodic_task as task
    where task.name = ended.periodic_task
    for no key update;
    if not found then
        perform {schema}.refuse_unknown(ended.periodic_task);
    elsif present.task is distinct from ended.task then
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'job',
            message = format('Job %s of %s called the task %s, and the periodic task calls %s now: use trigger()',
                             retry_job.id, {schema}.quoted(ended.periodic_task),
                             coalesce({schema}.quoted(ended.task), 'null'),
                             coalesce({schema}.quoted(present.task), 'null'));
    end if;
    if not present.lazy then
        select coalesce(known.arguments, known.restart_data -> 'message') into arguments
        from {schema}.finished_job as known
        where known.id = retry_job.id
        limit 1;
    end if;

    job := {schema}.start_manual_job(
        ended.periodic_task, retry_job.force, arguments -> 'args', arguments -> 'kwargs', retry_job.id);
    update {schema}.group_failure as failure set retried = true where failure.job = retry_job.id;
    periodic_task := ended.periodic_task;
    arguments_of := case when arguments is null then 'periodic task' else 'job' end;
end
$$;
