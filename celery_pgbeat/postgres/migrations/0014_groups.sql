-- Groups: periodic tasks that are paused together, and of whose jobs only so many are under way at a time.
-- May run before the new code; nodes of older packages idle from then on, for they would send what a group holds back.

create table {schema}.task_group (
    name text primary key
        constraint task_group_name_length check (char_length(name) between 1 and 200),
    max_active int
        constraint task_group_max_active_positive check (max_active > 0),
    paused boolean not null default false,
    pause_reason text
);

alter table {schema}.periodic_task
    add column group_name text
        constraint periodic_task_group_name_length check (char_length(group_name) between 1 and 200),
    -- Whether its group is paused: what is not due must not be in the index of what is.
    add column group_paused boolean not null default false;

create index periodic_task_in_group on {schema}.periodic_task (group_paused, group_name) where group_name is not null;
drop index {schema}.periodic_task_due;
create index periodic_task_due on {schema}.periodic_task (next_run_at)
    where enabled and not group_paused and problem is null and next_run_at is not null;
drop index {schema}.periodic_task_unplanned;
create index periodic_task_unplanned on {schema}.periodic_task (name)
    where enabled and not group_paused and problem is null and planned_revision <> revision;

alter table {schema}.active_job
    add column group_name text,
    -- Its place in its group, from 1; 0 where the group had no limit when it got there; NULL while it waits.
    add column slot int constraint active_job_slot_in_range check (slot >= 0),
    -- What a buffered job waits for: the end of a job of its own name, or a place in its group.
    add column waits_for text constraint active_job_waits_for_known check (waits_for in ('turn', 'place'));

update {schema}.active_job set waits_for = 'turn' where state = 'buffered';

alter table {schema}.active_job
    add constraint active_job_waits_iff_buffered check ((state = 'buffered') = (waits_for is not null));

drop index {schema}.active_job_buffered;
create index active_job_waiting on {schema}.active_job (periodic_task, scheduled_for) where waits_for = 'turn';
create index active_job_waiting_in_group on {schema}.active_job (group_name, scheduled_for) where waits_for = 'place';
create unique index job_in_its_place on {schema}.active_job (group_name, slot) where slot > 0;
create index active_job_of_group on {schema}.active_job (group_name) where slot is not null;

drop function if exists {schema}.schedule(
    text, text, text, jsonb, jsonb, text, int, jsonb, text, timestamptz, text, timestamptz, timestamptz, int, interval,
    text, text, interval, int, interval, interval, text[], text, text, text, text, text, text, boolean);
