-- Record that a running job's message went back to the broker (rejected and requeued, or its worker lost): it waits again.
update {schema}.active_job
set state = 'submitted',
    token = null,
    error = %(error)s,
    busy_until = {schema}.now() + pickup_deadline
where id = %(job)s and run = %(run)s and attempt = %(attempt)s and token = %(token)s
returning id
