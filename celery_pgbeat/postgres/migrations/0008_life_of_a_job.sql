-- The other overlap policies, the least gap between two starts, and knowledge from the result backend.
-- May run before the new code; nodes of older packages idle from then on, for they would skip what has to wait.

alter table {schema}.periodic_task
    add column min_gap interval
        constraint periodic_task_min_gap_in_range check (min_gap > interval '0' and min_gap <= interval '1 year'),
    drop constraint periodic_task_overlap_known,
    add constraint periodic_task_overlap_known
        check (overlap in ('skip', 'buffer_one', 'buffer_all', 'cancel_other', 'terminate_other', 'allow')),
    drop constraint periodic_task_tracking_known,
    add constraint periodic_task_tracking_known check (tracking in ('full', 'result', 'send'));

alter table {schema}.active_job
    add column min_gap interval,
    -- It has waited for its turn: what the next occurrence is does not make it late.
    add column waited boolean not null default false,
    -- What the worker is asked to do with it, while it runs.
    add column ask text constraint active_job_ask_known check (ask in ('cancel', 'terminate'));

create index active_job_under_way on {schema}.active_job (periodic_task) where state <> 'buffered';
create index active_job_unreported on {schema}.active_job (periodic_task) where tracking = 'result';
create index active_job_asked on {schema}.active_job (worker) where ask is not null;

-- What workers write about a periodic task. A table of its own: an author's open transaction on the row of the
-- periodic task never stands in a worker's way.
create table {schema}.periodic_task_state (
    name text primary key,
    last_started_at timestamptz
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

drop function if exists {schema}.schedule(
    text, text, text, jsonb, jsonb, text, int, jsonb, text, timestamptz, text, timestamptz, timestamptz, int, interval,
    text, text, interval, int, interval, text[], text, text, text, text, text, text, boolean);
