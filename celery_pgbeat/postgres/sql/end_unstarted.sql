-- End a job whose message a worker dropped before its start: revoked, expired, unknown, not allowed.
--
-- It counts as finish.sql does.
with gone as (
    delete from {schema}.active_job
    where id = %(job)s and run = %(run)s and attempt <= %(attempt)s and state in ('pending', 'sent', 'retrying')
        and (%(task)s::text is null or task = %(task)s)
    returning *
)
insert into {schema}.finished_job (
    id, periodic_task, scheduled_for, origin, state, reason, task, queue, created_at, sent_at, started_at,
    finished_at, run, attempt, sends, beat, worker, error, busy_until)
select id, periodic_task, scheduled_for, origin, %(state)s, %(reason)s, task, queue, created_at, sent_at, started_at,
    {schema}.now(), run, %(attempt)s, sends, beat, %(worker)s, %(error)s, busy_until
from gone
where pause_after_failures is null or origin = 'backfill'
    or {schema}.count_end(periodic_task, id, %(state)s::text) is not null
returning id
