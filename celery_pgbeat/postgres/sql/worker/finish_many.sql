-- Finish many jobs at once; returns those whose rows were locked.
--
-- Each as finish.sql and ask.sql do. A row that another transaction locks, perhaps for minutes, is skipped: the others
-- must not wait for it. The caller reports it again. If it was not locked but ended at this very moment, the next
-- report finds nothing.
--
-- A function, because that keeps its plan: planning this anew took longer than finishing ten. As in submit, the
-- plan must serve any size of table and of batch.
-- function
create or replace function {schema}.finish_many(
    jobs uuid[], runs int[], attempts int[], tokens uuid[], workers text[], states text[], errors text[]
) returns table (id uuid)
language plpgsql rows 1
set search_path = pg_catalog, pg_temp
{keeps_one_plan}
as $$
#variable_conflict use_column
begin
    return query
    with reported as materialized (
        select * from unnest(
            finish_many.jobs, finish_many.runs, finish_many.attempts, finish_many.tokens, finish_many.workers,
            finish_many.states, finish_many.errors)
            with ordinality as reported (id, run, attempt, token, worker, state, error, place)
    ),
    locked as materialized (
        select reported.*, job.periodic_task, job.pause_after_failures,
            {schema}.asks(job.on_error, job.tracking, job.stop_request, reported.state) as asks
        from {schema}.active_job as job
        join reported on reported.id = job.id
        where job.id = any (finish_many.jobs) and job.run = reported.run
            and (job.token = reported.token or job.token is null and job.attempt <= reported.attempt)
        order by job.id
        for update of job skip locked
    ),
    deleted as (
        delete from {schema}.active_job as job
        using locked
        where job.id = any (finish_many.jobs) and job.id = locked.id and not locked.asks
        returning job, locked.*
    ),
    asked as materialized (
        select {schema}.ask(id, error, attempt, worker) from locked where asks
    ),
    -- Those with pause_after_failures: name by name, as in every count, and in the order of the worker's reports.
    counted as materialized (
        select {schema}.count_end(name, id, state)
        from (
            select (job).periodic_task as name, id, state, place from deleted
            where (job).pause_after_failures is not null and (job).origin <> 'backfill'
                and ((job).stop_request is null or state = 'succeeded')
            union all
            select periodic_task, id, state, place from locked where asks and pause_after_failures is not null
            order by name, place
        ) as ended
    ),
    finished as (
        insert into {schema}.finished_job
        select final.* from deleted
        cross join lateral {schema}.archived(
            job, case when state = 'failed' and (job).stop_request is not null then 'revoked' else state end,
            error => coalesce('asked to ' || (job).stop_request || ': ', '') || error,
            attempt => attempt, worker => coalesce((job).worker, worker)) as final
        where (select count(*) from counted) >= 0 and (select count(*) from asked) >= 0
    )
    select job.id
    from {schema}.active_job as job
    join reported on reported.id = job.id
    where job.id = any (finish_many.jobs) and job.run = reported.run
        and (job.token = reported.token or job.token is null and job.attempt <= reported.attempt)
        and job.id not in (select id from locked);
end
$$;
-- call
select id from {schema}.finish_many(
    %(jobs)s::uuid[], %(runs)s::int[], %(attempts)s::int[], %(tokens)s::uuid[], %(workers)s::text[],
    %(states)s::text[], %(errors)s::text[])
