-- The tables. May run before the new code: nothing else uses the schema yet.
--
-- Two tokens are replaced when a migration or a statement is loaded: {schema} by the quoted schema name, {channel} by
-- the same name as a string literal (the notification channel).
--
--   what is to run     periodic_task, periodic_task_state, dependency, blackout, task_group
--   what runs          active_job, open_work, lost_message, dependency_to_check, group_to_check, group_failure
--   what has run       finished_job
--   runs on request    backfill
--   who is there       node, stopped_beat, app, declaration, declaration_in_force, refused_declaration
--   records            alert, change
--   the schema itself  schema_version, last_author
--
-- Every instant, duration, count and text that anybody may write is bounded. One value that a driver cannot carry, or
-- with which Postgres cannot calculate, would break every batch that its row is in. NULLs pass every check. The checks
-- of jobs are domains: Postgres reads those once in a session, the constraints of a table for each statement that
-- writes to it.
--
-- A table whose rows change all the time has room in its pages (fillfactor), so that the new version of a row stays
-- beside the old one and rewrites no index entry (HOT), and is vacuumed early.

-- The one clock of the schema. It must be stable (statement time), or no index on next_run_at can serve a comparison
-- with it. Tests replace this function by one that they can set.
create function {schema}.now() returns timestamptz
language sql stable parallel safe
as $$ select statement_timestamp() $$;

create domain {schema}.instant as timestamptz check (value between '0001-01-02 00:00+00' and '9999-12-30 00:00+00');
create domain {schema}.deadline as timestamptz check (value >= '0001-01-02 00:00+00');  -- may be infinite
-- It is tried on an instant: as an interval '12000000 months -360000000 days' compares as nothing.
create domain {schema}.duration as interval check (
    timestamp '2000-01-01' + value between '2000-01-01' and '2001-01-01');
create domain {schema}.counter as int check (value between 0 and 2000000000);
create domain {schema}.task_name as text check (octet_length(value) <= 800);
create domain {schema}.person as text check (octet_length(value) <= 800);
create domain {schema}.celery_name as text check (octet_length(value) <= 4000);
create domain {schema}.remark as text check (octet_length(value) <= 8000);
create domain {schema}.origin as text check (value in ('schedule', 'catchup', 'backfill', 'manual'));
create domain {schema}.skip_reason as text check (
    value in ('overlap', 'blackout', 'too_late', 'paused', 'deleted', 'limit', 'min_gap', 'superseded', 'not_allowed',
              'not_sent', 'finished', 'after', 'shadow'));
create domain {schema}.kind as text check (value in ('task', 'human'));
create domain {schema}.stop_request as text check (value in ('cancel', 'terminate'));
create domain {schema}.wait_reason as text check (value in ('predecessor', 'upstream', 'slot'));
create domain {schema}.message as jsonb check (pg_column_size(value) <= 720000);

-- One row. `definitions` is the checksum of the functions, triggers and views that were applied last.
create table {schema}.schema_version (
    version int primary key,
    min_compatible int not null,
    definitions text
);

-- Periodic tasks: what is to run, and when.

create table {schema}.periodic_task (
    name text primary key
        constraint periodic_task_name_length check (char_length(name) between 1 and 200),
    task text
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
    -- What is not due must not be in the index of what is. The trigger of task_group writes it.
    group_paused boolean not null default false,
    submitter text,
    subject text,

    pause_after_failures int
        constraint periodic_task_pause_after_failures_positive check (pause_after_failures > 0),
    enabled boolean not null default true,
    pause_reason text,
    paused_by text,
    paused_until timestamptz,

    on_lost text not null default 'give_up'
        constraint periodic_task_on_lost_known check (on_lost in ('give_up', 'rerun')),
    on_error text not null default 'fail'
        constraint periodic_task_on_error_known check (on_error in ('fail', 'ask')),
    tracking text not null default 'full'
        constraint periodic_task_tracking_known check (tracking in ('full', 'result', 'send')),

    kind text not null default 'task'
        constraint periodic_task_kind_known check (kind in ('task', 'human')),
    target text[],
    due_in interval
        constraint periodic_task_due_in_in_range check (
            due_in > interval '0' and due_in <= interval '366 days'
            and timestamp '2000-01-01' + due_in between '2000-01-01' and '2001-01-01'),
    after text[],
    after_condition text not null default 'success'
        constraint periodic_task_after_condition_known check (after_condition in ('success', 'finish')),

    managed_by text not null default 'sql',
    problem text,
    revision bigint not null default 1,
    planned_revision bigint not null default 0,
    created_at timestamptz not null default {schema}.now(),
    updated_at timestamptz not null default {schema}.now(),

    -- What follows is internal: the beats and the triggers write it.
    schedule_set_at timestamptz not null default {schema}.now(),
    planned_from timestamptz not null default {schema}.now(),
    -- The times that code has changed are judged from the row's last run.
    judged_from timestamptz,
    lazy boolean not null default false,
    declared jsonb,
    -- The zone as its author gave it: NULL stays NULL when a beat fills in the app's.
    declared_timezone text,
    -- The named windows in `blackout`, and how often one of them was changed.
    windows_used text[],
    windows_revision bigint not null default 0,
    -- Since when occurrences that count as decided may be decided anew, because a person wanted it. A job's id is made
    -- from it too: a second job of the same instant has an id of its own.
    decided_anew_at timestamptz,
    -- The count of failures that belongs to the row bears this instant.
    failures_from timestamptz not null default {schema}.now(),

    -- What a mark or a submit writes comes last, as in active_job.
    -- The runs that a beat has planned ahead, and when each is due. A mark submits them at once.
    planned_ahead timestamptz[],
    due_ahead timestamptz[],
    run_count int not null default 0,
    next_run_at timestamptz,
    planned_for timestamptz,
    last_run_at timestamptz,
    pickup_deadline interval,
    taken_over boolean not null default false,
    marked_by text,
    marked_at timestamptz,
    mark_lease interval,

    constraint periodic_task_task_or_human check (kind = 'human' or task is not null),
    constraint periodic_task_bounds_in_order check (end_at >= start_at),
    -- 64 kB of text are at most this much jsonb; the trigger counts the text, as Python does.
    constraint periodic_task_size check (pg_column_size(args) + pg_column_size(kwargs) <= 327680),
    constraint periodic_task_after_size check (pg_column_size(after) <= 100000),
    constraint periodic_task_instants_in_range check (
        least(anchor, start_at, end_at, paused_until, next_run_at, planned_for, last_run_at, marked_at, created_at,
              updated_at, schedule_set_at, planned_from, failures_from, judged_from, decided_anew_at)
            >= '0001-01-02 00:00+00'
        and greatest(anchor, start_at, end_at, paused_until, next_run_at, planned_for, last_run_at, marked_at,
                     created_at, updated_at, schedule_set_at, planned_from, failures_from, judged_from,
                     decided_anew_at)
            <= '9999-12-30 00:00+00'),
    -- To Postgres a year has 360 days, so '1 year' would refuse 365.
    constraint periodic_task_durations_in_range check (
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
create index periodic_task_due_in_group on {schema}.periodic_task (group_name, next_run_at)
    where enabled and not group_paused and problem is null and next_run_at is not null and group_name is not null;
create index periodic_task_unplanned on {schema}.periodic_task (name)
    where enabled and not group_paused and problem is null and planned_revision <> revision;
create index periodic_task_with_problem on {schema}.periodic_task (name) where problem is not null;
create index periodic_task_resumes on {schema}.periodic_task (paused_until)
    where not enabled and paused_until is not null;
create index periodic_task_in_group on {schema}.periodic_task (group_paused, group_name)
    where group_name is not null;
create index periodic_task_of_window on {schema}.periodic_task using gin (windows_used)
    where windows_used is not null;
create index periodic_task_of_code on {schema}.periodic_task (managed_by) where declared is not null;

-- What workers write about a periodic task. A table of its own: an author's open transaction on the row of the
-- periodic task never makes a worker wait.
create table {schema}.periodic_task_state (
    name {schema}.task_name primary key,
    last_started_at {schema}.instant,
    -- For which row of that name the last start is remembered: its created_at.
    row_created_at {schema}.instant,
    failures_in_row int not null default 0,
    failures_from {schema}.instant,
    last_failed_at {schema}.instant,
    last_failed_job uuid,
    pause_due boolean not null default false
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

create index periodic_task_state_pause_due on {schema}.periodic_task_state (name) where pause_due;

-- The windows that several periodic tasks use by name.
create table {schema}.blackout (
    name text primary key
        constraint blackout_name_length check (char_length(name) between 1 and 200),
    windows text[] not null,
    timezone text
);

-- One periodic task after others.

-- The column `after` once more, a row for each name in it, for those who ask what comes after a periodic task. The
-- trigger of periodic_task writes it, and keeps each upstream task in the table while another names it.
create table {schema}.dependency (
    upstream {schema}.task_name not null,
    downstream {schema}.task_name not null,

    constraint dependency_once primary key (upstream, downstream)
);

create index dependency_of_downstream on {schema}.dependency (downstream);

-- What beats have to look at: all that comes after an upstream task that has ended, or one downstream task, of which a
-- job begins to wait or whose definition was changed. No write here waits for another, and beats delete the rows. What
-- is written depends on nothing that another transaction may change at this moment, or a wait could be forgotten.
create table {schema}.dependency_to_check (
    upstream {schema}.task_name,
    downstream {schema}.task_name,
    -- How often a beat has found locked what it was to look at. The rest comes before it.
    tries {schema}.counter not null default 0,

    constraint dependency_to_check_of_one check ((upstream is null) <> (downstream is null))
) with (autovacuum_vacuum_scale_factor = 0.02);

create index dependency_to_check_in_order on {schema}.dependency_to_check (tries, upstream, downstream);

-- Groups: periodic tasks that are paused together, and of whose jobs only so many are under way at a time.

create table {schema}.task_group (
    name text primary key
        constraint task_group_name_length check (char_length(name) between 1 and 200),
    max_active int
        constraint task_group_max_active_positive check (max_active > 0),
    ordered boolean not null default false,
    rate_limit text,
    waits_for text[],
    pause_on_failure boolean not null default false,
    state text not null default 'active'
        constraint task_group_state_known check (state in ('active', 'paused', 'waiting', 'finished')),
    paused boolean not null default false,
    pause_reason text,

    -- What follows is internal: the trigger and the beats write it.
    -- The time from one job to the next under rate_limit.
    rate_interval interval,
    -- From when on the next job may go under rate_limit.
    next_turn_at {schema}.instant,
    -- The row whose job went last under rate_limit: its others come after those of the other rows.
    last_served text,
    -- Whether a job of the group waits for its turn. Else it is sent as soon as it is made.
    limited boolean not null generated always as (
        max_active is not null or ordered or waits_for is not null or rate_limit is not null) stored,

    constraint task_group_one_at_a_time check (not ordered or max_active is null or max_active = 1),
    constraint task_group_size check (
        pg_column_size(waits_for) <= 100000 and octet_length(rate_limit) <= 100 and octet_length(last_served) <= 800),
    constraint task_group_rate_in_range check (
        (rate_limit is null) = (rate_interval is null)
        and rate_interval > interval '0' and rate_interval <= interval '366 days')
);

create index task_group_waits on {schema}.task_group (name) where waits_for is not null;
create index task_group_turns on {schema}.task_group (next_turn_at) where rate_interval is not null;

-- Jobs that have failed in groups with pause_on_failure. From then until the group is resumed, none of its jobs gets
-- its turn. A table of its own: an author's open transaction on the row of the group never makes a worker wait.
create table {schema}.group_failure (
    group_name {schema}.task_name not null,
    job uuid not null,
    periodic_task {schema}.task_name not null,
    scheduled_for {schema}.instant not null,
    failed_at {schema}.instant not null default {schema}.now(),
    -- Whether a beat has yet to pause the group.
    pause_due boolean not null default true,
    -- Whether a person has had it run again by itself: it is not retried with the group.
    retried boolean not null default false,

    constraint group_failure_once primary key (group_name, job)
);

create index group_failure_pause_due on {schema}.group_failure (group_name) where pause_due;

-- Groups in which a job may have its turn now: one more row each time something has changed in a group. So a beat looks
-- at these groups only, not at each in which jobs wait. No write here waits for another, and beats delete the rows.
-- What is written depends on nothing that another transaction may change at this moment, or a job could be forgotten.
create table {schema}.group_to_check (
    group_name {schema}.task_name not null,
    -- Whether a beat has seen that what keeps the jobs waiting may end without another row here.
    seen boolean not null default false
);

create index group_to_check_of_group on {schema}.group_to_check (group_name, seen);
create index group_to_check_new on {schema}.group_to_check (group_name) where not seen;

-- What a beat has decided about a due row: the mark and the next run that it has found there, the occurrences that are
-- skipped, then the fields of `Decision` in planning/types.py. A test compares them.
create type {schema}.decision as (
    name text,
    marked_at timestamptz,
    old_next_run_at timestamptz,
    skipped_first timestamptz,
    skipped_last timestamptz,
    skipped_count int,
    skipped_reason text,
    job uuid,
    scheduled_for timestamptz,
    due_at timestamptz,
    origin text,
    decided_until timestamptz,
    next_run_at timestamptz,
    planned_for timestamptz,
    pickup_deadline double precision,
    planned_ahead timestamptz[],
    due_ahead timestamptz[]
);

-- What `submit` has found out about a row that other jobs block.
create type {schema}.verdict as (
    name text,
    waits boolean,
    reason text,
    blocked_by uuid,
    superseded int,
    lost uuid
);

-- Jobs that are not final. Small, and its unique index *is* the overlap rule. The columns of this table and of
-- finished_job are in the order of celery_pgbeat/columns_of_job.py, but here those that are `hot` come last.

create table {schema}.active_job (
    id uuid primary key,
    periodic_task {schema}.task_name not null,
    scheduled_for {schema}.instant not null,
    origin {schema}.origin not null,
    task {schema}.celery_name,
    queue {schema}.celery_name,
    created_at {schema}.instant not null default {schema}.now(),
    sends {schema}.counter not null default 0,
    beat text,
    owner {schema}.person,
    due_by {schema}.instant,
    -- What the worker is to do with it, while it runs.
    stop_request {schema}.stop_request,
    -- When it was due, with jitter and deferral: what is late is measured from there.
    due_at {schema}.instant,
    group_name {schema}.task_name,
    exclusive boolean not null,
    message {schema}.message not null,
    on_lost text not null,
    tracking text not null,
    min_gap {schema}.duration,
    max_run_time {schema}.duration,
    pause_after_failures int,
    pickup_deadline {schema}.duration not null,
    run {schema}.counter not null default 0,
    resends {schema}.counter not null default 0,
    refusals {schema}.counter not null default 0,
    mark_lease {schema}.duration,
    -- What it waits for, buffered: the end of a job of its own name, or a slot in its group; in state `waiting`: the
    -- tasks in `after`.
    wait_reason {schema}.wait_reason,
    -- Whether it has waited: what the next occurrence is does not make it late.
    waited boolean not null default false,
    -- Its slot in its group, from 1; 0 where the group had no limit when it was made or promoted; NULL while it waits.
    slot {schema}.counter,
    -- Which backfill has made it.
    backfill uuid,
    on_error text not null default 'fail',
    kind {schema}.kind not null default 'task',
    target text[],
    due_in {schema}.duration,

    -- What a confirm, a start or a heartbeat writes comes last: the WAL has of a new version only what lies between
    -- the first and the last column that differ from the old one.
    -- Not a domain: by this constraint the planner skips this table where only final states are asked for.
    state text not null
        constraint active_job_state_known
        check (state in ('pending', 'sent', 'running', 'retrying', 'buffered', 'waiting', 'error', 'created')),
    sent_at {schema}.instant,
    started_at {schema}.instant,
    attempt {schema}.counter not null default 0,
    worker text,
    error {schema}.remark,
    -- When it is given up or sent again if nothing has been reported of it. May be infinite; never computed with.
    busy_until {schema}.deadline not null,
    attempt_at {schema}.instant,
    -- When a beat looks at it again; '-infinity' for what is to be sent at once. Never later than busy_until. The
    -- default has passed, so that the next look finds a row that was inserted without a value.
    check_at timestamptz not null default 'epoch',
    token uuid,
    marked_by text,
    marked_at {schema}.instant,

    constraint active_job_waits_iff_buffered check (
        (state in ('buffered', 'waiting')) = (wait_reason is not null)
        and (state = 'waiting') = (wait_reason is not distinct from 'upstream')),
    -- Beats and workers can do nothing with a job for people: no worker has its token, no beat looks at it (check_at),
    -- and no deadline frees its row (busy_until).
    constraint active_job_of_people check (
        case
            when kind = 'human'
            then state in ('created', 'running', 'buffered', 'waiting') and (state = 'running') = (owner is not null)
                and token is not null and tracking = 'full' and marked_by is null
                and busy_until = 'infinity' and check_at = 'infinity'
            else state <> 'created' and owner is null and task is not null
        end)
)
-- A confirm writes a batch of neighbours in one statement: each needs room for its new version beside it.
with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- The two rules: one exclusive job of each periodic task, and one job in each slot of a group. The first index also
-- finds all jobs of a periodic task, so those that are not exclusive are in it too, each as one of its own.
create unique index job_one_at_a_time on {schema}.active_job
    (periodic_task, (case when exclusive then '00000000-0000-0000-0000-000000000000' else id end));
create unique index job_one_in_a_slot on {schema}.active_job (group_name, slot) where slot > 0;

create index active_job_of_group on {schema}.active_job (group_name) where slot is not null;
create index active_job_of_backfill on {schema}.active_job (backfill) where backfill is not null;
create index active_job_of_owner on {schema}.active_job (owner, due_by) where owner is not null;
create index active_job_to_check on {schema}.active_job (check_at, created_at);
create index active_job_to_stop on {schema}.active_job (id) where stop_request is not null;
create index active_job_unreported on {schema}.active_job (periodic_task) where tracking = 'result';
-- Of columns that no confirm and no start writes: these must rewrite no index entry.
create index active_job_asking on {schema}.active_job (created_at) where on_error = 'ask';
-- What the view overdue looks for, beside what a beat has to look at.
create index active_job_due_by on {schema}.active_job (due_by) where due_by is not null;

-- What waits: for the job before it, for other tasks, for its turn in a group; of each row of a group by itself, and
-- in a group for jobs of their own rows.
create index active_job_waiting on {schema}.active_job (periodic_task, scheduled_for)
    where wait_reason = 'predecessor';
create index active_job_waiting_for_upstream on {schema}.active_job (periodic_task) where wait_reason = 'upstream';
create index active_job_waiting_in_group on {schema}.active_job (group_name, scheduled_for)
    where wait_reason = 'slot';
create index active_job_waiting_in_group_by_task on {schema}.active_job (group_name, periodic_task, scheduled_for)
    where wait_reason = 'slot';
create index active_job_waiting_behind_in_group on {schema}.active_job (group_name, scheduled_for)
    where wait_reason = 'predecessor' and group_name is not null;

-- What people may pick up: for each job in state `created` a row for each of its targets, or one with an empty text if
-- every user may take it. So a list for a user with ten roles is ten probes of an index, however many jobs are open and
-- however many different targets they have.
create table {schema}.open_work (
    target text not null,
    due_by {schema}.deadline not null,
    scheduled_for {schema}.instant not null,
    job uuid not null,
    -- Whether no beat has sent the signal about the job yet; in one row of each job.
    is_new boolean not null default true,

    primary key (target, due_by, scheduled_for, job)
) with (autovacuum_vacuum_scale_factor = 0.02);

create index open_work_of_job on {schema}.open_work (job);
create index open_work_new on {schema}.open_work (job) where is_new;

-- The jobs whose message the broker has lost, as beats have noticed.
create table {schema}.lost_message (
    job uuid primary key,
    noticed_at {schema}.instant not null default {schema}.now()
);

-- Jobs that are final, partitioned by day of creation: retention drops days instead of deleting rows.

create table {schema}.finished_job (
    id uuid not null,
    periodic_task {schema}.task_name not null,
    scheduled_for {schema}.instant not null,
    last_scheduled_for {schema}.instant,
    occurrences int not null default 1,
    origin {schema}.origin not null,
    state text not null
        constraint finished_job_state_known
        check (state in ('succeeded', 'failed', 'revoked', 'expired', 'lost', 'skipped', 'untracked')),
    reason {schema}.skip_reason,
    blocked_by uuid,
    task {schema}.celery_name,
    queue {schema}.celery_name,
    created_at {schema}.instant not null,
    sent_at {schema}.instant,
    started_at {schema}.instant,
    finished_at {schema}.instant not null,
    attempt {schema}.counter not null default 0,
    sends {schema}.counter not null default 0,
    beat text,
    worker text,
    error {schema}.remark,
    busy_until {schema}.deadline,
    owner {schema}.person,
    due_by {schema}.instant,
    note {schema}.remark,
    due_at {schema}.instant,
    group_name {schema}.task_name,
    run {schema}.counter not null default 0,
    -- Kept for lost jobs only: what the job's row was, so that one whose message turns up after all can still start.
    restart_data jsonb,
    -- The arguments of a manual job that did not succeed: nothing else knows them when it is retried.
    arguments jsonb,

    constraint finished_job_reason_iff_skipped check ((state = 'skipped') = (reason is not null))
) partition by range (created_at);

create index finished_job_newest on {schema}.finished_job (created_at);
create index finished_job_id on {schema}.finished_job (id);
create index finished_job_of_task on {schema}.finished_job (periodic_task, created_at);
-- What has had a job, in the order of the occurrences: a backfill asks for a few thousand of them at a time.
create index finished_job_of_occurrence on {schema}.finished_job (periodic_task, scheduled_for)
    where state <> 'skipped';
-- What was skipped, by the last occurrence of the record: a task that waits for the end of an occurrence asks for it.
create index finished_job_skipped on {schema}.finished_job (periodic_task, coalesce(last_scheduled_for, scheduled_for))
    where state = 'skipped';

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

-- Beats and workers, and what the code of their apps declares.

create table {schema}.node (
    id text primary key,
    role text not null
        constraint node_role_known check (role in ('beat', 'worker')),
    hostname text not null,
    pid int not null,
    version text not null,
    started_at timestamptz not null default {schema}.now(),
    last_seen_at timestamptz not null default {schema}.now(),
    -- Of a worker: whether it tracks jobs.
    tracking boolean not null default false,
    -- Of a beat: whether it sends, waits or only decides, and what it knows of its broker.
    mode text
        constraint node_mode_known check (mode in ('sends', 'waits', 'shadow')),
    broker_problem text,
    broker_problem_since timestamptz,

    constraint node_size check (
        octet_length(id) <= 1000 and octet_length(hostname) <= 1000 and octet_length(version) <= 1000),
    constraint node_instants_in_range check (
        least(started_at, last_seen_at) >= '0001-01-02 00:00+00'
        and greatest(started_at, last_seen_at) <= '9999-12-30 00:00+00')
) with (fillfactor = 50);

-- The beats that have stopped cleanly. A beat that stops takes its row out of `node`, so it does not count as dead.
-- This table remembers when it stopped.
create table {schema}.stopped_beat (
    id text primary key,
    hostname text not null,
    stopped_at {schema}.instant not null default {schema}.now()
);

-- A row an app, by its name, written with each heartbeat of its beats.
create table {schema}.app (
    name text primary key
        constraint app_name_length check (octet_length(name) between 1 and 1000),
    first_seen_at {schema}.instant not null,
    last_seen_at {schema}.instant not null,
    listening_since {schema}.instant not null,
    dead_after {schema}.duration not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- What the code of each version of an app declares: few rows, written with each heartbeat. Beats of several versions
-- may run side by side.
create table {schema}.declaration (
    app text not null,
    hash text not null,
    first_seen_at {schema}.instant not null,
    last_seen_at {schema}.instant not null,
    listening_since {schema}.instant not null,
    dead_after {schema}.duration not null,

    primary key (app, hash)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- A row an app, changed only when another declaration comes into force. A transaction that writes what code declares
-- locks it.
create table {schema}.declaration_in_force (
    app text primary key,
    hash text not null,
    revision bigint not null
        constraint declaration_in_force_revision_in_range check (revision <= 9000000000000000000)
);

-- What code declares and its beats refuse. Few rows: only what is wrong. Written when a declaration comes into force,
-- cleared when it is mended.
create table {schema}.refused_declaration (
    app text not null,
    name {schema}.task_name not null,
    reason text not null,
    hash text not null,
    seen_at {schema}.instant not null default {schema}.now(),

    constraint refused_declaration_once primary key (app, name),
    constraint refused_declaration_size check (
        octet_length(app) <= 1000 and octet_length(name) <= 800 and octet_length(reason) <= 8000
        and octet_length(hash) <= 1000)
);

create index refused_declaration_of_name on {schema}.refused_declaration (name);

-- Records.

-- What has been raised as an alert and is not over: one row for each episode, whichever beat saw it first.
create table {schema}.alert (
    kind text not null
        constraint alert_kind_known check (kind in ('overdue', 'dead_beat', 'refused')),
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

-- Who changed what: an audit trail of definitions and of people's decisions. Triggers and functions write it for every
-- client.
create table {schema}.change (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    who text not null,
    role text not null,
    kind text not null
        constraint change_kind_known check (kind in ('periodic_task', 'group', 'window')),
    name text not null,
    action text not null
        constraint change_action_known check (
            action in ('created', 'changed', 'renamed', 'removed', 'paused', 'resumed', 'next_run_set', 'triggered',
                       'backfilled', 'retried', 'resent', 'cancelled', 'failed', 'picked_up', 'released', 'finished')),
    revision int,
    columns text[],
    before jsonb,
    after jsonb,
    -- Apart, so that a role may read all else.
    arguments_before jsonb,
    arguments_after jsonb,
    job uuid,
    backfill uuid,
    reason text,

    constraint change_size check (
        octet_length(who) <= 800 and octet_length(name) <= 800 and octet_length(reason) <= 8000)
);

create index change_of_name on {schema}.change (name, id);
-- A name that a row had before, and the renaming by which it lost it.
create index change_renamed on {schema}.change ((before ->> 'name'), id) where action = 'renamed';

-- Rows to lock, in place of advisory locks: a transaction that could close a circle, or that makes or drops the days of
-- the history, locks one. The first two also say which transaction did so last.

create table {schema}.last_author (
    what text not null
        constraint last_author_what_known
        check (what in ('periodic_task.after', 'task_group.waits_for', 'make_days', 'prune')),
    transaction xid8 not null,

    constraint last_author_once primary key (what)
);

insert into {schema}.last_author (what, transaction)
values ('periodic_task.after', '0'), ('task_group.waits_for', '0'), ('make_days', '0'), ('prune', '0');
