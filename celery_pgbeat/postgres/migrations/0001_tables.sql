-- The tables. May run before the new code: nothing else uses the schema yet.
--
-- Two tokens are replaced when a migration or a statement is loaded: {schema} by the quoted schema name, {channel} by
-- the same name as a string literal (the notification channel).
--
-- Every instant, span, count and text that anybody may write is bounded. One value that a driver cannot carry, or with
-- which Postgres cannot calculate, would break every batch that its row is in. A span is tried on an instant: as a span
-- '12000000 months -360000000 days' compares as nothing. NULLs pass every check.

-- The one clock of the schema. It must be stable (statement time), or no index on next_run_at can serve a comparison
-- with it. Tests replace this function by one that they can set.
create function {schema}.now() returns timestamptz
language sql stable parallel safe
as $$ select statement_timestamp() $$;

-- One row. `definitions` is the checksum of the functions, triggers and views that were applied last.
create table {schema}.schema_version (
    version int primary key,
    min_compatible int not null,
    definitions text
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
    sensitive boolean not null default false,

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
    jitter interval
        constraint periodic_task_jitter_in_range check (jitter >= interval '0' and jitter <= interval '366 days'),
    overlap text not null default 'skip'
        constraint periodic_task_overlap_known
        check (overlap in ('skip', 'buffer_one', 'buffer_all', 'cancel_other', 'terminate_other', 'allow')),
    catchup text not null default 'latest'
        constraint periodic_task_catchup_known check (catchup in ('none', 'latest', 'earliest', 'all')),
    catchup_window interval
        constraint periodic_task_catchup_window_positive check (catchup_window >= interval '0'),
    catchup_limit int
        constraint periodic_task_catchup_limit_positive check (catchup_limit > 0),
    min_gap interval
        constraint periodic_task_min_gap_in_range check (min_gap > interval '0' and min_gap <= interval '366 days'),
    max_run_time interval
        constraint periodic_task_max_run_time_positive check (max_run_time > interval '0'),
    blackout text[],
    blackout_action text not null default 'defer'
        constraint periodic_task_blackout_action_known check (blackout_action in ('defer', 'skip')),
    group_name text
        constraint periodic_task_group_name_length check (char_length(group_name) between 1 and 200),
    submitter text,
    subject text,

    enabled boolean not null default true,
    pause_reason text,
    paused_by text,
    paused_until timestamptz,
    pause_after_failures int
        constraint periodic_task_pause_after_failures_positive check (pause_after_failures > 0),
    on_lost text not null default 'give_up'
        constraint periodic_task_on_lost_known check (on_lost in ('give_up', 'rerun')),
    tracking text not null default 'full'
        constraint periodic_task_tracking_known check (tracking in ('full', 'result', 'send')),

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

    -- What follows is internal: the beats and the triggers write it.
    -- Whether its group is paused: what is not due must not be in the index of what is.
    group_paused boolean not null default false,
    schedule_set_at timestamptz not null default {schema}.now(),
    planned_from timestamptz not null default {schema}.now(),
    -- The times that code has changed are judged from the row's last run.
    judged_from timestamptz,
    -- Since when occurrences that count as decided may be decided anew, because a person wanted it. A job's id is made
    -- from it too: a second job of the same instant has an id of its own.
    decided_anew_at timestamptz,
    -- The count of failures that belongs to the row bears this instant.
    failures_from timestamptz not null default {schema}.now(),
    taken_over boolean not null default false,
    mark_lease interval,
    pickup_deadline interval,
    lazy boolean not null default false,
    declared jsonb,
    -- The zone as its author gave it: NULL stays NULL when a beat fills in the app's.
    declared_timezone text,
    -- The named windows in `blackout`, and how often one of them was changed.
    windows_used text[],
    windows_revision bigint not null default 0,

    constraint periodic_task_bounds_in_order check (end_at >= start_at),
    -- 64 kB of text are at most this much jsonb; the trigger counts the text, as Python does.
    constraint periodic_task_size check (pg_column_size(args) + pg_column_size(kwargs) <= 327680),
    constraint periodic_task_instants_in_range check (
        least(anchor, start_at, end_at, paused_until, next_run_at, planned_for, last_run_at, marked_at, created_at,
              updated_at, schedule_set_at, planned_from, failures_from, judged_from, decided_anew_at)
            >= '0001-01-02 00:00+00'
        and greatest(anchor, start_at, end_at, paused_until, next_run_at, planned_for, last_run_at, marked_at,
                     created_at, updated_at, schedule_set_at, planned_from, failures_from, judged_from,
                     decided_anew_at)
            <= '9999-12-30 00:00+00'),
    -- To Postgres a year has 360 days, so '1 year' would refuse 365.
    constraint periodic_task_spans_in_range check (
        catchup_window <= interval '100 years'
        and max_run_time <= interval '366 days'
        and pickup_deadline <= interval '366 days'
        and timestamp '2000-01-01' + jitter between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + min_gap between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + max_run_time between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + pickup_deadline between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + mark_lease between '2000-01-01' and '2001-01-01'),
    constraint periodic_task_counts_in_range check (
        run_count between 0 and 2000000000
        and greatest(revision, planned_revision) <= 9000000000000000000)
)
-- Marks are in no index, so with room in the page a mark rewrites no index entry (96 % HOT at 50).
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

create index periodic_task_due on {schema}.periodic_task (next_run_at)
    where enabled and not group_paused and problem is null and next_run_at is not null;
create index periodic_task_unplanned on {schema}.periodic_task (name)
    where enabled and not group_paused and problem is null and planned_revision <> revision;
create index periodic_task_of_code on {schema}.periodic_task (managed_by) where declared is not null;
create index periodic_task_of_window on {schema}.periodic_task using gin (windows_used)
    where windows_used is not null;
create index periodic_task_in_group on {schema}.periodic_task (group_paused, group_name)
    where group_name is not null;
create index periodic_task_resumes on {schema}.periodic_task (paused_until)
    where not enabled and paused_until is not null;

-- What workers write about a periodic task. A table of its own: an author's open transaction on the row of the
-- periodic task never makes a worker wait.
create table {schema}.periodic_task_state (
    name text primary key,
    last_started_at timestamptz,
    -- For which row of that name the last start is remembered: its created_at.
    row_created_at timestamptz,
    failures_in_row int not null default 0,
    failures_from timestamptz,
    last_failed_at timestamptz,
    last_failed_job uuid,
    pause_due boolean not null default false,
    constraint periodic_task_state_name_length check (octet_length(name) <= 800),
    constraint periodic_task_state_instants_in_range check (
        least(last_started_at, failures_from, last_failed_at, row_created_at) >= '0001-01-02 00:00+00'
        and greatest(last_started_at, failures_from, last_failed_at, row_created_at) <= '9999-12-30 00:00+00')
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

create index periodic_task_state_pause_due on {schema}.periodic_task_state (name) where pause_due;

-- Groups: periodic tasks that are paused together, and of whose jobs only so many are under way at a time.
create table {schema}.task_group (
    name text primary key
        constraint task_group_name_length check (char_length(name) between 1 and 200),
    max_active int
        constraint task_group_max_active_positive check (max_active > 0),
    paused boolean not null default false,
    pause_reason text
);

create table {schema}.blackout (
    name text primary key
        constraint blackout_name_length check (char_length(name) between 1 and 200),
    windows text[] not null,
    timezone text
);

-- Jobs that are not final. Small, and its unique index *is* the overlap rule.
create table {schema}.active_job (
    id uuid primary key,
    periodic_task text not null,
    scheduled_for timestamptz not null,
    -- When it was due, with jitter and deferral: what is late is measured from there.
    due_at timestamptz,
    origin text not null
        constraint active_job_origin_known check (origin in ('schedule', 'catchup', 'backfill', 'manual')),
    state text not null
        constraint active_job_state_known check (state in ('pending', 'sent', 'running', 'retrying', 'buffered')),
    exclusive boolean not null,
    task text not null,
    queue text,
    message jsonb not null,
    on_lost text not null,
    tracking text not null,
    min_gap interval,
    max_run_time interval,
    pause_after_failures int,
    pickup_deadline interval not null,

    created_at timestamptz not null default {schema}.now(),
    sent_at timestamptz,
    started_at timestamptz,
    attempt_at timestamptz,
    -- When it is given up or sent again if nobody has heard of it. May be infinite: nothing is calculated from it.
    busy_until timestamptz not null,
    -- When a beat looks at it again; '-infinity' for what is to be sent at once. Never later than busy_until. The
    -- default has passed: whoever makes the row, the next look finds it.
    check_at timestamptz not null default 'epoch',

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
    error text,

    -- What a buffered job waits for: the end of a job of its own name, or a slot in its group.
    waits_for text constraint active_job_waits_for_known check (waits_for in ('predecessor', 'slot')),
    -- Whether it has waited: what the next occurrence is does not make it late.
    waited boolean not null default false,
    -- What the worker is to do with it, while it runs.
    stop_request text constraint active_job_stop_request_known check (stop_request in ('cancel', 'terminate')),
    group_name text,
    -- Its slot in its group, from 1; 0 where the group had no limit when it was made; NULL while it waits.
    slot int constraint active_job_slot_in_range check (slot >= 0),
    -- Which backfill has made it.
    backfill uuid,

    constraint active_job_waits_iff_buffered check ((state = 'buffered') = (waits_for is not null)),
    constraint active_job_names_length
        check (octet_length(periodic_task) <= 800 and octet_length(group_name) <= 800),
    constraint active_job_size check (
        pg_column_size(message) <= 720000
        and octet_length(task) <= 4000 and octet_length(queue) <= 4000 and octet_length(error) <= 8000),
    constraint active_job_instants_in_range check (
        least(scheduled_for, due_at, created_at, sent_at, started_at, attempt_at, marked_at, busy_until)
            >= '0001-01-02 00:00+00'
        and greatest(scheduled_for, due_at, created_at, sent_at, started_at, attempt_at, marked_at)
            <= '9999-12-30 00:00+00'),
    constraint active_job_spans_in_range check (
        timestamp '2000-01-01' + min_gap between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + max_run_time between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + pickup_deadline between '2000-01-01' and '2001-01-01'
        and timestamp '2000-01-01' + mark_lease between '2000-01-01' and '2001-01-01'),
    constraint active_job_counts_in_range check (
        least(run, attempt, sends, resends, refusals) >= 0
        and greatest(run, attempt, sends, resends, refusals, slot) <= 2000000000)
)
-- A confirm writes a batch of neighbours in one statement: each needs room for its new version beside it.
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

create unique index job_one_at_a_time on {schema}.active_job (periodic_task) where exclusive;
create unique index job_one_in_a_slot on {schema}.active_job (group_name, slot) where slot > 0;
create index active_job_of_task on {schema}.active_job (periodic_task);
create index active_job_of_group on {schema}.active_job (group_name) where slot is not null;
create index active_job_of_backfill on {schema}.active_job (backfill) where backfill is not null;
create index active_job_to_check on {schema}.active_job (check_at, created_at);
create index active_job_to_stop on {schema}.active_job (id) where stop_request is not null;
create index active_job_unreported on {schema}.active_job (periodic_task) where tracking = 'result';
create index active_job_waiting on {schema}.active_job (periodic_task, scheduled_for)
    where waits_for = 'predecessor';
create index active_job_waiting_in_group on {schema}.active_job (group_name, scheduled_for)
    where waits_for = 'slot';

-- Jobs that are final, partitioned by day of creation: retention drops days instead of deleting rows.
create table {schema}.finished_job (
    id uuid not null,
    periodic_task text not null,
    scheduled_for timestamptz not null,
    last_scheduled_for timestamptz,
    occurrences int not null default 1,
    origin text not null
        constraint finished_job_origin_known check (origin in ('schedule', 'catchup', 'backfill', 'manual')),
    state text not null
        constraint finished_job_state_known
        check (state in ('succeeded', 'failed', 'revoked', 'expired', 'lost', 'skipped', 'untracked')),
    reason text
        constraint finished_job_reason_known
        check (reason in ('overlap', 'blackout', 'too_late', 'paused', 'deleted', 'limit', 'min_gap', 'superseded',
                          'not_allowed', 'not_sent')),
    blocked_by uuid,
    task text not null,
    queue text,
    -- Kept for lost jobs only: what the job's row was, so that one whose message turns up after all can still start.
    restart_data jsonb,
    created_at timestamptz not null,
    sent_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz not null,
    run int not null default 0,
    attempt int not null default 0,
    sends int not null default 0,
    beat text,
    worker text,
    error text,
    busy_until timestamptz,
    constraint finished_job_reason_iff_skipped check ((state = 'skipped') = (reason is not null)),
    constraint finished_job_name_length check (octet_length(periodic_task) <= 800),
    constraint finished_job_size check (
        octet_length(task) <= 4000 and octet_length(queue) <= 4000 and octet_length(error) <= 8000),
    constraint finished_job_instants_in_range check (
        least(scheduled_for, last_scheduled_for, created_at, sent_at, started_at, finished_at)
            >= '0001-01-02 00:00+00'
        and greatest(scheduled_for, last_scheduled_for, created_at, sent_at, started_at, finished_at)
            <= '9999-12-30 00:00+00')
) partition by range (created_at);

create index finished_job_newest on {schema}.finished_job (created_at);
create index finished_job_id on {schema}.finished_job (id);
create index finished_job_of_task on {schema}.finished_job (periodic_task, created_at);
-- What has had a job, in the order of the occurrences: a backfill asks for a few thousand of them at a time.
create index finished_job_of_occurrence on {schema}.finished_job (periodic_task, scheduled_for)
    where state <> 'skipped';
create table {schema}.finished_job_default partition of {schema}.finished_job default;

-- The occurrences of a range, submitted on request.
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
    skipped bigint not null default 0,
    problem text,
    created_at timestamptz not null default {schema}.now(),
    created_by text not null default session_user,
    finished_at timestamptz,
    marked_by text,
    marked_at timestamptz,
    mark_lease interval,
    constraint backfill_bounds_in_order check (until >= since),
    constraint backfill_over_or_not check ((state = 'running') = (finished_at is null)),
    constraint backfill_problem_ends_it check (problem is null or state = 'cancelled'),
    constraint backfill_name_length check (octet_length(periodic_task) <= 800),
    constraint backfill_instants_in_range check (
        least(since, reached, next_at, created_at, finished_at, marked_at) >= '0001-01-02 00:00+00'
        and greatest(until, reached, next_at, created_at, finished_at, marked_at) <= '9999-12-30 00:00+00'),
    constraint backfill_lease_in_range check (
        timestamp '2000-01-01' + mark_lease between '2000-01-01' and '2001-01-01'),
    -- The total is the sum of the two.
    constraint backfill_counts_in_range check (
        least(total, submitted, skipped) >= 0
        and greatest(submitted, skipped) <= 2000000000000000000
        and total <= 9000000000000000000)
) with (fillfactor = 50);

create index backfill_running on {schema}.backfill (periodic_task) where state = 'running';

create table {schema}.node (
    id text primary key,
    role text not null constraint node_role_known check (role in ('beat', 'worker')),
    hostname text not null,
    pid int not null,
    version text not null,
    started_at timestamptz not null default {schema}.now(),
    last_seen_at timestamptz not null default {schema}.now(),
    tracking boolean not null default false,
    constraint node_size check (
        octet_length(id) <= 1000 and octet_length(hostname) <= 1000 and octet_length(version) <= 1000),
    constraint node_instants_in_range check (
        least(started_at, last_seen_at) >= '0001-01-02 00:00+00'
        and greatest(started_at, last_seen_at) <= '9999-12-30 00:00+00')
) with (fillfactor = 50);

-- What the code of each version of an app declares: few rows, written with each heartbeat. Beats of several versions
-- may run side by side.
create table {schema}.declaration (
    app text not null,
    hash text not null,
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    listening_since timestamptz not null,
    dead_after interval not null,
    primary key (app, hash),
    constraint declaration_instants_in_range check (
        least(first_seen_at, last_seen_at, listening_since) >= '0001-01-02 00:00+00'
        and greatest(first_seen_at, last_seen_at, listening_since) <= '9999-12-30 00:00+00'),
    constraint declaration_dead_after_in_range check (
        timestamp '2000-01-01' + dead_after between '2000-01-01' and '2001-01-01')
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- A row an app, changed only when another declaration comes into force. A transaction that writes what code declares
-- locks it.
create table {schema}.declaration_in_force (
    app text primary key,
    hash text not null,
    revision bigint not null
        constraint declaration_in_force_revision_in_range check (revision <= 9000000000000000000)
);

-- What has been raised as an alert and is not over: one row for each episode, whichever beat saw it first.
create table {schema}.alert (
    kind text not null constraint alert_kind_known check (kind in ('overdue', 'dead_beat')),
    name text not null,
    due_at timestamptz not null,
    reason text not null,
    raised_at timestamptz not null default {schema}.now(),
    raised_by text not null,
    constraint alert_once primary key (kind, name),
    constraint alert_instants_in_range check (
        least(due_at, raised_at) >= '0001-01-02 00:00+00'
        and greatest(due_at, raised_at) <= '9999-12-30 00:00+00')
);
