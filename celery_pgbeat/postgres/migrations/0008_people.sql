-- Tasks for people. May run before the new code; but older beats do not know such rows: define them when all are new.

alter table {schema}.periodic_task alter column task drop not null;
alter table {schema}.periodic_task
    add column kind text not null default 'task'
        constraint periodic_task_kind_known check (kind in ('task', 'human')),
    add column target text[],
    add column due_in interval
        constraint periodic_task_due_in_in_range check (
            due_in > interval '0' and due_in <= interval '366 days'
            and timestamp '2000-01-01' + due_in between '2000-01-01' and '2001-01-01'),
    add constraint periodic_task_task_or_human check (kind = 'human' or task is not null);

alter table {schema}.active_job alter column task drop not null;
alter table {schema}.active_job
    add column kind text not null default 'task'
        constraint active_job_kind_known check (kind in ('task', 'human')),
    add column target text[],
    add column due_in interval
        constraint active_job_due_in_in_range check (
            timestamp '2000-01-01' + due_in between '2000-01-01' and '2001-01-01'),
    add column due_by timestamptz
        constraint active_job_due_by_in_range check (
            due_by >= '0001-01-02 00:00+00' and due_by <= '9999-12-30 00:00+00'),
    add column owner text
        constraint active_job_owner_length check (octet_length(owner) <= 800);
alter table {schema}.active_job drop constraint active_job_state_known;
alter table {schema}.active_job add constraint active_job_state_known
    check (state in ('pending', 'sent', 'running', 'retrying', 'buffered', 'error', 'created'));
-- What beats and workers do with a job they cannot do with one for people, whatever they are told: nobody has its
-- token, no beat looks at it (check_at), and no deadline frees its row (busy_until).
alter table {schema}.active_job add constraint active_job_of_people check (
    case
        when kind = 'human'
        then state in ('created', 'running', 'buffered') and (state = 'running') = (owner is not null)
            and token is not null and tracking = 'full' and marked_by is null
            and busy_until = 'infinity' and check_at = 'infinity'
        else state <> 'created' and owner is null and task is not null
    end);

create index active_job_of_owner on {schema}.active_job (owner, due_by) where owner is not null;

alter table {schema}.finished_job alter column task drop not null;
alter table {schema}.finished_job
    add column owner text,
    add column due_by timestamptz,
    add column note text,
    add constraint finished_job_people_size check (octet_length(owner) <= 800 and octet_length(note) <= 8000);

-- What the view overdue looks for, beside what a beat has to look at.
create index active_job_due_by on {schema}.active_job (due_by) where due_by is not null;
-- Of columns that no confirm and no start writes: these must rewrite no index entry.
create index active_job_asking on {schema}.active_job (created_at) where on_error = 'ask';

-- What people may pick up: for each job in state `created` a row for each of its targets, or one with an empty text if
-- anybody may take it. So a list for somebody with ten roles is ten probes of an index, however many jobs are open and
-- however many different targets they have.
create table {schema}.open_work (
    target text not null,
    due_by timestamptz not null,
    scheduled_for timestamptz not null,
    job uuid not null,
    -- Whether no beat has sent the signal about the job yet; in one row of each job.
    is_new boolean not null default true,
    primary key (target, due_by, scheduled_for, job)
) with (autovacuum_vacuum_scale_factor = 0.02);

create index open_work_of_job on {schema}.open_work (job);
create index open_work_new on {schema}.open_work (job) where is_new;

-- It has one more argument now. Both would stay, and a call could mean either.
drop function if exists {schema}.archived(
    {schema}.active_job, text, text, text, int, text, text, timestamptz, timestamptz, uuid, jsonb);
