-- End many jobs at once whose messages a worker dropped; returns those whose rows were locked.
--
-- Each as end_unstarted.sql does. A row that another transaction has locked is left out: the others must not wait for
-- it. The caller reports it again. If it was not locked but ended at this very moment, the next report finds nothing.
--
-- A function for the reasons of finish_many: it keeps its plan, and the plan must serve any size of table and of batch.
-- function
create or replace function {schema}.end_unstarted_many(
    jobs uuid[], runs int[], attempts int[], workers text[], states text[], reasons text[], errors text[],
    tasks text[], tokens uuid[]
) returns table (id uuid)
language plpgsql rows 1
set search_path = pg_catalog, pg_temp
{keeps_one_plan}
as $$
#variable_conflict use_column
begin
    return query
    -- Two copies of one message may both have been dropped: one of them ends the job.
    with reported as materialized (
        select * from unnest(
            end_unstarted_many.jobs, end_unstarted_many.runs, end_unstarted_many.attempts, end_unstarted_many.workers,
            end_unstarted_many.states, end_unstarted_many.reasons, end_unstarted_many.errors, end_unstarted_many.tasks,
            end_unstarted_many.tokens)
            with ordinality as reported (id, run, attempt, worker, state, reason, error, task, token, place)
    ),
    locked as materialized (
        select reported.*, job.periodic_task, job.pause_after_failures,
            {schema}.asks(job.on_error, job.tracking, job.stop_request, reported.state) as asks
        from {schema}.active_job as job
        join reported on reported.id = job.id
        where job.id = any (end_unstarted_many.jobs) and job.run = reported.run and job.attempt <= reported.attempt
            and (job.state in ('pending', 'sent', 'retrying') or job.state = 'running' and job.token = reported.token)
            and (reported.task is null or job.task = reported.task)
        order by job.id
        for update of job skip locked
    ),
    deleted as (
        delete from {schema}.active_job as job
        using locked
        where job.id = any (end_unstarted_many.jobs) and job.id = locked.id and not locked.asks
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
            union all
            select periodic_task, id, state, place from locked where asks and pause_after_failures is not null
            order by name, place
        ) as ended
    ),
    finished as (
        insert into {schema}.finished_job
        select final.* from deleted
        cross join lateral {schema}.archived(job, state, reason, error, attempt, worker => worker) as final
        where (select count(*) from counted) >= 0 and (select count(*) from asked) >= 0
    )
    select job.id
    from {schema}.active_job as job
    join reported on reported.id = job.id
    where job.id = any (end_unstarted_many.jobs) and job.run = reported.run and job.attempt <= reported.attempt
        and (job.state in ('pending', 'sent', 'retrying') or job.state = 'running' and job.token = reported.token)
        and (reported.task is null or job.task = reported.task)
        and job.id not in (select id from locked);
end
$$;
-- call
select id from {schema}.end_unstarted_many(
    %(jobs)s::uuid[], %(runs)s::int[], %(attempts)s::int[], %(workers)s::text[], %(states)s::text[],
    %(reasons)s::text[], %(errors)s::text[], %(tasks)s::text[], %(tokens)s::uuid[])
