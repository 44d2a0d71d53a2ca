-- Jitter, blackout windows and catch-up of all that was missed. May run before the new code; nodes of older packages
-- idle from then on, for they would send inside a window.

alter table {schema}.periodic_task
    add column jitter interval
        constraint periodic_task_jitter_in_range check (jitter >= interval '0' and jitter <= interval '1 year'),
    add column blackout text[],
    add column blackout_action text not null default 'defer'
        constraint periodic_task_blackout_action_known check (blackout_action in ('defer', 'skip')),
    add column catchup_limit int
        constraint periodic_task_catchup_limit_positive check (catchup_limit > 0),
    -- The named windows in `blackout`, and how often one of them was changed.
    add column windows_used text[],
    add column windows_revision bigint not null default 0,
    drop constraint periodic_task_catchup_known,
    add constraint periodic_task_catchup_known check (catchup in ('none', 'latest', 'earliest', 'all'));

create index periodic_task_of_window on {schema}.periodic_task using gin (windows_used) where windows_used is not null;

create table {schema}.blackout (
    name text primary key
        constraint blackout_name_length check (char_length(name) between 1 and 200),
    windows text[] not null,
    timezone text
);

-- When a job was due, with jitter and deferral: what is late is measured from there.
alter table {schema}.active_job add column due_at timestamptz;

create index active_job_buffered on {schema}.active_job (periodic_task, scheduled_for) where state = 'buffered';

-- They have more arguments now, or other ones.
drop function if exists {schema}.schedule(
    text, text, text, jsonb, jsonb, text, int, jsonb, text, timestamptz, text, timestamptz, timestamptz, int, text,
    text, interval, interval, text, text, text, text, text, boolean);
