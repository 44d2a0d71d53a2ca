-- Record that a running job's message went back to the broker: it waits again.
--
-- With `resend` nobody knows whether the message comes back in time to be started: a beat sends another, and
-- of the two copies one starts.
update {schema}.active_job
set state = case when %(resend)s then 'pending' else 'submitted' end,
    token = null,
    error = %(error)s,
    busy_until = {schema}.now() + pickup_deadline
where id = %(job)s and run = %(run)s and attempt = %(attempt)s and token = %(token)s
returning id
