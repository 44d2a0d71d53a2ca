-- Start a job, if this copy of its message is the one that may: the guard's one decision.
--
-- It may with an equal run, and one of these: an attempt higher than the row's (Celery publishes a retry before we can
-- write `retrying`), an equal attempt that does not run, or this very start's own token (the result of the first try
-- may have been lost). Everything else is a second copy. A job with a stop request makes no further attempt. A message
-- of another task than the job's is not one of its copies. A job with a min_gap is for start_spaced.sql. No message
-- starts a job for people. One of tracking = send is never started: it runs unguarded. As in confirm.sql, the only
-- column that is in an index is `check_at`. It changes only where the job has waited for longer than the lease.
--
-- A function, because that keeps its plan, and a task waits for the result. A plan that was made while the table was
-- small must serve when it has grown, so it may only use indexes.
-- function
create or replace function {schema}.start(
    job uuid, run int, attempt int, token uuid, worker text, dead_after double precision, task text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    update {schema}.active_job
    set state = 'running',
        attempt = start.attempt,
        token = start.token,
        worker = start.worker,
        started_at = coalesce(started_at, {schema}.now()),
        attempt_at = {schema}.now(),
        marked_by = null,
        marked_at = null,
        busy_until = {schema}.now() + make_interval(secs => dead_after),
        check_at = least(nullif(check_at, '-infinity'), {schema}.now() + make_interval(secs => dead_after))
    where id = start.job and run = start.run and min_gap is null and kind = 'task'
        and (start.task is null or task = start.task)
        and tracking <> 'send'
        and (token = start.token
            or stop_request is null
                and (attempt < start.attempt
                    or attempt = start.attempt and state not in ('running', 'buffered', 'waiting')));
    return found;
end
$$;
-- call
select {schema}.start(
    %(job)s::uuid, %(run)s::int, %(attempt)s::int, %(token)s::uuid, %(worker)s, %(dead_after)s,
    %(task)s) as started
