-- Finish a job: it leaves the active table in its final state, which frees its periodic task.
--
-- Only the start with this token may do so; a row that a failover set back has no token yet. A job with a stop request
-- that failed is revoked: the request is why it failed, as far as the worker can tell. A failed job that asks for a
-- decision is left to ask.sql. If failures in a row pause the periodic task, count_end() counts the end; all other jobs
-- pass that condition without a call. The count is not a part of this statement, because all parts are planned each
-- time, and that costs more than running them.
with deleted as (
    delete from {schema}.active_job as job
    where id = %(job)s and run = %(run)s
        and (token = %(token)s or token is null and attempt <= %(attempt)s)
        and not {schema}.asks(on_error, tracking, stop_request, %(state)s::text)
    returning job, stop_request is not null and %(state)s::text = 'failed' as is_revoked
)
insert into {schema}.finished_job
select final.* from deleted
cross join lateral {schema}.archived(
    job, case when is_revoked then 'revoked' else %(state)s::text end,
    error => coalesce('asked to ' || (job).stop_request || ': ', '') || %(error)s::text,
    attempt => %(attempt)s, worker => coalesce((job).worker, %(worker)s)) as final
where (job).pause_after_failures is null or (job).origin = 'backfill'
    or {schema}.count_end((job).periodic_task, (job).id, case when not is_revoked then %(state)s::text end) is not null
returning id
