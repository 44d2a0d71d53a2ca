-- Give up a start whose process died: the job is lost, or stays until its deadline if it may run again.
--
-- The rerun waits until busy_until has passed. So a job that kills its process each time does so every half minute and
-- not in a tight loop. Only the start with this token is given up. A job with a stop request never runs again.
with locked as materialized (
    select id, on_lost = 'rerun' and stop_request is null as again from {schema}.active_job
    where id = %(job)s and run = %(run)s and token = %(token)s
    for no key update
),
deleted as (
    delete from {schema}.active_job as job
    using locked
    where job.id = locked.id and not locked.again
    returning job
),
noted as (
    update {schema}.active_job as job
    set error = %(error)s
    from locked
    where job.id = locked.id and locked.again
    returning job.id
)
insert into {schema}.finished_job
select final.* from deleted
cross join lateral {schema}.archived(
    job, 'lost', error => coalesce('asked to ' || (job).stop_request || ': ', '') || %(error)s::text) as final
returning id
