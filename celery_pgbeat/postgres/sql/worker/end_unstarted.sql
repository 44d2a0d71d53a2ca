-- End a job whose message a worker dropped before its start: revoked, expired, unknown, not allowed.
--
-- A heartbeat that came between the message and this may have taken it for one that runs, and written its token.
--
-- It counts as finish.sql does. One that failed, and whose row asks, waits for a decision.
with failed as materialized (
    select id, periodic_task, pause_after_failures from {schema}.active_job
    where id = %(job)s and run = %(run)s and attempt <= %(attempt)s
        and (state in ('pending', 'sent', 'retrying') or state = 'running' and token = %(token)s::uuid)
        and (%(task)s::text is null or task = %(task)s)
        and {schema}.asks(on_error, tracking, stop_request, %(state)s::text)
    for update
),
counted as materialized (
    select {schema}.count_end(periodic_task, id, 'failed') from failed where pause_after_failures is not null
),
deleted as (
    delete from {schema}.active_job as job
    where id = %(job)s and run = %(run)s and attempt <= %(attempt)s
        and (state in ('pending', 'sent', 'retrying') or state = 'running' and token = %(token)s::uuid)
        and (%(task)s::text is null or task = %(task)s)
        and not {schema}.asks(on_error, tracking, stop_request, %(state)s::text)
    returning job
),
finished as (
    insert into {schema}.finished_job
    select final.* from deleted
    cross join lateral {schema}.archived(
        job, %(state)s::text, %(reason)s, %(error)s, %(attempt)s, worker => %(worker)s) as final
    where (job).pause_after_failures is null or (job).origin = 'backfill'
        or {schema}.count_end((job).periodic_task, (job).id, %(state)s::text) is not null
    returning id
)
select id from finished
union all
select asking.* from failed
cross join lateral {schema}.ask(failed.id, %(error)s::text, %(attempt)s, %(worker)s) as asking (id)
where (select count(*) from counted) >= 0
