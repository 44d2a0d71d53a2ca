-- End a job whose message a worker dropped before its start: revoked, expired, unknown, not allowed.
--
-- It counts as finish.sql does.
with deleted as (
    delete from {schema}.active_job as job
    where id = %(job)s and run = %(run)s and attempt <= %(attempt)s and state in ('pending', 'sent', 'retrying')
        and (%(task)s::text is null or task = %(task)s)
    returning job
)
insert into {schema}.finished_job
select final.* from deleted
cross join lateral {schema}.archived(
    job, %(state)s::text, %(reason)s, %(error)s, %(attempt)s, worker => %(worker)s) as final
where (job).pause_after_failures is null or (job).origin = 'backfill'
    or {schema}.count_end((job).periodic_task, (job).id, %(state)s::text) is not null
returning id
