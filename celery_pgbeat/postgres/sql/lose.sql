-- Give up a start whose process died: the job is lost, or left to its silence where it may run again.
--
-- The rerun waits until busy_until has passed, so that a job that kills its process each time does so every
-- half minute and not in a tight loop. Only the start that bears this token is given up.
with gone as (
    delete from {schema}.active_job
    where id = %(job)s and run = %(run)s and token = %(token)s and on_lost = 'mark'
    returning *
),
noted as (
    update {schema}.active_job
    set error = %(error)s
    where id = %(job)s and run = %(run)s and token = %(token)s and on_lost = 'rerun'
    returning id
)
insert into {schema}.finished_job (
    id, periodic_task, scheduled_for, origin, state, task, queue, created_at, submitted_at, started_at, finished_at,
    run, attempt, sends, beat, worker, error, busy_until)
select id, periodic_task, scheduled_for, origin, 'lost', task, queue, created_at, submitted_at, started_at,
    {schema}.now(), run, attempt, sends, beat, worker, %(error)s, busy_until
from gone
returning id
