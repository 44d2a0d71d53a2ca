-- Read the starts that have not ended at a worker, by the rows of their jobs.
select id as job, run, attempt, token, task from {schema}.active_job
where worker = %(worker)s and state = 'running'
