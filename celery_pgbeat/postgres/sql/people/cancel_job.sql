-- Cancel a job that no worker runs, or one for people; returns the name of its periodic task.
select {schema}.cancel_job(%(id)s::uuid, %(reason)s::text) as periodic_task
