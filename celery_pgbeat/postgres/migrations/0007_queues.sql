-- Groups as queues. May run before the new code: until somebody sets the new columns, a group is what it was. While
-- beats of an earlier version run, do not finish a group: they go on submitting its occurrences.

-- The function of this name has one more argument now. Both would stay, and a call could mean either. Only the
-- functions of groups call the other one.
drop function if exists {schema}.resume_group(text), {schema}.refuse_unknown_group(text);

alter table {schema}.task_group
    add column ordered boolean not null default false,
    add column state text not null default 'active'
        constraint task_group_state_known check (state in ('active', 'paused', 'waiting', 'finished')),
    add column waits_for text[],
    add column pause_on_failure boolean not null default false,
    add column rate_limit text,
    -- What follows is internal: the trigger and the beats write it.
    -- The time from one job to the next under rate_limit.
    add column rate_interval interval,
    -- From when on the next job may go under rate_limit.
    add column next_turn_at timestamptz,
    -- The row whose job went last under rate_limit: its others come after those of the other rows.
    add column last_served text,
    -- Whether a job of the group waits for its turn. Else it is sent as soon as it is made.
    add column limited boolean not null generated always as (
        max_active is not null or ordered or waits_for is not null or rate_limit is not null) stored,
    add constraint task_group_one_at_a_time check (not ordered or max_active is null or max_active = 1),
    add constraint task_group_size check (
        pg_column_size(waits_for) <= 100000 and octet_length(rate_limit) <= 100 and octet_length(last_served) <= 800),
    add constraint task_group_rate_in_range check (
        (rate_limit is null) = (rate_interval is null)
        and rate_interval > interval '0' and rate_interval <= interval '366 days'),
    add constraint task_group_instant_in_range check (
        next_turn_at between '0001-01-02 00:00+00' and '9999-12-30 00:00+00');

update {schema}.task_group set state = 'paused' where paused;

create index task_group_waits on {schema}.task_group (name) where waits_for is not null;
create index task_group_turns on {schema}.task_group (next_turn_at) where rate_interval is not null;

-- Jobs that have failed in groups with pause_on_failure. From then until the group is resumed, none of its jobs gets
-- its turn. A table of its own: an author's open transaction on the row of the group never makes a worker wait.
create table {schema}.group_failure (
    group_name text not null,
    job uuid not null,
    periodic_task text not null,
    scheduled_for timestamptz not null,
    failed_at timestamptz not null default {schema}.now(),
    -- Whether a beat has yet to pause the group.
    pause_due boolean not null default true,
    -- Whether a person has had it run again by itself: it is not retried with the group.
    retried boolean not null default false,
    constraint group_failure_once primary key (group_name, job),
    constraint group_failure_size check (octet_length(group_name) <= 800 and octet_length(periodic_task) <= 800),
    constraint group_failure_instants_in_range check (
        least(scheduled_for, failed_at) >= '0001-01-02 00:00+00'
        and greatest(scheduled_for, failed_at) <= '9999-12-30 00:00+00')
);

create index group_failure_pause_due on {schema}.group_failure (group_name) where pause_due;

-- Groups in which a job may have its turn now: one more row each time something has changed in a group. So a beat looks
-- at these groups, and not at all in which jobs wait. Nobody waits to write here, and beats take the rows away. What is
-- written depends on nothing that another transaction may change at this moment, or a job could be forgotten.
create table {schema}.group_turn (
    group_name text not null
        constraint group_turn_name_length check (octet_length(group_name) <= 800),
    -- Whether a beat has seen that what keeps the jobs waiting may end without another row here.
    held boolean not null default false
);

create index group_turn_of_group on {schema}.group_turn (group_name, held);
create index group_turn_new on {schema}.group_turn (group_name) where not held;
-- Jobs that wait already.
insert into {schema}.group_turn (group_name)
select distinct group_name from {schema}.active_job where waits_for = 'slot';

-- What is due in a group, and what waits in it: of each row by itself, and for jobs of their own rows.
create index periodic_task_due_in_group on {schema}.periodic_task (group_name, next_run_at)
    where enabled and not group_paused and problem is null and next_run_at is not null and group_name is not null;
create index active_job_waiting_in_group_by_task on {schema}.active_job (group_name, periodic_task, scheduled_for)
    where waits_for = 'slot';
create index active_job_waiting_behind_in_group on {schema}.active_job (group_name, scheduled_for)
    where waits_for = 'predecessor' and group_name is not null;

-- Not checked for the rows that are there: that would take long, and none of them has the new reason.
alter table {schema}.finished_job drop constraint finished_job_reason_known;
alter table {schema}.finished_job add constraint finished_job_reason_known
    check (reason in ('overlap', 'blackout', 'too_late', 'paused', 'deleted', 'limit', 'min_gap', 'superseded',
                      'not_allowed', 'not_sent', 'finished')) not valid;
