-- Jobs that people start; the head of public/tasks.sql says what holds for all functions for people.

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
                case when {schema}.is_limited((asked.definition).group_name) then 'slot' end as wait_reason
            from {schema}.jobs_asked_for(jobs) as asked
            where not exists (select from {schema}.active_job where active_job.id = ids[asked.index + 1])
            offset 0
        ) as asked
        cross join lateral {schema}.new_job(
            -- In an ordered group their turns come in the order of the call.
            asked.definition, asked.id, {schema}.now() + asked.index * interval '1 microsecond', null, 'manual',
            asked.exclusive, asked.wait_reason,
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
