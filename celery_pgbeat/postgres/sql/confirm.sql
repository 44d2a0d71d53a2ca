-- Confirm that the broker took these jobs' messages: pending -> submitted.
--
-- A worker may be faster: a job that already runs keeps its state. A job that another beat has taken over
-- is that beat's to confirm. Where nobody reports (tracking = send) our knowledge ends here, so the job is final.
with confirmed as (
    select * from unnest(%(jobs)s::uuid[], %(delays)s::float8[]) as confirmed (id, delay)
),
held as materialized (
    select job.id, confirmed.delay from {schema}.active_job as job
    join confirmed on confirmed.id = job.id
    where job.id = any (%(jobs)s::uuid[]) and job.state = 'pending' and job.marked_by = %(beat)s
    order by job.id
    for no key update of job skip locked
),
ended as (
    delete from {schema}.active_job as job
    using held
    where job.id = held.id and job.tracking = 'send'
    returning job.*
),
kept as (
    insert into {schema}.finished_job (
        id, periodic_task, scheduled_for, origin, state, task, queue, created_at, submitted_at, finished_at,
        run, sends, beat, busy_until)
    select id, periodic_task, scheduled_for, origin, 'submitted', task, queue, created_at, {schema}.now(), {schema}.now(),
        run, sends, beat, busy_until
    from ended
)
update {schema}.active_job as job
set state = 'submitted',
    submitted_at = {schema}.now(),
    busy_until = {schema}.now() + make_interval(secs => held.delay) + job.pickup_deadline,
    marked_by = null,
    marked_at = null
from held
where job.id = held.id and job.tracking <> 'send'
returning job.id
