-- Settle jobs that nobody reports, as the result backend tells their end.
with told as (
    select * from unnest(%(jobs)s::uuid[], %(states)s::text[]) with ordinality as told (id, state, place)
),
gone as (
    delete from {schema}.active_job as job
    using told
    where job.id = told.id and job.id = any (%(jobs)s::uuid[]) and job.tracking = 'result' and job.state = 'sent'
    returning job.*, told.state as told_state, told.place
),
-- As finish_many.sql does.
counted as materialized (
    select {schema}.count_end(periodic_task, id, told_state)
    from (
        select periodic_task, id, told_state from gone
        where pause_after_failures is not null and origin <> 'backfill'
        order by periodic_task, place
    ) as ended
)
insert into {schema}.finished_job (
    id, periodic_task, scheduled_for, origin, state, task, queue, created_at, sent_at, finished_at,
    run, attempt, sends, beat, busy_until)
select id, periodic_task, scheduled_for, origin, told_state, task, queue, created_at, sent_at, {schema}.now(),
    run, attempt, sends, beat, busy_until
from gone
where (select count(*) from counted) >= 0
returning id
