-- Start a job that was given up for lost before it ever started, if nothing of its name has started since.
--
-- In one statement it takes the place of the job that waits, which is recorded as superseded: a queue that is hours
-- behind must not starve a schedule. A manual or backfill job is never superseded, and then this one stays lost. So
-- does one that would start within its min_gap, as in start_spaced.sql. If its group has a limit, it takes the slot of
-- the job that waits, else a free one; if there is none, it stays lost, and so it does in an ordered group, where
-- others may have had their turn meanwhile. A job that is made or started at the same moment violates the unique index,
-- and nothing has happened: the caller tries again. (`on conflict do nothing` would delete the lost job and put nothing
-- in its place.) It is exclusive now, whatever it was made as (a forced one was not): nothing else is under way, and an
-- occurrence that is submitted at the same moment must find it. The waiting job is locked before the last start is
-- read, as in start_spaced.sql, so the two never wait for each other in a circle. An author may have triggered a job in
-- a transaction that is open for minutes, and the unique index would wait for its end. So a lock_timeout, hardly longer
-- than a statement takes, ends that wait.
with lock_timeout as materialized (
    select set_config('lock_timeout', '200ms', true) as limited
),
late as materialized (
    select job.id, job.created_at, job.periodic_task, job.origin,
        (select created_at from {schema}.periodic_task where name = job.periodic_task) as row_created_at,
        (job.restart_data ->> 'min_gap')::interval as min_gap, job.restart_data ->> 'group_name' as group_name
    from {schema}.finished_job as job
    cross join lock_timeout
    where job.id = %(job)s and job.state = 'lost' and job.started_at is null and job.restart_data is not null
        and job.run = %(run)s and job.attempt = %(attempt)s
        and (%(task)s::text is null or job.task = %(task)s)
        and not exists (
            select from {schema}.active_job as other
            where other.periodic_task = job.periodic_task
                and (other.started_at is not null or other.origin in ('manual', 'backfill') or other.id = job.id))
        and not exists (
            select from {schema}.finished_job as other
            where other.periodic_task = job.periodic_task and other.created_at >= job.created_at
                and other.started_at is not null)
    for update of job
),
waiting as materialized (
    select job.id, job.group_name, job.slot
    from {schema}.active_job as job
    join late on late.periodic_task = job.periodic_task
    where job.exclusive and job.state in ('pending', 'sent', 'buffered', 'waiting')
    for update of job
),
placed as materialized (
    select case when known.max_active is not null then coalesce(inherited.slot, free.slot) else 0 end as slot
    from late
    left join {schema}.task_group as known on known.name = late.group_name
    left join lateral (
        select slot from waiting where waiting.group_name = late.group_name and waiting.slot > 0
    ) as inherited on true
    left join lateral (
        select slot
        from (
            select count(*)::int as taken from {schema}.active_job as other
            where other.group_name = late.group_name and other.slot is not null
        ) as under_way
        cross join generate_series(1, under_way.taken + 1) as slot
        where under_way.taken < known.max_active and not exists (
            select from {schema}.active_job as other
            where other.group_name = late.group_name and other.slot = slot.slot)
        order by slot
        limit 1
    ) as free on true
    where known.ordered is not true
        and (known.max_active is null or inherited.slot is not null or free.slot is not null)
),
remembered as (
    insert into {schema}.periodic_task_state as known (name, last_started_at, row_created_at)
    select periodic_task, {schema}.now(), row_created_at from late
    where min_gap is not null and exists (select from placed)
    on conflict (name) do update
    set last_started_at = excluded.last_started_at, row_created_at = excluded.row_created_at
    where known.last_started_at is null or known.row_created_at <> excluded.row_created_at or exists (
        select from late
        where origin in ('manual', 'backfill') or %(run)s > 0 or %(attempt)s > 0
            or known.last_started_at <= {schema}.now() - min_gap
            or known.last_started_at >= {schema}.now() + min_gap)
    returning name
),
lost as (
    delete from {schema}.finished_job as job
    using late
    where job.id = late.id and job.created_at = late.created_at
        and exists (select from placed)
        and (late.min_gap is null or exists (select from remembered))
    returning job.*
),
superseded as (
    delete from {schema}.active_job as job
    using lost, waiting
    where job.id = waiting.id
    returning job
),
recorded as (
    insert into {schema}.finished_job
    select final.* from superseded
    cross join lateral {schema}.archived(job, 'skipped', 'superseded', blocked_by => %(job)s) as final
)
insert into {schema}.active_job (
    id, periodic_task, scheduled_for, origin, state, exclusive, message, tracking, slot, pause_after_failures,
    pickup_deadline, created_at, sent_at, started_at, attempt_at, busy_until, check_at, run, attempt, sends, token,
    beat, worker, backfill, {copied})
select lost.id, lost.periodic_task, lost.scheduled_for, lost.origin, 'running',
    restored.exclusive or (
        select overlap <> 'allow' from {schema}.periodic_task where name = lost.periodic_task) is true,
    restored.message, restored.tracking, (select slot from placed where restored.group_name is not null),
    restored.pause_after_failures, restored.pickup_deadline, lost.created_at, lost.sent_at, {schema}.now(),
    {schema}.now(), {schema}.now() + make_interval(secs => %(dead_after)s),
    {schema}.now() + make_interval(secs => %(dead_after)s), lost.run, lost.attempt, lost.sends, %(token)s, lost.beat,
    %(worker)s, restored.backfill, {copied of restored}
from lost
cross join lateral jsonb_populate_record(null::{schema}.active_job, lost.restart_data) as restored
where (select count(*) from superseded) >= 0
returning id
