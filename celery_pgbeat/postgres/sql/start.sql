-- Start a job, if this copy of its message is the one that may: the guard's one decision.
--
-- Equal run, and either a higher attempt than the row's (Celery publishes a retry before anybody can write
-- `retrying`), or an equal attempt that does not run, or this very start's own token (the answer to the
-- first try may have been lost). Everything else is a second copy. A job that is asked to end makes no further
-- attempt. One with a min_gap is for start_spaced.sql.
update {schema}.active_job
set state = 'running',
    attempt = %(attempt)s,
    token = %(token)s,
    worker = %(worker)s,
    started_at = coalesce(started_at, {schema}.now()),
    attempt_at = {schema}.now(),
    marked_by = null,
    marked_at = null,
    busy_until = {schema}.now() + make_interval(secs => %(dead_after)s)
where id = %(job)s and run = %(run)s and min_gap is null
    and (token = %(token)s
        or ask is null and (attempt < %(attempt)s or attempt = %(attempt)s and state not in ('running', 'buffered')))
returning id
