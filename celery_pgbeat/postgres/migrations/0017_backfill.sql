-- Backfill: the occurrences of a range, submitted on request. May run before the new code; nodes of older packages work
-- on beside it and leave backfills to newer beats. The index on the history is built by reading that once.

create table {schema}.backfill (
    id uuid primary key default gen_random_uuid(),
    periodic_task text not null,
    since timestamptz not null,
    until timestamptz not null,
    mode text not null default 'missing'
        constraint backfill_mode_known check (mode in ('missing', 'failed', 'all')),
    max_active int not null default 1
        constraint backfill_max_active_in_range check (max_active between 1 and 1000),
    state text not null default 'running'
        constraint backfill_state_known check (state in ('running', 'finished', 'cancelled')),
    reached timestamptz,
    next_at timestamptz,
    total bigint,
    submitted bigint not null default 0,
    passed_over bigint not null default 0,
    problem text,
    created_at timestamptz not null default {schema}.now(),
    created_by text not null default session_user,
    finished_at timestamptz,
    marked_by text,
    marked_at timestamptz,
    mark_lease interval,
    constraint backfill_bounds_in_order check (until >= since),
    constraint backfill_instants_in_range
        check (since >= '0001-01-02 00:00+00' and until <= '9999-12-30 00:00+00'),
    constraint backfill_over_or_not check ((state = 'running') = (finished_at is null)),
    constraint backfill_problem_ends_it check (problem is null or state = 'cancelled')
) with (fillfactor = 50);

create index backfill_running on {schema}.backfill (periodic_task) where state = 'running';

-- Which backfill has made the job.
alter table {schema}.active_job add column backfill uuid;
create index active_job_of_backfill on {schema}.active_job (backfill) where backfill is not null;

-- What has had a job, in the order of the occurrences: a backfill asks for a few thousand of them at a time.
create index finished_job_of_occurrence on {schema}.finished_job (periodic_task, scheduled_for) where state <> 'skipped';
