-- Report that a worker is alive and that these starts still run; restore rows that a failover set back.
--
-- Such a row has no token. It waits for its first start, or for the attempt that runs here (retry.sql has raised its
-- attempt already, so an earlier attempt does not match). A row whose message went back to the broker (requeue.sql) is
-- neither, and stays as it is: its next start may be under way elsewhere. Nor does it touch a job of tracking = send.
with reported as (
    select * from unnest(%(jobs)s::uuid[], %(runs)s::int[], %(attempts)s::int[], %(tokens)s::uuid[])
        as reported (id, run, attempt, token)
),
locked as materialized (
    -- The time limit of this attempt counts from its own beginning, not from that of an earlier one.
    select job.id, reported.token, reported.attempt, job.max_run_time,
        case
            when job.state = 'retrying' then {schema}.now() else coalesce(job.attempt_at, {schema}.now())
        end as attempt_at
    from {schema}.active_job as job
    join reported on reported.id = job.id
    where job.id = any (%(jobs)s::uuid[]) and job.run = reported.run and job.tracking <> 'send'
        and (job.token = reported.token and job.state = 'running'
             or job.token is null and job.attempt <= reported.attempt
                and (job.state = 'retrying' or job.started_at is null and job.state in ('pending', 'sent')))
    order by job.id
    for no key update of job skip locked
)
update {schema}.active_job as job
set state = 'running',
    token = locked.token,
    attempt = locked.attempt,
    worker = %(worker)s,
    started_at = coalesce(job.started_at, {schema}.now()),
    attempt_at = locked.attempt_at,
    marked_by = null,
    marked_at = null,
    busy_until = locked.busy_until,
    check_at = least(nullif(job.check_at, '-infinity'), locked.busy_until)
from (
    select *, least(
        {schema}.now() + make_interval(secs => %(dead_after)s),
        attempt_at + least(max_run_time * 2, max_run_time + interval '60 seconds', interval '10 years')
            + interval '30 seconds') as busy_until
    from locked
) as locked
where job.id = locked.id
returning job.id
