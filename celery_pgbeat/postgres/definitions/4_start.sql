-- Start a job, if this copy of its message is the one that may; answers whether it is.
--
-- A message of another task than the job's is none of its copies. Workers of older packages do not name the task.
-- A function, because that keeps its plan, and a task waits for the answer. A plan that was made while the table was small
-- must serve when it has grown, so it may only use indexes.
create or replace function {schema}.start(
    job uuid, run int, attempt int, token uuid, worker text, dead_after double precision, task text default null
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
    where id = start.job and run = start.run and min_gap is null and (start.task is null or task = start.task)
        and (token = start.token
            or stop_request is null
                and (attempt < start.attempt or attempt = start.attempt and state not in ('running', 'buffered')));
    return found;
end
$$;
