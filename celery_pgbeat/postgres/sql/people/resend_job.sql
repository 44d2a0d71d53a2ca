-- Have the message of a job sent again that the broker has lost; returns the name of its periodic task.
select {schema}.resend_job(%(id)s::uuid) as periodic_task
