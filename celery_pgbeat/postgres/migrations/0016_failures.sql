-- pause_after_failures: pausing what fails again and again.
-- May run before the new code; nodes of older packages work on beside it: jobs that they submit or finish are not counted.

alter table {schema}.periodic_task
    add column pause_after_failures int
        constraint periodic_task_pause_after_failures_positive check (pause_after_failures > 0),
    -- The beats' own business: the count of failures that belongs to the row bears this instant.
    add column failures_from timestamptz not null default {schema}.now();

alter table {schema}.active_job add column pause_after_failures int;

-- What the ends of jobs tell. Here, and not in the row: an author's open transaction never stands in a worker's way.
alter table {schema}.periodic_task_state
    add column failures_in_row int not null default 0,
    add column failures_from timestamptz,
    add column last_failed_at timestamptz,
    add column last_failed_job uuid,
    add column pause_due boolean not null default false;

create index periodic_task_state_pause_due on {schema}.periodic_task_state (name) where pause_due;

-- It has more arguments now.
drop function if exists {schema}.schedule(
    text, text, text, jsonb, jsonb, text, int, jsonb, boolean, text, timestamptz, text, timestamptz, timestamptz, int,
    interval, text, text, interval, int, interval, interval, text[], text, text, text, text, text, text, text, boolean);
