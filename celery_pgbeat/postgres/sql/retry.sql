-- Record that a job will be retried: it stays in the way until the next attempt ends.
update {schema}.active_job
set state = 'retrying',
    attempt = %(attempt)s + 1,
    token = null,
    error = %(error)s,
    busy_until = {schema}.now() + make_interval(secs => %(delay)s) + pickup_deadline
where id = %(job)s and run = %(run)s and (token = %(token)s or token is null and attempt <= %(attempt)s)
returning id
