-- Report that a worker lives and that these starts still run; a row that a failover set back runs again.
--
-- Such a row has no token. It waits for its first start, or for the attempt that runs here (retry.sql has raised its
-- attempt already, so an earlier attempt does not match). A row whose message went back to the broker (requeue.sql) is
-- neither, and stays as it is: its next start may be under way elsewhere.
with beating as (
    select * from unnest(%(jobs)s::uuid[], %(runs)s::int[], %(attempts)s::int[], %(tokens)s::uuid[])
        as beating (id, run, attempt, token)
),
held as materialized (
    -- When an earlier attempt began must not decide when this one ends.
    select job.id, beating.token, beating.attempt, job.max_run_time,
        case
            when job.state = 'retrying' then {schema}.now() else coalesce(job.attempt_at, {schema}.now())
        end as attempt_at
    from {schema}.active_job as job
    join beating on beating.id = job.id
    where job.id = any (%(jobs)s::uuid[]) and job.run = beating.run
        and (job.token = beating.token and job.state = 'running'
             or job.token is null and job.attempt <= beating.attempt
                and (job.state = 'retrying' or job.started_at is null and job.state in ('pending', 'sent')))
    order by job.id
    for no key update of job skip locked
)
update {schema}.active_job as job
set state = 'running',
    token = held.token,
    attempt = held.attempt,
    worker = %(worker)s,
    started_at = coalesce(job.started_at, {schema}.now()),
    attempt_at = held.attempt_at,
    marked_by = null,
    marked_at = null,
    busy_until = held.busy_until,
    check_at = least(nullif(job.check_at, '-infinity'), held.busy_until)
from (
    select *, least(
        {schema}.now() + make_interval(secs => %(dead_after)s),
        attempt_at + least(max_run_time * 2, max_run_time + interval '60 seconds', interval '10 years')
            + interval '30 seconds') as busy_until
    from held
) as held
where job.id = held.id
returning job.id
