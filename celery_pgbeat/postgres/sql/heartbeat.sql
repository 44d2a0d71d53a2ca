-- Say that a worker lives and that these starts are still running; a row that a failover set back runs again.
with beating as (
    select * from unnest(%(jobs)s::uuid[], %(runs)s::int[], %(attempts)s::int[], %(tokens)s::uuid[])
        as beating (id, run, attempt, token)
),
held as materialized (
    select job.id, beating.token, beating.attempt from {schema}.active_job as job
    join beating on beating.id = job.id
    where job.id = any (%(jobs)s::uuid[]) and job.run = beating.run
        and (job.token = beating.token and job.state = 'running' or job.token is null and job.started_at is null
             and job.attempt <= beating.attempt and job.state in ('pending', 'submitted'))
    order by job.id
    for no key update of job skip locked
)
update {schema}.active_job as job
set state = 'running',
    token = held.token,
    attempt = held.attempt,
    worker = %(worker)s,
    started_at = coalesce(job.started_at, {schema}.now()),
    attempt_at = coalesce(job.attempt_at, {schema}.now()),
    marked_by = null,
    marked_at = null,
    busy_until = least(
        {schema}.now() + make_interval(secs => %(dead_after)s),
        coalesce(job.attempt_at, {schema}.now())
            + least(job.max_run_time * 2, job.max_run_time + interval '60 seconds', interval '10 years') + interval '30 seconds'),
    check_at = least(nullif(job.check_at, '-infinity'), 
        {schema}.now() + make_interval(secs => %(dead_after)s),
        coalesce(job.attempt_at, {schema}.now())
            + least(job.max_run_time * 2, job.max_run_time + interval '60 seconds', interval '10 years') + interval '30 seconds')
from held
where job.id = held.id
returning job.id
