-- Tell the state of a job, active or final; no row where nobody knows it.
select state, run, attempt, worker from {schema}.active_job where id = %(job)s
union all
select state, run, attempt, worker from {schema}.finished_job where id = %(job)s
limit 1
