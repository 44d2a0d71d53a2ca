-- End many jobs at once whose messages a worker dropped; returns those whose rows were locked.
--
-- A function for the reasons of finish_many: it keeps its plan, and the plan must serve any size of table and of batch.
create or replace function {schema}.end_unstarted_many(
    jobs uuid[], runs int[], attempts int[], workers text[], states text[], reasons text[], errors text[],
    tasks text[] default null
) returns table (id uuid)
language plpgsql rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return query
    -- Two copies of one message may both have been dropped: one of them ends the job.
    with told as materialized (
        select * from unnest(end_unstarted_many.jobs, end_unstarted_many.runs, end_unstarted_many.attempts,
                             end_unstarted_many.workers, end_unstarted_many.states, end_unstarted_many.reasons,
                             end_unstarted_many.errors, end_unstarted_many.tasks)
            with ordinality as told (id, run, attempt, worker, state, reason, error, task, place)
    ),
    held as materialized (
        select job.id, told.attempt, told.worker, told.state, told.reason, told.error, told.place
        from {schema}.active_job as job
        join told on told.id = job.id
        where job.id = any (end_unstarted_many.jobs) and job.run = told.run and job.attempt <= told.attempt
            and job.state in ('pending', 'sent', 'retrying') and (told.task is null or job.task = told.task)
        order by job.id
        for update of job skip locked
    ),
    gone as (
        delete from {schema}.active_job as job
        using held
        where job.id = any (end_unstarted_many.jobs) and job.id = held.id
        returning job.*, held.attempt as told_attempt, held.worker as told_worker, held.state as told_state,
            held.reason as told_reason, held.error as told_error, held.place
    ),
    -- Those with pause_after_failures, name by name as in every count, and in the order of the worker's reports.
    counted as materialized (
        select {schema}.count_end(periodic_task, id, told_state)
        from (
            select periodic_task, id, told_state from gone
            where pause_after_failures is not null and origin <> 'backfill'
            order by periodic_task, place
        ) as ended
    ),
    finished as (
        insert into {schema}.finished_job (
            id, periodic_task, scheduled_for, origin, state, reason, task, queue, created_at, sent_at, started_at,
            finished_at, run, attempt, sends, beat, worker, error, busy_until)
        select id, periodic_task, scheduled_for, origin, told_state, told_reason, task, queue, created_at, sent_at,
            started_at, {schema}.now(), run, told_attempt, sends, beat, told_worker, told_error, busy_until
        from gone
        where (select count(*) from counted) >= 0
    )
    select job.id
    from {schema}.active_job as job
    join told on told.id = job.id
    where job.id = any (end_unstarted_many.jobs) and job.run = told.run and job.attempt <= told.attempt
        and job.state in ('pending', 'sent', 'retrying') and (told.task is null or job.task = told.task)
        and job.id not in (select id from held);
end
$$;
