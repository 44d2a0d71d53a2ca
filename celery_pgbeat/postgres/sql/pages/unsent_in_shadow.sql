-- Read what was recorded in shadow since an instant and has no later job, in order.
select periodic_task, scheduled_for from {schema}.finished_job as recorded
where created_at >= %(since)s and state = 'skipped' and reason = 'shadow' and origin in ('schedule', 'catchup')
    and not exists (
        select from {schema}.job as later
        where later.periodic_task = recorded.periodic_task and later.scheduled_for = recorded.scheduled_for
            and later.created_at >= recorded.created_at and later.reason is distinct from 'shadow')
order by 1, 2
