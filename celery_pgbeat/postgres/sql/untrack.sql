-- Stop waiting for reports that nobody sends: jobs at the broker are tracked as `full` comes to here.
--
-- Under `send` our knowledge of them has ended, so they are final.
with ended as (
    delete from {schema}.active_job
    where %(acts_as)s = 'send' and tracking = 'full' and state = 'sent'
    returning *
),
kept as (
    insert into {schema}.finished_job (
        id, periodic_task, scheduled_for, origin, state, task, queue, created_at, sent_at, finished_at,
        run, sends, beat, busy_until)
    select id, periodic_task, scheduled_for, origin, 'untracked', task, queue, created_at, sent_at, {schema}.now(),
        run, sends, beat, busy_until
    from ended
),
moved as (
    update {schema}.active_job
    set tracking = 'result'
    where %(acts_as)s = 'result' and tracking = 'full' and state = 'sent'
    returning id
)
select (select count(*) from ended) + (select count(*) from moved) as jobs
