-- Start a job that was given up for lost before it ever started, if nothing of its name has started since.
--
-- It takes, in one statement, the place of the job that waits, which is recorded as superseded: a queue that
-- is hours behind must not starve a schedule. A manual job is never superseded, and then this one stays lost.
-- A job that is made or started at the same moment trips the unique index, and nothing has happened: the
-- caller asks again. (Doing nothing on that conflict would delete the lost job and put nothing in its place.)
with lost as (
    delete from {schema}.finished_job as job
    where job.id = %(job)s and job.state = 'lost' and job.started_at is null and job.revival is not null
        and job.run = %(run)s and job.attempt = %(attempt)s
        and not exists (
            select from {schema}.active_job as other
            where other.periodic_task = job.periodic_task
                and (other.started_at is not null or other.origin = 'manual' or other.id = job.id))
        and not exists (
            select from {schema}.finished_job as other
            where other.periodic_task = job.periodic_task and other.created_at >= job.created_at
                and other.started_at is not null)
    returning job.*
),
superseded as (
    delete from {schema}.active_job as job
    using lost
    where job.periodic_task = lost.periodic_task and job.exclusive and job.state in ('pending', 'submitted', 'buffered')
    returning job.*
),
recorded as (
    insert into {schema}.finished_job (
        id, periodic_task, scheduled_for, origin, state, reason, blocked_by, task, queue, created_at, submitted_at,
        finished_at, run, sends, beat)
    select id, periodic_task, scheduled_for, origin, 'skipped', 'superseded', %(job)s, task, queue, created_at,
        submitted_at, {schema}.now(), run, sends, beat
    from superseded
)
insert into {schema}.active_job (
    id, periodic_task, scheduled_for, origin, state, exclusive, task, queue, message, on_lost, tracking, max_run_time,
    pickup_deadline, created_at, submitted_at, started_at, attempt_at, busy_until, run, attempt, sends, token, beat, worker)
select id, periodic_task, scheduled_for, origin, 'running', (revival ->> 'exclusive')::boolean, task, queue,
    revival -> 'message', revival ->> 'on_lost', revival ->> 'tracking', (revival ->> 'max_run_time')::interval,
    (revival ->> 'pickup_deadline')::interval, created_at, submitted_at, {schema}.now(), {schema}.now(),
    {schema}.now() + make_interval(secs => %(dead_after)s), run, attempt, sends, %(token)s, beat, %(worker)s
from lost
where (select count(*) from superseded) >= 0
returning id
