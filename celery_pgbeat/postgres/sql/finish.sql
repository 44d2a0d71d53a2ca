-- Finish a job: it leaves the active table in its final state, which frees its periodic task.
--
-- Only the start that bears this token may say so; a row that a failover set back bears none yet. A job that was
-- asked to end and failed is revoked: that is why it failed, as far as anybody can tell.
-- Where failures in a row are to pause the periodic task, it counts: in a condition that all others pass without a call,
-- for what is planned anew with each statement costs more than what is done.
with gone as (
    delete from {schema}.active_job
    where id = %(job)s and run = %(run)s
        and (token = %(token)s or token is null and attempt <= %(attempt)s)
    returning *
)
insert into {schema}.finished_job (
    id, periodic_task, scheduled_for, origin, state, task, queue, created_at, sent_at, started_at, finished_at,
    run, attempt, sends, beat, worker, error, busy_until)
select id, periodic_task, scheduled_for, origin,
    case when %(state)s::text = 'failed' and stop_request is not null then 'revoked' else %(state)s::text end,
    task, queue, created_at, sent_at, started_at,
    {schema}.now(), run, %(attempt)s, sends, beat, coalesce(worker, %(worker)s),
    coalesce('asked to ' || stop_request || ': ', '') || %(error)s::text, busy_until
from gone
where pause_after_failures is null or origin = 'backfill'
    or {schema}.count_end(periodic_task, id, case when stop_request is null or %(state)s::text <> 'failed' then %(state)s::text end)
        is not null
returning id
