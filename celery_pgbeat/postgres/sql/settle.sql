-- Settle jobs that nobody reports, as the result backend tells their end.
with told as (
    select * from unnest(%(jobs)s::uuid[], %(states)s::text[]) as told (id, state)
),
gone as (
    delete from {schema}.active_job as job
    using told
    where job.id = told.id and job.id = any (%(jobs)s::uuid[]) and job.tracking = 'result' and job.state = 'submitted'
    returning job.*, told.state as told_state
)
insert into {schema}.finished_job (
    id, periodic_task, scheduled_for, origin, state, task, queue, created_at, submitted_at, finished_at,
    run, attempt, sends, beat, busy_until)
select id, periodic_task, scheduled_for, origin, told_state, task, queue, created_at, submitted_at, {schema}.now(),
    run, attempt, sends, beat, busy_until
from gone
returning id
