-- Record that a running job's message went back to the broker: it waits again.
--
-- With `resend` it is unknown whether the message comes back in time to be started: a beat sends another, and of the
-- two copies one starts. A job with a stop request is revoked instead, and the guard drops its message.
with locked as materialized (
    select id, stop_request from {schema}.active_job
    where id = %(job)s and run = %(run)s and attempt = %(attempt)s and token = %(token)s
    for no key update
),
requeued as (
    update {schema}.active_job as job
    set state = case when %(resend)s then 'pending' else 'sent' end,
        token = null,
        error = %(error)s,
        busy_until = {schema}.now() + pickup_deadline,
        check_at = case
            when %(resend)s then '-infinity'
            else least(nullif(job.check_at, '-infinity'), {schema}.now() + pickup_deadline)
        end
    from locked
    where job.id = locked.id and locked.stop_request is null
    returning job.id
),
{revoked}
select id from requeued
union all
select id from revoked
