-- Finish many jobs at once; answers those to be told again, whose rows somebody else holds.
--
-- A function, because that keeps its plan: planning this anew took longer than finishing ten. As in submit_free, the
-- plan must serve any size of table and of batch.
create or replace function {schema}.finish_many(
    jobs uuid[], runs int[], attempts int[], tokens uuid[], workers text[], states text[], errors text[]
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
    with told as materialized (
        select * from unnest(finish_many.jobs, finish_many.runs, finish_many.attempts, finish_many.tokens, finish_many.workers,
                             finish_many.states, finish_many.errors)
            with ordinality as told (id, run, attempt, token, worker, state, error, place)
    ),
    held as materialized (
        select job.id, told.attempt, told.worker, told.state, told.error, told.place
        from {schema}.active_job as job
        join told on told.id = job.id
        where job.id = any (finish_many.jobs) and job.run = told.run
            and (job.token = told.token or job.token is null and job.attempt <= told.attempt)
        order by job.id
        for update of job skip locked
    ),
    gone as (
        delete from {schema}.active_job as job
        using held
        where job.id = any (finish_many.jobs) and job.id = held.id
        returning job.*, held.attempt as told_attempt, held.worker as told_worker, held.state as told_state,
            held.error as told_error, held.place
    ),
    -- Those with pause_after_failures, in the order in which they were told, and name by name, as everybody does who counts.
    counted as materialized (
        select {schema}.count_end(periodic_task, id, told_state)
        from (
            select periodic_task, id, told_state from gone
            where pause_after_failures is not null and origin <> 'backfill' and (stop_request is null or told_state = 'succeeded')
            order by periodic_task, place
        ) as ended
    ),
    finished as (
        insert into {schema}.finished_job (
            id, periodic_task, scheduled_for, origin, state, task, queue, created_at, sent_at, started_at, finished_at,
            run, attempt, sends, beat, worker, error, busy_until)
        select id, periodic_task, scheduled_for, origin,
            case when told_state = 'failed' and stop_request is not null then 'revoked' else told_state end,
            task, queue, created_at, sent_at, started_at,
            {schema}.now(), run, told_attempt, sends, beat, coalesce(worker, told_worker),
            coalesce('asked to ' || stop_request || ': ', '') || told_error, busy_until
        from gone
        where (select count(*) from counted) >= 0
    )
    select job.id
    from {schema}.active_job as job
    join told on told.id = job.id
    where job.id = any (finish_many.jobs) and job.run = told.run
        and (job.token = told.token or job.token is null and job.attempt <= told.attempt)
        and job.id not in (select id from held);
end
$$;
