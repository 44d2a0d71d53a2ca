-- What the functions for people read, make and refuse with.

-- The periodic task that may have been meant. Each similar name is one probe of the primary key, so a million rows cost
-- no more than ten.
create or replace function {schema}.similar_name(name text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select task.name from {schema}.periodic_task as task
    where task.name = any ({schema}.similar_names(similar_name.name))
    order by task.name
    limit 1
$$;

-- Why a declaration in code is not in the table, as the end of a sentence.
create or replace function {schema}.refusal_in_words(app text, reason text) returns text
language sql immutable parallel safe
as $$ select app || ' declares it, and its beats refuse that: ' || reason $$;

-- That there is no such periodic task: because its declaration is refused, or with the name of a similar one.
create or replace function {schema}.unknown_in_words(name text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select 'No periodic task is named ' || {schema}.quoted(unknown_in_words.name) || coalesce(
        (
            select ': ' || {schema}.refusal_in_words(app, reason)
            from {schema}.refused_declaration as refused
            where refused.name = unknown_in_words.name
            order by app
            limit 1
        ),
        '. Did you mean ' || {schema}.quoted({schema}.similar_name(unknown_in_words.name)) || '?',
        '.')
$$;

-- Raise the error that there is no such periodic task.
create or replace function {schema}.refuse_unknown(name text) returns void
language plpgsql
as $$
#variable_conflict use_column
begin
    if refuse_unknown.name is null then
        raise exception using errcode = 'invalid_parameter_value',
            message = 'name is null, not the name of a periodic task';
    end if;
    raise exception using errcode = 'no_data_found', message = {schema}.unknown_in_words(refuse_unknown.name);
end
$$;

-- Refuse to declare periodic tasks that the code of an app declares: its beats would leave such a row alone from then
-- on.
create or replace function {schema}.refuse_rows_of_code(names text[], managers text[]) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    theirs record;
begin
    select name, managed_by, count(*) over () as count into theirs
    from {schema}.periodic_task as stored
    join unnest(names, managers) as given (name, manager) using (name)
    where stored.name = any (names) and managed_by <> manager
        and starts_with(managed_by, 'code:') and declared is not null and not declared ? 'withdrawn'
    order by name
    limit 1;
    if found then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('%s is declared in code, by %s', {schema}.quoted(theirs.name), theirs.managed_by)
                || case when theirs.count > 1 then format(', and so are %s more', theirs.count - 1) else '' end,
            hint = 'Change it in the code, or single columns with update; with take_over the row becomes yours, and '
                'the code no longer changes it';
    end if;
end
$$;

-- Refuse `managed_by` of the code of an app: its beats would take a row that a caller has declared for one of theirs.
create or replace function {schema}.refuse_managers_of_code(managers text[]) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    theirs constant text := (select min(manager) from unnest(managers) as manager where starts_with(manager, 'code:'));
begin
    if theirs is not null then
        raise exception using errcode = 'invalid_parameter_value',
            message = format('managed_by is %s: only the beats of that app declare such rows, from its code',
                             {schema}.quoted(theirs)),
            hint = 'Declare the row in the code, or choose another managed_by; to give a row to the code, update its '
                'managed_by';
    end if;
end
$$;

-- The named windows behind these names, as {name: [windows, timezone]}; without the names that have no row.
create or replace function {schema}.windows_of(names text[]) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select coalesce(jsonb_object_agg(name, jsonb_build_array(windows, timezone)), '{}')
        from {schema}.blackout
        where name = any (names));
end
$$;

-- The periodic tasks that replan() would have planned again, in name order.
--
-- `names` NULL means all, `zone` only those that name this time zone: in their timezone, in the text of their schedule,
-- or in a blackout window. A row whose next run is right stays as it is, so to ask for too many does no harm.
--
-- Left out are: a finished row, which has decided its last occurrence; a row without a schedule; a next run that SQL
-- has set, which is an instant and no reading of a clock; what is to be planned anyway.
create or replace function {schema}.to_replan(names text[], zone text) returns setof text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select name from {schema}.periodic_task as task
    where (to_replan.names is null or name = any (to_replan.names))
        and schedule is not null
        and case
            when problem is not null then next_run_at is null or planned_for is not null
            else planned_revision = revision and planned_for is not null
        end
        and (zone is null
            or strpos(lower(concat_ws(' ', timezone, schedule, array_to_string(blackout, ' '))), lower(zone)) > 0
            or exists (
                select from {schema}.blackout as used
                where used.name = any (task.windows_used)
                    and strpos(lower(concat_ws(' ', timezone, array_to_string(windows, ' '))), lower(zone)) > 0))
    order by name
$$;

-- Start a job of a periodic task now, also if it is paused, finished or has no schedule; returns the job's id. For
-- trigger() and retry_job(); `retries` is the job that it retries.
--
-- `args` and `kwargs` are for this job alone; what is omitted is that of the row.
--
-- Taking the mark off comes first. It locks the row and is the fence: a submit that is under way for this row changes
-- nothing, and the next one does not wait but skips the row until the caller's transaction has ended. It has the rights
-- of the owner, so that a caller needs no right to write jobs, whose messages are not validated. If its group has a
-- limit the job waits for a slot: a slot taken here would be blocked for others until the caller commits.
create or replace function {schema}.start_manual_job(
    name text, force boolean, args jsonb, kwargs jsonb, retries uuid
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    definition {schema}.periodic_task;
    other {schema}.active_job;
    wanted constant uuid := gen_random_uuid();
    job uuid;
    limited boolean;
begin
    update {schema}.periodic_task as stored
    set marked_by = null, marked_at = null
    where stored.name = start_manual_job.name
    returning stored.* into definition;
    if not found then
        perform {schema}.refuse_unknown(start_manual_job.name);
    end if;
    if start_manual_job.args is not null or start_manual_job.kwargs is not null then
        if definition.lazy then
            raise exception using errcode = 'invalid_parameter_value',
                message = format('the arguments of %s are computed when it is sent (BeatLazyFunc)',
                                 {schema}.quoted(definition.name)),
                hint = 'Trigger it without arguments.';
        end if;
        definition.args := coalesce(start_manual_job.args, definition.args);
        definition.kwargs := coalesce(start_manual_job.kwargs, definition.kwargs);
        perform {schema}.refuse_for({schema}.wrong_arguments(definition));
    end if;
    perform {schema}.refuse_finished_group(definition.group_name);
    limited := {schema}.is_limited(definition.group_name);

    loop
        select * into other from {schema}.active_job
        where periodic_task = definition.name
        order by created_at
        limit 1;
        if found and definition.overlap <> 'allow' and not start_manual_job.force then
            raise exception using errcode = 'object_in_use',
                message = format('A job of %s is not final yet: %s (%s)',
                                 {schema}.quoted(definition.name), other.id, other.state),
                hint = case
                    when other.state = 'error' then 'Decide about it with retry_job() or fail_job(), '
                    when other.kind = 'human' then 'End it with finish() or cancel_job(), '
                    else 'Wait for its end, '
                end || 'or send one beside it with force => true.';
        end if;
        insert into {schema}.active_job
        select * from {schema}.new_job(
            definition, wanted, {schema}.now(), null, 'manual',
            definition.overlap <> 'allow' and other.id is null, case when limited then 'slot' end,
            coalesce(definition.pickup_deadline, interval '1 day'))
        on conflict do nothing
        returning id into job;
        exit when found;
        -- A worker has started a lost job of this name since we looked: that job blocks this one now.
    end loop;
    perform {schema}.record_act(
        case when start_manual_job.retries is null then 'triggered' else 'retried' end, definition.name, job => job,
        details => case
            when start_manual_job.retries is not null then jsonb_build_object('retries', start_manual_job.retries)
        end);
    perform pg_notify({channel}, '');
    return job;
end
$$;

revoke execute on function {schema}.start_manual_job(text, boolean, jsonb, jsonb, uuid) from public;

-- The jobs that a caller of trigger_many() asks for, each with the definition of its row, in which the arguments of the
-- job replace those of the row. `index` counts from 0, `nth` counts the jobs of a row from 1. A job of an unknown name
-- is left out.
create or replace function {schema}.jobs_asked_for(jobs jsonb)
returns table (index int, nth bigint, job jsonb, has_arguments boolean, definition {schema}.periodic_task)
language sql stable
as $$
    select given.index, given.nth, given.job, given.args is not null or given.kwargs is not null,
        case
            when given.args is null and given.kwargs is null then stored
            else jsonb_populate_record(stored, jsonb_build_object(
                'args', coalesce(given.args, stored.args), 'kwargs', coalesce(given.kwargs, stored.kwargs)))
        end
    from (
        select (ordinality - 1)::int as index, value ->> 'name' as name, value as job,
            nullif(value -> 'args', 'null') as args, nullif(value -> 'kwargs', 'null') as kwargs,
            row_number() over (partition by value ->> 'name' order by ordinality) as nth
        from jsonb_array_elements(jobs) with ordinality
    ) as given
    join {schema}.periodic_task as stored using (name)
$$;
