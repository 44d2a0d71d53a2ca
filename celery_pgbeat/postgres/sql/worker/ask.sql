-- Let a job that has failed wait for a decision, if its row asks (on_error = 'ask'), and count the failure.
--
-- For the same start as finish.sql, which leaves such a job alone.
with failed as materialized (
    select id, periodic_task, pause_after_failures from {schema}.active_job
    where id = %(job)s and run = %(run)s
        and (token = %(token)s or token is null and attempt <= %(attempt)s)
        and {schema}.asks(on_error, tracking, stop_request, 'failed')
    for update
),
counted as materialized (
    select {schema}.count_end(periodic_task, id, 'failed') from failed where pause_after_failures is not null
)
select asking.* from failed
cross join lateral {schema}.ask(failed.id, %(error)s::text, %(attempt)s, %(worker)s) as asking (id)
where (select count(*) from counted) >= 0
