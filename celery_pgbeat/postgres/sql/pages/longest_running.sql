-- Read the jobs that have been running longest.
select id, periodic_task, worker, started_at, attempt, busy_until from {schema}.active_job
where state = 'running' and kind = 'task'
order by started_at
limit %(limit)s
