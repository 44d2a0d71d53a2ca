-- Record that a job will be retried: it is not final, and blocks its row, until the next attempt ends.
--
-- A job with a stop request is revoked instead, and the guard drops the message of its next attempt.
with locked as materialized (
    select id, stop_request from {schema}.active_job
    where id = %(job)s and run = %(run)s and (token = %(token)s or token is null and attempt <= %(attempt)s)
    for no key update
),
retried as (
    update {schema}.active_job as job
    set state = 'retrying',
        attempt = least(%(attempt)s + 1, 2000000000),
        token = null,
        error = %(error)s,
        busy_until = {schema}.now() + make_interval(secs => %(delay)s) + pickup_deadline,
        check_at = least(
            nullif(job.check_at, '-infinity'), {schema}.now() + make_interval(secs => %(delay)s) + pickup_deadline)
    from locked
    where job.id = locked.id and locked.stop_request is null
    returning job.id
),
{revoked}
select id from retried
union all
select id from revoked
