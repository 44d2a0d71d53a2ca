-- Give up a job that waits for a decision; returns the name of its periodic task.
select {schema}.fail_job(%(id)s::uuid, %(reason)s::text) as periodic_task
