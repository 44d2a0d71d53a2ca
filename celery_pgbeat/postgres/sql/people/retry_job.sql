-- Submit a job that has ended without success again; returns the new job, its row and whose arguments it has.
select job, periodic_task, arguments_of from {schema}.retry_job(%(id)s::uuid, %(force)s)
