-- The tables. May run before the new code: nothing else uses the schema yet.
--
-- Two tokens are replaced when a migration or a statement is loaded: {schema} by the quoted
-- schema name, {channel} by the same name as a string literal (the notification channel).

-- The one clock of the house. It must be stable (statement time), or no index on next_run_at can
-- serve a comparison with it; tests replace this function by one that they can set.
create function {schema}.now() returns timestamptz
language sql stable parallel safe
as $$ select statement_timestamp() $$;

create table {schema}.schema_version (
    version int primary key,
    min_compatible int not null
);

create table {schema}.periodic_task (
    name text primary key
        constraint periodic_task_name_length check (char_length(name) between 1 and 200),
    task text not null
        constraint periodic_task_task_given check (task <> ''),
    args jsonb not null default '[]'
        constraint periodic_task_args_array check (jsonb_typeof(args) = 'array'),
    kwargs jsonb not null default '{}'
        constraint periodic_task_kwargs_object check (jsonb_typeof(kwargs) = 'object'),
    queue text,
    priority smallint
        constraint periodic_task_priority_range check (priority between 0 and 255),
    options jsonb not null default '{}'
        constraint periodic_task_options_object check (jsonb_typeof(options) = 'object'),
    schedule text,
    timezone text,
    anchor timestamptz,
    dst text not null default 'default'
        constraint periodic_task_dst_known check (dst in ('default', 'skip', 'once', 'all')),
    start_at timestamptz,
    end_at timestamptz,
    max_runs int
        constraint periodic_task_max_runs_positive check (max_runs > 0),
    run_count int not null default 0,
    overlap text not null default 'skip'
        constraint periodic_task_overlap_known check (overlap in ('skip', 'allow')),
    catchup text not null default 'latest'
        constraint periodic_task_catchup_known check (catchup in ('none', 'latest', 'earliest')),
    catchup_window interval
        constraint periodic_task_catchup_window_positive check (catchup_window >= interval '0'),
    max_run_time interval
        constraint periodic_task_max_run_time_positive check (max_run_time > interval '0'),
    submitter text,
    subject text,
    enabled boolean not null default true,
    pause_reason text,
    paused_by text,
    paused_until timestamptz,
    on_lost text not null default 'mark'
        constraint periodic_task_on_lost_known check (on_lost in ('mark', 'rerun')),
    tracking text not null default 'full'
        constraint periodic_task_tracking_known check (tracking in ('full', 'send')),
    next_run_at timestamptz,
    planned_for timestamptz,
    last_run_at timestamptz,
    marked_by text,
    marked_at timestamptz,
    managed_by text not null default 'sql',
    problem text,
    revision bigint not null default 1,
    planned_revision bigint not null default 0,
    created_at timestamptz not null default {schema}.now(),
    updated_at timestamptz not null default {schema}.now(),
    -- What follows is the beats' own business, not part of the public door.
    schedule_set_at timestamptz not null default {schema}.now(),
    planned_from timestamptz not null default {schema}.now(),
    taken_over boolean not null default false,
    mark_lease interval,
    pickup_deadline interval,
    lazy boolean not null default false,
    declared jsonb,
    -- The zone as its author gave it: NULL stays NULL when a beat fills in the app's.
    declared_timezone text,
    -- 64 kB of text are at most this much jsonb; the trigger counts the text, as Python does.
    constraint periodic_task_size check (pg_column_size(args) + pg_column_size(kwargs) <= 327680),
    -- A driver cannot carry instants beyond year 9999, nor spans of millions of years: one such row would break
    -- every batch that it is marked in. NULLs pass.
    constraint periodic_task_instants_in_range check (
        least(anchor, start_at, end_at, paused_until, next_run_at, planned_for, last_run_at, marked_at, created_at,
              schedule_set_at, planned_from) >= '0001-01-02 00:00+00'
        and greatest(anchor, start_at, end_at, paused_until, next_run_at, planned_for, last_run_at, marked_at,
                     created_at, schedule_set_at, planned_from) <= '9999-12-30 00:00+00'),
    constraint periodic_task_spans_in_range check (
        (catchup_window <= interval '100 years') is not false
        and (max_run_time <= interval '1 year') is not false
        and (pickup_deadline <= interval '1 year') is not false),
    constraint periodic_task_run_count_in_range check (run_count between 0 and 2000000000),
    constraint periodic_task_bounds_in_order check (end_at >= start_at)
)
-- Marks are in no index, so with room in the page a mark rewrites no index entry (96 % HOT at 50).
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

create index periodic_task_due on {schema}.periodic_task (next_run_at)
    where enabled and problem is null and next_run_at is not null;
create index periodic_task_unplanned on {schema}.periodic_task (name)
    where enabled and problem is null and planned_revision <> revision;
create index periodic_task_of_code on {schema}.periodic_task (managed_by) where declared is not null;
create index periodic_task_resumes on {schema}.periodic_task (paused_until)
    where not enabled and paused_until is not null;

-- Jobs that are not final. Small, and its unique index *is* the overlap rule.
create table {schema}.active_job (
    id uuid primary key,
    periodic_task text not null,
    scheduled_for timestamptz not null,
    origin text not null
        constraint active_job_origin_known check (origin in ('schedule', 'catchup', 'backfill', 'manual')),
    state text not null
        constraint active_job_state_known
        check (state in ('pending', 'submitted', 'running', 'retrying', 'buffered')),
    exclusive boolean not null,
    task text not null,
    queue text,
    message jsonb not null,
    on_lost text not null,
    tracking text not null,
    max_run_time interval,
    pickup_deadline interval not null,
    created_at timestamptz not null default {schema}.now(),
    submitted_at timestamptz,
    started_at timestamptz,
    attempt_at timestamptz,
    busy_until timestamptz not null,
    run int not null default 0,
    attempt int not null default 0,
    sends int not null default 0,
    resends int not null default 0,
    refusals int not null default 0,
    token uuid,
    marked_by text,
    marked_at timestamptz,
    mark_lease interval,
    beat text,
    worker text,
    error text
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);

create unique index job_one_at_a_time on {schema}.active_job (periodic_task) where exclusive;
create index active_job_of_task on {schema}.active_job (periodic_task);
create index active_job_pending on {schema}.active_job (created_at) where state = 'pending';
create index active_job_busy on {schema}.active_job (busy_until);

-- Jobs that are final, partitioned by day of creation: retention drops days instead of deleting rows.
create table {schema}.finished_job (
    id uuid not null,
    periodic_task text not null,
    scheduled_for timestamptz not null,
    last_scheduled_for timestamptz,
    occurrences int not null default 1,
    origin text not null,
    state text not null
        constraint finished_job_state_known
        check (state in ('succeeded', 'failed', 'revoked', 'expired', 'lost', 'skipped', 'submitted')),
    reason text
        constraint finished_job_reason_known
        check (reason in ('overlap', 'blackout', 'too_late', 'paused', 'deleted', 'limit', 'min_gap',
                          'superseded', 'not_allowed')),
    blocked_by uuid,
    task text not null,
    queue text,
    -- Kept for lost jobs only, so that one whose message turns up after all can still start.
    revival jsonb,
    created_at timestamptz not null,
    submitted_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz not null,
    run int not null default 0,
    attempt int not null default 0,
    sends int not null default 0,
    beat text,
    worker text,
    error text,
    busy_until timestamptz,
    constraint finished_job_reason_iff_skipped check ((state = 'skipped') = (reason is not null))
) partition by range (created_at);

create index finished_job_newest on {schema}.finished_job (created_at);
create index finished_job_id on {schema}.finished_job (id);
create index finished_job_of_task on {schema}.finished_job (periodic_task, created_at);
create table {schema}.finished_job_default partition of {schema}.finished_job default;

create table {schema}.node (
    id text primary key,
    role text not null constraint node_role_known check (role in ('beat', 'worker')),
    hostname text not null,
    pid int not null,
    version text not null,
    started_at timestamptz not null default {schema}.now(),
    last_seen_at timestamptz not null default {schema}.now(),
    tracking boolean not null default false
) with (fillfactor = 50);
