-- Start a job whose periodic task has a min_gap, unless its last start was too short a time ago.
--
-- Which copy may start is decided as in start.sql. Only the first start of a job that no person asked for can be too
-- early; it is recorded as skipped. Each start is remembered in one row for each name, and the lock of that row decides
-- between two starts of the same moment: the second one sees what the first has written. A start that is repeated with
-- its own token is not measured against itself. A last start that is further in the future than min_gap comes from a
-- clock that was set back, and does not count. Nor does one of an earlier row of that name, which has been removed
-- since. The row is only read, so an author's open transaction does not block a start.
--
-- A function, because that keeps its plan, as start.sql.
-- function
create or replace function {schema}.start_spaced(
    job uuid, run int, attempt int, token uuid, worker text, dead_after double precision, task text
) returns table (id uuid, periodic_task text, min_gap_microseconds bigint, started boolean)
language plpgsql rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    with candidate as materialized (
        select id, periodic_task, min_gap, token is not distinct from start_spaced.token as is_repeated,
            start_spaced.attempt = 0 and run = 0 and started_at is null
                and origin not in ('manual', 'backfill') as first
        from {schema}.active_job
        where id = start_spaced.job and run = start_spaced.run and min_gap is not null
            and (start_spaced.task is null or task = start_spaced.task)
            and (token = start_spaced.token
                or stop_request is null
                    and (attempt < start_spaced.attempt
                        or attempt = start_spaced.attempt and state not in ('running', 'buffered', 'waiting')))
        for no key update
    ),
    remembered as (
        insert into {schema}.periodic_task_state as known (name, last_started_at, row_created_at)
        select periodic_task, {schema}.now(), (
            select created_at from {schema}.periodic_task where name = candidate.periodic_task)
        from candidate where not is_repeated
        on conflict (name) do update
        set last_started_at = excluded.last_started_at, row_created_at = excluded.row_created_at
        where known.last_started_at is null or known.row_created_at <> excluded.row_created_at or exists (
            select from candidate
            where not first
                or known.last_started_at <= {schema}.now() - min_gap
                or known.last_started_at >= {schema}.now() + min_gap)
        returning name
    ),
    started as (
        update {schema}.active_job as job
        set state = 'running',
            attempt = start_spaced.attempt,
            token = start_spaced.token,
            worker = start_spaced.worker,
            started_at = coalesce(job.started_at, {schema}.now()),
            attempt_at = {schema}.now(),
            marked_by = null,
            marked_at = null,
            busy_until = {schema}.now() + make_interval(secs => dead_after),
            check_at = least(nullif(check_at, '-infinity'), {schema}.now() + make_interval(secs => dead_after))
        from candidate
        where job.id = start_spaced.job and (candidate.is_repeated or exists (select from remembered))
        returning job.id, job.periodic_task, job.min_gap
    ),
    deleted as (
        delete from {schema}.active_job as job
        using candidate
        where job.id = start_spaced.job and not candidate.is_repeated and not exists (select from remembered)
        returning job, job.id, job.periodic_task, job.min_gap
    ),
    recorded as (
        insert into {schema}.finished_job
        select final.* from deleted
        cross join lateral {schema}.archived(job, 'skipped', 'min_gap', worker => start_spaced.worker) as final
    )
    select id, periodic_task::text, {schema}.microseconds(min_gap), true from started
    union all
    select id, periodic_task::text, {schema}.microseconds(min_gap), false from deleted;
end
$$;
-- call
select id, periodic_task, min_gap_microseconds, started
from {schema}.start_spaced(
    %(job)s::uuid, %(run)s::int, %(attempt)s::int, %(token)s::uuid, %(worker)s, %(dead_after)s,
    %(task)s)
