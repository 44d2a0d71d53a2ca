-- Replace `failed` by `revoked`: a terminated child reports a failure before its parent can report.
--
-- If that was counted as the latest failure of its periodic task, the count goes back by one.
-- A job that waits for a decision needs none any more.
with deleted as (
    delete from {schema}.active_job as job
    where id = %(job)s and run = %(run)s + 1 and attempt = %(attempt)s and state = 'error'
    returning job
),
revoked as (
    insert into {schema}.finished_job
    select final.* from deleted
    cross join lateral {schema}.archived(job, 'revoked', error => %(error)s::text) as final
    returning id, periodic_task
),
replaced as (
    update {schema}.finished_job
    set state = 'revoked', error = %(error)s
    where id = %(job)s and run = %(run)s and attempt = %(attempt)s and state = 'failed'
        and finished_at > {schema}.now() - interval '1 hour'
    returning id, periodic_task
),
uncounted as (
    update {schema}.periodic_task_state as known
    set failures_in_row = known.failures_in_row - 1, last_failed_job = null,
        pause_due = known.pause_due and exists (
            select from {schema}.periodic_task as task
            where task.name = known.name and task.pause_after_failures < known.failures_in_row)
    from (select * from replaced union all select * from revoked) as uncounted
    where known.name = uncounted.periodic_task and known.last_failed_job = uncounted.id and known.failures_in_row > 0
)
select id from replaced
union all
select id from revoked
