-- A job when it is made and when it ends: each function names the columns that it computes. The others, and the order
-- of all of them, are those of celery_pgbeat/columns_of_job.py.
--
-- Postgres puts the body of the first two in the place of a call (inlines it), as long as the call is in FROM, the
-- function is one select and sets nothing, and no argument is volatile. So neither costs a plan of its own.

-- The new job of a periodic task. With `wait_reason` it is buffered, without it is to be sent: by the beat that has
-- marked the row, or by any beat where `marked_at` is null. A job of a backfill counts no failures. What a job for
-- people has instead, a trigger writes (people.sql).
create or replace function {schema}.new_job(
    definition {schema}.periodic_task,
    id uuid,
    scheduled_for timestamptz,
    due_at timestamptz,
    origin text,
    exclusive boolean,
    wait_reason text,
    pickup_deadline interval,
    timezone text default null,
    full_acts_as text default 'full',
    beat text default null,
    marked_at timestamptz default null,
    mark_lease interval default null,
    backfill uuid default null
) returns setof {schema}.active_job
language sql stable rows 1
as $$
    select {active_job of made}
    from (
        select {copied of definition},
            {empty},
            new_job.id,
            definition.name as periodic_task,
            new_job.scheduled_for,
            new_job.due_at,
            new_job.origin,
            case coalesce(wait_reason, '') when '' then 'pending' when 'upstream' then 'waiting' else 'buffered' end
                as state,
            new_job.exclusive,
            jsonb_build_object('args', definition.args, 'kwargs', definition.kwargs, 'priority', definition.priority,
                               'options', definition.options, 'sensitive', definition.sensitive,
                               'schedule', definition.schedule,
                               'timezone', coalesce(definition.timezone, new_job.timezone)) as message,
            case when definition.tracking = 'full' then new_job.full_acts_as else definition.tracking end as tracking,
            case when new_job.origin <> 'backfill' then definition.pause_after_failures end as pause_after_failures,
            new_job.pickup_deadline,
            {schema}.now() as created_at,
            case when new_job.wait_reason is null then {schema}.now() + new_job.pickup_deadline else 'infinity' end
                as busy_until,
            case
                when new_job.wait_reason is not null then 'infinity'
                when new_job.marked_at is null then '-infinity'
                else least(new_job.marked_at, {schema}.now()) + new_job.mark_lease
            end as check_at,
            (new_job.wait_reason is null and new_job.marked_at is not null)::int as sends,
            case when new_job.wait_reason is null then new_job.beat end as marked_by,
            case when new_job.wait_reason is null then new_job.marked_at end as marked_at,
            new_job.mark_lease,
            new_job.beat,
            new_job.wait_reason,
            case when definition.group_name is not null and new_job.wait_reason is null then 0 end as slot,
            new_job.backfill
    ) as made
$$;

-- The id of a tick's job: as `job_id` in planning/identity.py.
create or replace function {schema}.job_id(name text, created_at timestamptz, scheduled_for timestamptz) returns uuid
language sql stable
as $$
    select overlay(overlay(
        encode(substr(sha256(
            convert_to(name, 'UTF8') || timestamptz_send(created_at) || timestamptz_send(scheduled_for)), 1, 16), 'hex')
        placing '8' from 13) placing '8' from 17)::uuid
$$;

-- How long the message of an occurrence may wait for a worker: as `pickup_after` in planning/due_times.py.
create or replace function {schema}.pickup_within(occurrence timestamptz, following timestamptz, longest interval)
returns interval
language sql immutable
as $$
    select coalesce(longest, least(greatest(2 * (following - occurrence), interval '15 minutes'), interval '1 day'))
$$;

-- The row of the history for a job that has ended in this state. An argument that is given replaces what the job's row
-- has. The row's `error` is that of an earlier attempt, so the history gets only an error that is given. A manual job
-- may have arguments of its own: they are kept for a retry.
create or replace function {schema}.archived(
    job {schema}.active_job,
    state text,
    reason text default null,
    error text default null,
    attempt int default null,
    beat text default null,
    worker text default null,
    sent_at timestamptz default null,
    started_at timestamptz default null,
    blocked_by uuid default null,
    restart_data jsonb default null,
    note text default null
) returns setof {schema}.finished_job
language sql stable rows 1
as $$
    select {finished_job of ended}
    from (
        select {kept of job},
            archived.state,
            archived.reason,
            archived.blocked_by,
            archived.restart_data,
            archived.error,
            archived.note,
            null::timestamptz as last_scheduled_for,
            1 as occurrences,
            coalesce(archived.sent_at, job.sent_at) as sent_at,
            coalesce(archived.started_at, job.started_at) as started_at,
            {schema}.now() as finished_at,
            coalesce(archived.attempt, job.attempt) as attempt,
            coalesce(archived.beat, job.beat) as beat,
            coalesce(archived.worker, job.worker) as worker,
            case when job.wait_reason is null then job.busy_until end as busy_until,
            case when job.origin = 'manual' and archived.state <> 'succeeded' then
                jsonb_build_object('args', job.message -> 'args', 'kwargs', job.message -> 'kwargs')
            end as arguments
    ) as ended
$$;

-- What a lost job that never started needs to start after all; NULL for one that has started.
create or replace function {schema}.restart_data_of(job {schema}.active_job) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select {restart_data of job}
    where job.started_at is null
$$;

-- The row of the history for a job that is given up because nothing was reported of it before its deadline.
create or replace function {schema}.lost(job {schema}.active_job) returns setof {schema}.finished_job
language sql stable rows 1
as $$
    select lost.* from {schema}.archived(
        job, 'lost',
        error => case
            when job.started_at is null then 'no worker has started it' else 'its worker stopped reporting'
        end,
        restart_data => {schema}.restart_data_of(job)) as lost
$$;
