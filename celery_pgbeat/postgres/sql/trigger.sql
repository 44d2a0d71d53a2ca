-- Start a job of a periodic task now; answers the job's id.
select {schema}.trigger(%(name)s, %(force)s) as job
