-- Decide about jobs that have been silent past busy_until: send again, run again, or lost.
--
-- Never started: sent again under the same id, at most three times. But only if workers announce our tracker (without
-- it, "never started" means only that no worker has reported), and not if only the result backend is asked. Died while
-- running: on_lost decides, unless the job has a stop request. `{is_beyond_repair}` (fragments.py) has these rules,
-- for submit.sql too.
with silent as materialized (
    select id,
        case
            when {is_beyond_repair} then 'lost'
            when state = 'sent' then 'resend'
            when state in ('running', 'retrying') then 'rerun'
            else 'lost'
        end as verdict
    from {schema}.active_job cross join (select %(resending)s::boolean as resending) as told
    where check_at > '-infinity' and check_at <= {schema}.now() and busy_until < {schema}.now() and state <> 'pending'
    order by check_at
    limit %(batch)s
    for update of active_job skip locked
),
again as (
    update {schema}.active_job as job
    set state = 'pending',
        marked_by = null,
        marked_at = null,
        busy_until = {schema}.now() + job.pickup_deadline,
        check_at = '-infinity',
        token = null,
        resends = case when silent.verdict = 'resend' then job.resends + 1 else 0 end,
        run = case when silent.verdict = 'rerun' then least(job.run + 1, 2000000000) else job.run end,
        attempt = case when silent.verdict = 'rerun' then 0 else job.attempt end
    from silent
    where job.id = silent.id and silent.verdict <> 'lost'
    returning job.id, job.periodic_task, silent.verdict
),
deleted as (
    delete from {schema}.active_job as job
    using silent
    where job.id = silent.id and silent.verdict = 'lost'
    returning job, job.id, job.periodic_task
),
archived as (
    insert into {schema}.finished_job
    select final.* from deleted cross join lateral {schema}.lost(job) as final
)
select id, periodic_task, verdict from again
union all
select id, periodic_task, 'lost' from deleted
