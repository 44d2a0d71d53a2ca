-- One periodic task after others. May run before the new code; but older beats do not wait for anything: set `after`
-- when all are new.

-- They return one column more now, and Postgres does not change what a function returns.
drop function if exists {schema}.look(double precision, text[]),
    {schema}.mark(text, double precision, int, int, text[]);
-- They have other arguments now. Both would stay, and a call could mean either.
drop function if exists {schema}.released(text, interval), {schema}.circle_of(text, text[]),
    {schema}.not_targets(text, text[], int);

alter table {schema}.periodic_task
    add column after text[],
    add column after_condition text not null default 'success'
        constraint periodic_task_after_condition_known check (after_condition in ('success', 'finish')),
    add constraint periodic_task_after_size check (pg_column_size(after) <= 100000);

-- The column `after` once more, a row for each name in it, for those who ask what comes after a periodic task. The
-- trigger of periodic_task writes it, and keeps each upstream task in the table while another names it.
create table {schema}.dependency (
    upstream text not null,
    downstream text not null,
    constraint dependency_once primary key (upstream, downstream),
    constraint dependency_size check (octet_length(upstream) <= 800 and octet_length(downstream) <= 800)
);

create index dependency_of_downstream on {schema}.dependency (downstream);

-- What beats have to look at: all that comes after an upstream task that has ended, or one downstream task, of which a
-- job begins to wait or whose definition was changed. Nobody waits to write here, and beats take the rows away. What is
-- written depends on nothing that another transaction may change at this moment, or a wait could be forgotten.
create table {schema}.dependency_turn (
    upstream text,
    downstream text,
    constraint dependency_turn_of_one check ((upstream is null) <> (downstream is null)),
    constraint dependency_turn_size check (octet_length(coalesce(upstream, downstream)) <= 800)
) with (autovacuum_vacuum_scale_factor = 0.02);

create index dependency_turn_in_order on {schema}.dependency_turn (upstream, downstream);

alter table {schema}.active_job drop constraint active_job_state_known;
alter table {schema}.active_job add constraint active_job_state_known
    check (state in ('pending', 'sent', 'running', 'retrying', 'buffered', 'waiting', 'error', 'created'));
alter table {schema}.active_job drop constraint active_job_waits_for_known;
alter table {schema}.active_job add constraint active_job_waits_for_known
    check (waits_for in ('predecessor', 'upstream', 'slot'));
alter table {schema}.active_job drop constraint active_job_waits_iff_buffered;
alter table {schema}.active_job add constraint active_job_waits_iff_buffered
    check ((state in ('buffered', 'waiting')) = (waits_for is not null)
        and (state = 'waiting') = (waits_for is not distinct from 'upstream'));
alter table {schema}.active_job drop constraint active_job_of_people;
alter table {schema}.active_job add constraint active_job_of_people check (
    case
        when kind = 'human'
        then state in ('created', 'running', 'buffered', 'waiting') and (state = 'running') = (owner is not null)
            and token is not null and tracking = 'full' and marked_by is null
            and busy_until = 'infinity' and check_at = 'infinity'
        else state <> 'created' and owner is null and task is not null
    end);

create index active_job_waiting_for_upstream on {schema}.active_job (periodic_task) where waits_for = 'upstream';

-- What was skipped, by the last occurrence of the record: whoever waits for the end of an occurrence asks for it. What
-- was not skipped is in finished_job_of_occurrence.
create index finished_job_skipped on {schema}.finished_job (periodic_task, coalesce(last_scheduled_for, scheduled_for))
    where state = 'skipped';

-- Not checked for the rows that are there: that would take long, and none of them has the new reason.
alter table {schema}.finished_job drop constraint finished_job_reason_known;
alter table {schema}.finished_job add constraint finished_job_reason_known
    check (reason in ('overlap', 'blackout', 'too_late', 'paused', 'deleted', 'limit', 'min_gap', 'superseded',
                      'not_allowed', 'not_sent', 'finished', 'after')) not valid;
