-- Start a job of a periodic task now; returns the job's id.
select {schema}.trigger(%(name)s, %(force)s, %(args)s::jsonb, %(kwargs)s::jsonb) as job
